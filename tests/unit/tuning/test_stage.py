"""Whole tunings of the tiny teacher: what comes out, and what is refused."""

import logging
import shutil

import numpy as np
import pandas as pd
import pytest
import torch
from mlflow import MlflowClient
from safetensors.torch import load_file
from scipy.stats import spearmanr
from sentence_transformers import SentenceTransformer
from sklearn.metrics import average_precision_score, f1_score

from emo.config_models import TeacherSettings
from emo.encoder import load_encoder
from emo.errors import CheckError, DataError
from emo.history import read_history
from emo.models import prepare_model
from emo.models.direction import sees_ahead
from emo.outputs import read_json
from emo.prompt_pooling import count_prompt
from emo.run_tags import RunKey
from emo.teacher_pass import teacher_identity
from emo.tuning import tune
from emo.tuning.trainer import Tuning

from ...tiny_decoders import write_folder
from ...tiny_tasks import LABELS
from .conftest import settings


def run(tmp_path, inputs, family="sts", runs=(), unseen=(), **changes):
    chosen = inputs(family, unseen=unseen)
    tune(settings(**changes), chosen, list(runs), tmp_path / "checks", tmp_path / "out")
    return tmp_path / "out"


def model_weights(folder):
    return load_file(folder / "model.safetensors")


def validation(tasks, family):
    return pd.read_parquet(tasks(family) / "validation.parquet")


def embedded(folder, texts):
    """By SentenceTransformer, as users of the folder call it."""
    return SentenceTransformer(str(folder), device="cpu").encode(list(texts))


def best(out):
    record = read_json(out / "tuning.json")
    (entry,) = [e for e in record["validations"] if e["epoch"] == record["best_epoch"]]
    return entry["validation"]


def test_classes_are_told_apart_by_the_head_on_the_saved_model(tuned, tasks):
    """The best epoch is not the last one: head and model are both of the best."""
    out = tuned("classification")
    record = read_json(out / "tuning.json")
    scores = [entry["validation"] for entry in record["validations"]]
    assert [entry["epoch"] for entry in record["validations"]] == [1, 2, 3]
    assert record["best_epoch"] == 1 + int(np.argmax(scores)) != 3
    assert (record["metric"], record["labels"]) == ("macro_f1", sorted(LABELS))
    assert record["rows"] == {"train": 36, "validation": 12}
    rows = validation(tasks, "classification")
    head = load_file(out / "head.safetensors")
    vectors = embedded(out / "model", rows["text"]) * np.sqrt(48)
    logits = vectors @ head["classes.weight"].numpy().T + head["classes.bias"].numpy()
    predicted = np.array(record["labels"])[logits.argmax(axis=1)]
    expected = f1_score(rows["label"], predicted, average="macro")
    assert expected == pytest.approx(max(scores), abs=1e-9)


@pytest.mark.parametrize("kind", ["lora", "full"])
def test_similarities_are_cosines_of_the_saved_model(tuned, tasks, tiny_models, kind):
    out = tuned("sts", kind)
    rows = validation(tasks, "sts")

    def score(folder):
        one, other = (embedded(folder, rows[side]) for side in ("sentence1", "sentence2"))
        return spearmanr((one * other).sum(axis=1), rows["score"]).statistic

    record = read_json(out / "tuning.json")
    first = record["validations"][0]
    assert (first["epoch"], first["step"]) == (0, 0)
    assert first["validation"] == pytest.approx(score(tiny_models.teacher), abs=1e-6)
    assert best(out) == pytest.approx(score(out / "model"), abs=1e-6)
    assert best(out) > first["validation"]
    assert (record["metric"], record["labels"]) == ("spearman", [])
    assert not (out / "head.safetensors").exists(), "a cosine needs no head"


def test_pairs_are_chosen_by_the_cosine_that_judges_them(tuned, tasks):
    out = tuned("pairs")
    rows = validation(tasks, "pairs")
    one, other = (embedded(out / "model", rows[side]) for side in ("sentence1", "sentence2"))
    expected = average_precision_score(rows["label"], (one * other).sum(axis=1))
    assert best(out) == pytest.approx(expected, abs=1e-6)
    record = read_json(out / "tuning.json")
    assert (record["metric"], record["labels"]) == ("average_precision", ["0", "1"])
    assert load_file(out / "head.safetensors")["classes.weight"].shape == (2, 3 * 48)


