"""Whole trainings of the tiny student: what comes out, and what is refused."""

import shutil

import numpy as np
import pytest
import torch
from safetensors.torch import load_file
from sentence_transformers import SentenceTransformer
from transformers import AutoModel

from emo.alignment.stage import align_texts
from emo.distil import distil
from emo.encoder import load_encoder, pad
from emo.errors import CheckError, ConfigError, DataError
from emo.history import read_history
from emo.outputs import read_json, write_json
from emo.trainer import DistillationTrainer

from ..tiny_models import EMO_ROWS, PAPER_ROWS, sentences, write_texts
from .tiny_training import FORMS, STEPS, inputs, settings, weights


@pytest.mark.parametrize("form", FORMS)
def test_a_training_leaves_student_curve_and_record(tiny, undisturbed, form):
    out = undisturbed(form)
    assert sorted(path.name for path in out.iterdir()) == [
        "history.jsonl",
        "student",
        "training.json",
    ]
    history = read_history(out / "history.jsonl")
    assert [record["step"] for record in history] == list(range(1, STEPS + 1))
    for record in history:
        assert np.isfinite([record["loss"], *record["terms"].values()]).all()
        assert record["loss"] == pytest.approx(sum(record["terms"].values()), rel=1e-5)
    normed = [record["step"] for record in history if "gradient_norms" in record]
    assert normed == [1, 2, 4, 6]
    assert all(norm > 0 for norm in history[-1]["gradient_norms"].values())
    record = read_json(out / "training.json")
    assert (record["steps"], record["texts"], record["resumed_from_step"]) == (STEPS, 24, 0)
    assert weights(out) != (tiny.student / "model.safetensors").read_bytes()
    assert not list(out.parent.glob("checkpoints/*/checkpoint-*")), "emptied after a good end"


@pytest.mark.parametrize("form", FORMS)
def test_the_student_is_the_prepared_folder_with_new_weights(tiny, undisturbed, form):
    """Pitfall 102: prompt, length and pooling inside; no random pooler added on load."""
    student = undisturbed(form) / "student"
    prepared, trained = (
        SentenceTransformer(str(folder), device="cpu") for folder in (tiny.student, student)
    )
    assert trained.prompts == prepared.prompts
    assert trained.default_prompt_name == prepared.default_prompt_name == "default"
    assert trained.max_seq_length == prepared.max_seq_length == 32
    transformer, pooling, *head, normalise = map(type, trained)
    assert [transformer, pooling, normalise] == [type(module) for module in prepared]
    assert len(head) == (form != "emo-paper"), "the head stays, the paper's projection goes"
    assert trained[1].pooling_mode == prepared[1].pooling_mode
    saved = load_file(student / "model.safetensors")
    assert saved.keys() == load_file(tiny.student / "model.safetensors").keys()
    assert not [name for name in saved if "pooler" in name or "head" in name]
    loaded = trained[0].auto_model.state_dict()
    assert saved.keys() == loaded.keys()
    assert all(torch.equal(saved[name], loaded[name]) for name in saved)
    assert AutoModel.from_pretrained(student).config.num_hidden_layers == 2


def test_the_vectors_of_the_student_are_those_that_were_trained(tiny, undisturbed):
    student = undisturbed("emo") / "student"
    vectors = SentenceTransformer(str(student), device="cpu").encode(list(tiny.texts_read))
    encoder = load_encoder(student, device=torch.device("cpu")).eval()
    with torch.inference_mode():
        trained = encoder(*pad(encoder.tokenizer()(tiny.texts_read), encoder.pad_id)).vectors
    np.testing.assert_allclose(vectors, trained.numpy(), atol=1e-5)
    assert np.isfinite(vectors).all()


@pytest.mark.parametrize("form", FORMS)
def test_the_same_seed_gives_the_same_weights(tiny, undisturbed, tmp_path, form):
    expected = weights(undisturbed(form))
    torch.manual_seed(99)  # what ran before must not matter
    distil(settings(form), inputs(tiny, form), [], tmp_path / "checks", tmp_path / "same")
    assert weights(tmp_path / "same") == expected


