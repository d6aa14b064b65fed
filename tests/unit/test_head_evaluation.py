"""Models judged by their own heads: trained students and tuned teachers."""

import numpy as np
import pandas as pd
import pytest
import torch
from safetensors.torch import load_file
from torch.nn import functional

from emo.distil import distil
from emo.encoder import load_encoder, pad
from emo.errors import DataError
from emo.evaluate import evaluate, items_digest
from emo.head_evaluation import JudgedHead
from emo.outputs import read_json
from emo.tasks import TEXT_COLUMNS

from .tiny_labelled import inputs, settings

CPU = torch.device("cpu")
FAMILIES = ["classification", "pairs", "sts"]


@pytest.fixture(scope="module")
def student(labelled, tmp_path_factory):
    """The folder of a student that was trained on a family's labels for a while."""
    made = {}

    def student(family):
        if family not in made:
            folder, files = tmp_path_factory.mktemp(family), labelled(family)
            chosen = settings(files, "sft", steps=40, checkpoint_every=40)
            distil(chosen, inputs(files, "sft"), [], folder / "checkpoints", folder / "out")
            made[family] = folder / "out"
        return made[family]

    return student


def by_hand(encoder, task, family, answer):
    """Ask about the test rows one by one, without padding."""
    table = pd.read_parquet(task / "test.parquet")
    rows = table[[*TEXT_COLUMNS[family]]].itertuples(index=False)
    texts = [tuple(row) if len(row) > 1 else row[0] for row in rows]
    read = encoder.tokenizer()(texts)
    with torch.no_grad():
        encodings = [encoder(*pad([text], encoder.pad_id)) for text in read]
        return table, torch.cat([answer(encoding) for encoding in encodings]).numpy()


def students_answer(out, family):
    head = load_file(out / "task_head.safetensors")

    def linear(name, values):
        return functional.linear(values, head[f"{name}.weight"], head[f"{name}.bias"])

    def answer(encoding):
        first = encoding.states[:, 0]
        if family == "sts":
            return linear("head.score", torch.tanh(linear("head.dense", first))).squeeze(-1)
        return linear("classes", torch.tanh(linear("dense", first)))

    return answer


def predictions_of(logits, family, labels):
    if family == "classification":
        return [labels[number] for number in logits.argmax(axis=1)]
    return 5 / (1 + np.exp(-logits)) if family == "sts" else logits[:, 1] - logits[:, 0]


@pytest.mark.parametrize("family", FAMILIES)
def test_a_student_answers_with_the_head_beside_it(labelled, student, tmp_path, family):
    files, out = labelled(family), student(family)
    evaluate(out / "student", files.task, "t", family, tmp_path, out / "task_head.json")
    encoder = load_encoder(out / "student", device=CPU).eval()
    table, logits = by_hand(encoder, files.task, family, students_answer(out, family))
    made = pd.read_parquet(tmp_path / "predictions.parquet")
    expected = predictions_of(logits, family, ["person", "place", "thing"])
    assert list(made) == ["row", "gold", "predicted"]
    assert made["row"].tolist() == table["row"].tolist()
    assert made["gold"].tolist() == table.iloc[:, -1].tolist()
    if family == "classification":
        assert made["predicted"].tolist() == expected
    else:
        np.testing.assert_allclose(made["predicted"], expected, atol=1e-4)
    scores = read_json(tmp_path / "scores.json")
    assert (scores["judged_by"], scores["texts"]) == (
        "head",
        scores["splits"]["validation"] + scores["splits"]["test"],
    )
    assert scores["test_sha256"] == items_digest(table, TEXT_COLUMNS[family])
    assert scores["model"]["name"] == str(out / "student")


@pytest.mark.parametrize("family", FAMILIES)
def test_a_tuned_teacher_answers_as_when_it_was_chosen(labelled, tmp_path, family):
    """Its tuning scored the same head on the same validation rows."""
    files = labelled(family)
    evaluate(files.teacher, files.task, "t", family, tmp_path, files.tuning)
    tuning = read_json(files.tuning)
    (best,) = (v for v in tuning["validations"] if v["epoch"] == tuning["best_epoch"])
    scores = read_json(tmp_path / "scores.json")
    assert scores["main"] == tuning["metric"]
    assert scores["validation"] == pytest.approx(best["validation"], abs=1e-6)


def test_a_head_learns_what_frozen_embeddings_do_not_show(labelled, student, tmp_path):
    """The student was random: only its own head can know the classes."""
    files, out = labelled("classification"), student("classification")
    evaluate(out / "student", files.task, "t", files.family, tmp_path, out / "task_head.json")
    assert read_json(tmp_path / "scores.json")["metrics"]["accuracy"] > 0.6


def test_answers_do_not_depend_on_the_texts_beside(labelled, student):
    out = student("classification")
    encoder = load_encoder(out / "student", device=CPU)
    head = JudgedHead(out / "task_head.json", encoder)
    texts = pd.read_parquet(labelled("classification").task / "train.parquet")["text"].tolist()
    whole = head.logits(texts)
    assert not encoder.training
    np.testing.assert_allclose(head.logits(texts[5:6]), whole[5:6], atol=1e-5)
    np.testing.assert_allclose(head.logits(texts[::-1])[::-1], whole, atol=1e-5)


def test_a_head_of_another_family_or_without_weights_is_refused(labelled, student, tmp_path):
    files, out = labelled("sts"), student("classification")
    with pytest.raises(DataError, match="a head of the family classification, and .* is of sts"):
        evaluate(out / "student", files.task, "t", "sts", tmp_path, out / "task_head.json")
    record = tmp_path / "task_head.json"
    record.write_text((out / "task_head.json").read_text())
    with pytest.raises(DataError, match=r"task_head\.safetensors is missing; remove training"):
        evaluate(out / "student", files.task, "t", "sts", tmp_path, record)


def changed_task(task, folder, change):
    """Write a task whose splits are changed into a folder of its own."""
    changed = folder / "task"
    changed.mkdir()
    for split in ("train", "validation", "test"):
        rows = pd.read_parquet(task / f"{split}.parquet")
        change(split, rows).to_parquet(changed / f"{split}.parquet")
    return changed


def test_a_head_of_another_task_is_refused(labelled, student, tmp_path):
    """It would answer with labels that the task does not have, and score nothing."""
    files, out = labelled("classification"), student("classification")
    task = changed_task(
        files.task, tmp_path, lambda split, rows: rows.assign(label="of-" + rows["label"])
    )
    with pytest.raises(DataError, match="none of these is a label of the validation split of"):
        evaluate(out / "student", task, "t", files.family, tmp_path, out / "task_head.json")


def test_a_task_without_train_rows_can_be_asked_about(labelled, student, tmp_path):
    files, out = labelled("classification"), student("classification")
    task = changed_task(
        files.task, tmp_path, lambda split, rows: rows[:0] if split == "train" else rows
    )
    evaluate(out / "student", task, "t", files.family, tmp_path, out / "task_head.json")
    pd.read_parquet(task / "train.parquet").to_parquet(task / "validation.parquet")
    with pytest.raises(DataError, match="the validation split of t is empty"):
        evaluate(out / "student", task, "t", files.family, tmp_path, out / "task_head.json")