def test_a_joint_tuning_scores_the_pair_as_one_sequence(tuned, tasks):
    """Its head is random before, so that nothing is scored then."""
    out = tuned("sts", "lora", "joint")
    rows = validation(tasks, "sts")
    record = read_json(out / "tuning.json")
    assert [entry["epoch"] for entry in record["validations"]] == [1, 2, 3]
    encoder = load_encoder(out / "model", device=torch.device("cpu")).eval()
    head = load_file(out / "head.safetensors")
    logits = []
    for pair in zip(rows["sentence1"], rows["sentence2"], strict=True):
        (tokens,) = encoder.tokenizer()([pair])
        ids = torch.from_numpy(tokens.input_ids)[None]
        with torch.no_grad():
            vector = encoder(ids, torch.ones_like(ids, dtype=torch.bool)).vectors[0] * 48**0.5
        hidden = torch.tanh(head["head.dense.weight"] @ vector + head["head.dense.bias"])
        logits.append(float(head["head.score.weight"] @ hidden + head["head.score.bias"]))
    assert best(out) == pytest.approx(spearmanr(logits, rows["score"]).statistic, abs=1e-6)


def test_adapters_change_linear_layers_alone(tuned, tiny_models):
    before = model_weights(tiny_models.teacher)
    after = model_weights(tuned("classification") / "model")
    assert before.keys() == after.keys()
    assert {weight.dtype for weight in after.values()} == {torch.float32}
    changed = {name for name in before if not torch.equal(before[name], after[name])}
    linear = {name for name in before if name.endswith("weight") and before[name].ndim == 2}
    assert changed == {name for name in linear if "embeddings" not in name}
    record = read_json(tuned("classification") / "tuning.json")
    assert record["adapter"]["least_cosine"] > 0.9999
    assert record["adapter"]["weights"] == 2 * len(changed)
    inside = sum(4 * sum(before[name].shape) for name in changed)
    assert record["trained_weights"] == inside + 3 * 48 + 3


def test_full_tuning_changes_every_weight(tuned, tiny_models):
    before = model_weights(tiny_models.teacher)
    after = model_weights(tuned("sts", "full") / "model")
    assert before.keys() == after.keys()
    # No token of a second kind occurs, and a bias of keys moves all scores of a row alike.
    idle = ("token_type", "position", "key.bias")
    for name in before:
        if not any(word in name for word in idle):
            assert not torch.equal(before[name], after[name]), name
    record = read_json(tuned("sts", "full") / "tuning.json")
    assert record["adapter"] is None
    assert record["trained_weights"] == sum(weight.numel() for weight in before.values())


def test_the_result_is_a_prepared_folder_with_an_identity_of_its_own(tuned, tiny_models):
    """Prompt, length, pooling and tokenizer are the teacher's; every key downstream is not."""
    teacher, model = tiny_models.teacher, tuned("classification") / "model"
    files = {path.name for path in teacher.iterdir()}
    assert {path.name for path in model.iterdir()} == files
    for name in ("modules.json", "sentence_bert_config.json", "tokenizer.json"):
        assert (model / name).read_bytes() == (teacher / name).read_bytes()
    before, after = (SentenceTransformer(str(folder), device="cpu") for folder in (teacher, model))
    assert after.prompts == before.prompts
    assert after.max_seq_length == before.max_seq_length
    told, was = read_json(model / "model.json"), read_json(teacher / "model.json")
    record = read_json(model.parent / "tuning.json")
    assert told["tuned"] == {
        "base_weights_sha256": was["weights_sha256"],
        "task": "classification",
        "identity": record["identity"],
        "settings": record["settings"],
    }
    assert told["weights_sha256"] != was["weights_sha256"]
    assert {k: told[k] for k in was if k != "weights_sha256"} == {
        k: was[k] for k in was if k != "weights_sha256"
    }
    identities = [
        teacher_identity(folder, load_encoder(folder), "float32") for folder in (teacher, model)
    ]
    assert identities[0] != identities[1]


def test_a_decoder_that_reads_both_ways_stays_so(inputs, tasks, tmp_path):
    """LLM2Vec's make: the saved folder must pool and attend as the tuned model did."""
    source = write_folder("mistral", tmp_path / "source")
    make = {"bidirectional": True, "prompt": "Find the : ", "include_prompt": False}
    prepare_model(
        TeacherSettings(source={"path": "x"}, max_length=40, **make), source, tmp_path / "teacher"
    )
    chosen = inputs("sts", teacher=tmp_path / "teacher")
    tune(settings(epochs=1), chosen, [], tmp_path / "checks", tmp_path / "out")
    model = tmp_path / "out" / "model"
    assert sees_ahead(load_encoder(model, device=torch.device("cpu")).transformer)
    encoder = SentenceTransformer(str(model), device="cpu")
    count_prompt(encoder)
    rows = validation(tasks, "sts")
    one, other = (encoder.encode(list(rows[side])) for side in ("sentence1", "sentence2"))
    score = spearmanr((one * other).sum(axis=1), rows["score"]).statistic
    last = read_json(tmp_path / "out" / "tuning.json")["validations"][-1]
    assert (last["epoch"], last["validation"]) == (1, pytest.approx(score, abs=1e-6))