def test_another_seed_gives_other_weights(tiny, undisturbed, tmp_path):
    distil(settings(seed=2), inputs(tiny), [], tmp_path / "checks", tmp_path / "out")
    assert weights(tmp_path / "out") != weights(undisturbed("emo"))


@pytest.fixture
def collapsing(monkeypatch):
    """Pitfall 4: a finite loss and a student for which all texts are one."""
    usual = DistillationTrainer.train

    def train(trainer, *args, **kwargs):
        usual(trainer, *args, **kwargs)
        with torch.no_grad():
            trainer.model.student.head.weight.zero_()

    monkeypatch.setattr(DistillationTrainer, "train", train)


@pytest.mark.usefixtures("collapsing")
def test_a_collapsed_student_fails_the_check(tiny, tmp_path):
    with pytest.raises(CheckError, match=r"collapsed: .* to -?0\.0000; lower .*learning_rate"):
        distil(settings(), inputs(tiny), [], tmp_path / "checks", tmp_path / "out")
    assert not (tmp_path / "out").exists()


@pytest.mark.usefixtures("collapsing")
def test_a_collapsed_student_that_is_to_be_kept_says_so(tiny, undisturbed, tmp_path):
    out = tmp_path / "out"
    distil(settings(collapsed="keep"), inputs(tiny), [], tmp_path / "checks", out)
    assert read_json(out / "training.json")["collapsed"] is True
    assert read_json(undisturbed("emo") / "training.json")["collapsed"] is False


def test_a_loss_that_is_not_finite_names_step_and_term(tiny, tmp_path):
    with pytest.raises(DataError, match=r"step [23]: the loss is not finite \(\{'cosine': nan"):
        distil(
            settings("pooled", learning_rate=1e30, warmup=0.0, gradient_clip=1e30),
            inputs(tiny, "pooled"),
            [],
            tmp_path / "checks",
            tmp_path / "out",
        )
    assert not (tmp_path / "out").exists()


def test_too_few_texts_for_a_batch(tiny, tmp_path):
    with pytest.raises(ConfigError, match=r"24 texts do not fill one batch; lower `training\.bat"):
        distil(settings(batch_size=25), inputs(tiny), [], tmp_path / "checks", tmp_path / "out")


def test_a_batch_of_all_texts_is_enough(tiny, tmp_path):
    distil(settings(batch_size=24), inputs(tiny), [], tmp_path / "checks", tmp_path / "out")


@pytest.mark.parametrize(
    ("form", "missing", "option"),
    [
        ("emo", "alignment", "needs an alignment; give --alignment"),
        ("emo", "rows", "needs attention rows; give --rows"),
        ("emo-paper", "alignment", "needs an alignment; give --alignment"),
        ("emo-paper", "rows", "needs attention rows; give --rows"),
    ],
)
def test_a_method_without_its_signals_names_the_option(tiny, tmp_path, form, missing, option):
    with pytest.raises(ConfigError, match=option):
        distil(
            settings(form),
            inputs(tiny, form, **{missing: None}),
            [],
            tmp_path / "checks",
            tmp_path / "out",
        )


def test_an_alignment_of_other_texts_is_refused(tiny, tmp_path):
    """Pitfall 46: positions of another text would train on any token."""
    other = write_texts(["the old man sings a song in the garden"] * 24, tmp_path / "t.parquet")
    align_texts(other, str(tiny.teacher), str(tiny.student), "mined", tmp_path / "a.parquet")
    with pytest.raises(DataError, match="the alignment does not fit"):
        distil(
            settings(),
            inputs(tiny, alignment=tmp_path / "a.parquet"),
            [],
            tmp_path / "checks",
            tmp_path / "out",
        )


