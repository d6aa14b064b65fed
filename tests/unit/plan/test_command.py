"""The command line of ``emo plan``."""

import json
import re

import pytest
from typer.testing import CliRunner

from emo import cli
from emo.plan import Forecast, Stage, probe

from .conftest import TEXTS

pytestmark = pytest.mark.usefixtures("short")


def emo_plan(*arguments):
    return CliRunner().invoke(cli.app, ["plan", *map(str, arguments)])


def test_what_is_foretold_is_said_and_written(tiny_models, texts, tmp_path):
    out = tmp_path / "plan.json"
    result = emo_plan(
        texts,
        *("--teacher", tiny_models.teacher, "--states", "int8", "--width", 12, "--shards", 3),
        *("--student", tiny_models.student, "--steps", 4, "--batch-size", 8, "--out", out),
    )
    assert result.exit_code == 0, result.output
    record = json.loads(out.read_text())
    rules = [stage["rule"] for stage in record["stages"]]
    assert rules == ["teach_basis", "teach_shard", "align", "teach_rows_shard", "distil"]
    jobs = {stage["rule"]: stage["jobs"] for stage in record["stages"]}
    assert jobs["teach_shard"] == jobs["teach_rows_shard"] == 3
    assert record["seconds"] == pytest.approx(sum(stage["seconds"] for stage in record["stages"]))
    assert record["bytes"] == sum(stage["bytes"] for stage in record["stages"])
    assert all(stage["seconds"] > 0 for stage in record["stages"])
    assert record["device"] == "cpu"
    for rule in [*rules, "sum"]:
        assert re.search(rf"^{rule} ", result.output, flags=re.MULTILINE), rule


def test_online_a_training_has_maps_and_no_rows(tiny_models, texts, tmp_path):
    out = tmp_path / "plan.json"
    student = ("--student", tiny_models.student, "--method", "emo-paper", "--steps", 2)
    options = ("--teacher", tiny_models.teacher, "--states", "online", *student)
    result = emo_plan(texts, *options, "--batch-size", 8, "--out", out)
    assert result.exit_code == 0, result.output
    rules = [stage["rule"] for stage in json.loads(out.read_text())["stages"]]
    assert rules == ["teach_shard", "align", "align", "distil"]


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (("--steps", 5), "--steps: a training needs a student"),
        (("--states", "int4", "--width", 3), "give an even `width`"),
        (("--width", 1000), "store.width: 1000 is more than the 48 dimensions"),
        (
            ("--student", "s", "--method", '{"form": "emu"}'),
            "method: unknown 'form' `emu`; did you mean `emo`?",
        ),
        (("--student", "s", "--method", "emu"), "--method: neither JSON nor a readable file"),
        (("--student", "s", "--method", "{"), "--method: neither JSON nor a readable file"),
        (("--student", "nowhere"), "nowhere: no modules.json"),
    ],
)
def test_options_at_fault_are_2(tiny_models, texts, options, said, monkeypatch):
    """Before any batch is passed."""
    monkeypatch.setattr(probe, "probe_teacher", None)
    result = emo_plan(texts, "--teacher", tiny_models.teacher, *options)
    assert result.exit_code == 2, result.output
    assert said in result.output
    assert "Traceback" not in result.output


def test_fewer_texts_than_a_batch_are_refused(tiny_models, texts):
    student = ("--student", tiny_models.student, "--steps", 3, "--batch-size", TEXTS + 1)
    result = emo_plan(texts, "--teacher", tiny_models.teacher, *student)
    assert result.exit_code == 2, result.output
    assert f"{TEXTS} texts do not fill one batch; lower --batch-size (now {TEXTS + 1})" in (
        result.output
    )


def test_lines_say_what_was_counted_and_what_it_sums_up_to():
    stages = [Stage("teach_shard", 2, 30.5, 4_000_000), Stage("distil", 1, 60.0, 0)]
    forecast = Forecast(2000, 20_000, 1000, 300, "cpu", 2, 21.0, stages)
    first, _, store, training, total = forecast.lines()
    assert first.startswith("2,000 texts, 20,000 teacher tokens (from 1,000 texts); cpu")
    assert store.split() == ["teach_shard", "2", "30.5", "4.0", "2,000", "200"]
    assert training.split() == ["distil", "1", "60.0"]
    assert total.split() == ["sum", "90.5", "4.0", "2,000", "200"]


def test_a_training_on_labels_is_not_foretold(tiny_models, texts, labelled, monkeypatch):
    monkeypatch.setattr(probe, "probe_teacher", None)
    student = ("--student", tiny_models.student, "--steps", 3, "--batch-size", 8)
    logits = ("--method", '{"form": "pooled", "logits": 1.0}')
    for given in ((labelled("sts").texts,), (texts, *logits)):
        result = emo_plan(*given, "--teacher", tiny_models.teacher, *student)
        assert result.exit_code == 2, result.output
        assert "a training on labels is not foretold" in " ".join(result.output.split())