def test_the_history_has_losses_and_validations_by_step(tuned):
    out = tuned("sts")
    history = read_history(out / "history.jsonl")
    losses = [entry["step"] for entry in history if "loss" in entry]
    assert losses == [1, 10]
    assert [entry["step"] for entry in history if "validation" in entry] == [0, 4, 8, 12]
    assert not list(out.parent.glob("checkpoints/*/checkpoint-*")), "emptied after a good end"


def test_the_same_seed_gives_the_same_weights_and_another_seed_others(inputs, tuned, tmp_path):
    expected = (tuned("sts") / "model" / "model.safetensors").read_bytes()
    torch.manual_seed(99)  # what ran before must not matter
    same = run(tmp_path / "same", inputs)
    assert (same / "model" / "model.safetensors").read_bytes() == expected
    other = run(tmp_path / "other", inputs, seed=2)
    assert (other / "model" / "model.safetensors").read_bytes() != expected


def test_rows_with_texts_that_another_task_tests_on_are_left_out(inputs, tasks, tmp_path):
    """The student's texts are cleared of them, and its teacher must not have learned them."""
    other = tmp_path / "other"
    shutil.copytree(tasks("sts"), other)
    train = pd.read_parquet(tasks("sts") / "train.parquet")
    seen = train[["sentence1"]].rename(columns={"sentence1": "text"})[:3]
    seen.assign(text=seen["text"].str.upper() + "!").to_parquet(other / "test.parquet")
    out = run(tmp_path, inputs, unseen=(other,), epochs=1)
    record = read_json(out / "tuning.json")
    assert record["left_out"] == {"train": 3, "validation": 0}
    assert record["rows"]["train"] == len(train) - 3


def test_a_tuning_is_one_tracked_run(inputs, workdir, monkeypatch):
    """Beside the others in the same experiment: losses and validation scores by step."""
    monkeypatch.setattr("emo.tuning.stage.device_name", lambda device: f"a {device.type}")
    key = RunKey("tiny", "-", "sts", "tuning", 1)
    out = run(workdir, inputs, runs=[key])
    client = MlflowClient(f"sqlite:///{workdir}/results/mlflow.db")
    (found,) = client.search_runs([client.get_experiment_by_name("emo").experiment_id])
    assert found.info.status == "FINISHED"
    assert found.info.run_name == "tuning sts seed1"
    assert found.data.tags["emo.student"] == "-"
    assert found.data.tags["emo.identity"] == read_json(out / "tuning.json")["identity"]
    assert found.data.params["tuning.rank"] == "4"
    assert read_json(out / "tuning.json")["device"] in ("a cpu", "a cuda")
    points = client.get_metric_history(found.info.run_id, "validation/spearman")
    told = [entry["validation"] for entry in read_json(out / "tuning.json")["validations"]]
    assert [point.step for point in points] == [0, 4, 8, 12]
    assert [point.value for point in points] == told
    assert {"train/loss", "train/learning_rate"} <= found.data.metrics.keys()


def test_a_tuning_that_gains_nothing_says_so(inputs, tmp_path, caplog):
    with caplog.at_level(logging.WARNING):
        run(tmp_path, inputs, "pairs", epochs=1, learning_rate=1.0)
    assert "no epoch beats the teacher as it was, average_precision 0." in caplog.text
    assert "leave `tuning` out" in caplog.text


def test_a_loss_that_is_not_finite_names_the_step(inputs, tmp_path):
    with pytest.raises(DataError, match=r"step [2-9]: the loss is nan; lower `tuning.learning_rat"):
        run(tmp_path, inputs, kind="full", learning_rate=1e30)
    assert not (tmp_path / "out").exists()


def test_a_collapsed_teacher_is_refused(inputs, tmp_path, monkeypatch):
    """All cosines equal: the score is undefined, and must not pass for a bad one."""
    monkeypatch.setattr(Tuning, "predict", lambda model, batch: torch.ones(len(batch["targets"])))
    with pytest.raises(CheckError, match="the same embedding for all texts; lower `tuning.lear"):
        run(tmp_path, inputs)


@pytest.mark.parametrize("name", ["teacher", "task"])
def test_an_input_that_is_not_there_is_named(inputs, tmp_path, name):
    chosen = inputs("sts", **{name: tmp_path / "nowhere"})
    with pytest.raises(DataError, match="nowhere.*: not there; run the stage that makes it first"):
        tune(settings(), chosen, [], tmp_path / "checks", tmp_path / "out")