def test_a_store_of_other_texts_is_refused(tiny, tmp_path):
    other = write_texts(sentences(24, seed=9), tmp_path / "texts.parquet")
    with pytest.raises(DataError, match="texts are not in the store"):
        distil(
            settings("pooled"),
            inputs(tiny, "pooled", texts=other),
            [],
            tmp_path / "checks",
            tmp_path / "out",
        )


@pytest.mark.parametrize("name", ["student", "texts", "store", "alignment", "rows"])
def test_an_input_that_is_not_there_is_named(tiny, tmp_path, name):
    with pytest.raises(DataError, match="nowhere.*: not there; run the stage that makes it first"):
        distil(
            settings(),
            inputs(tiny, **{name: tmp_path / "nowhere"}),
            [],
            tmp_path / "checks",
            tmp_path / "out",
        )


@pytest.mark.parametrize(
    ("form", "rows", "method"),
    [
        ("emo-paper", EMO_ROWS, {}),
        ("emo", PAPER_ROWS, {}),
        ("emo", EMO_ROWS, {"rows": 4}),
        ("emo", EMO_ROWS, {"layers": [[1, 3]]}),
    ],
)
def test_rows_of_another_request_are_refused(tiny, tmp_path, form, rows, method):
    """Rows of one layer can often be cut into two of half the width without any error."""
    with pytest.raises(DataError, match=rf"{rows}: rows of request {rows}, but the method as"):
        distil(
            settings(form, method=method),
            inputs(tiny, form, rows=tiny.rows(rows)),
            [],
            tmp_path / "checks",
            tmp_path / "out",
        )


def test_an_alignment_by_another_method_is_refused(tiny, tmp_path):
    """Its positions fit, so that nothing else would stop it."""
    with pytest.raises(DataError, match="method 'mined-masses' instead of 'mined'; align again"):
        distil(
            settings(),
            inputs(tiny, alignment=tiny.alignment("mined-masses.original")),
            [],
            tmp_path / "checks",
            tmp_path / "out",
        )


def test_what_a_term_could_not_use_is_said_in_the_log(tiny, tmp_path, caplog):
    """ "cat" and the runes have too few rows for debiased CKA."""
    with caplog.at_level("INFO", logger="emo"):
        distil(settings(batch_size=24), inputs(tiny), [], tmp_path / "checks", tmp_path / "out")
    said = [message for message in caplog.messages if message.startswith("attention_skipped: ")]
    assert len(said) == 1
    skipped, texts = said[0].removeprefix("attention_skipped: ").split(" of ")
    assert 2 <= float(skipped) < 24
    assert texts == "24 texts a step"


@pytest.mark.parametrize(
    ("key", "value"), [("signals", "ff"), ("student_layers", 4), ("student_tokenizer", "ff")]
)
def test_rows_of_another_model_are_refused(tiny, tmp_path, key, value):
    """Positions and layers of another student or teacher often fit, and teach nonsense."""
    rows = shutil.copytree(tiny.rows(EMO_ROWS).parent, tmp_path / EMO_ROWS) / "store.json"
    record = read_json(rows)
    write_json(rows, record | {"identity": record["identity"] | {key: value}})
    with pytest.raises(DataError, match=rf"rows of {key} {value}, but the method asks for "):
        distil(settings(), inputs(tiny, rows=rows), [], tmp_path / "checks", tmp_path / "out")


def test_a_map_of_another_teacher_is_refused(tiny, tmp_path):
    """One that reads less of a text has fewer pairs, and all of them fit."""
    teacher = shutil.copytree(tiny.teacher, tmp_path / "teacher")
    loading = teacher / "sentence_bert_config.json"
    write_json(loading, read_json(loading) | {"max_seq_length": 12})
    out = tmp_path / "map.parquet"
    align_texts(tiny.texts, str(teacher), str(tiny.student), "mined", out)
    with pytest.raises(DataError, match=r"map\.parquet: was made with another teacher tokenizer"):
        distil(settings(), inputs(tiny, alignment=out), [], tmp_path / "checks", tmp_path / "out")
