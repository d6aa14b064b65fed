"""The whole examination: table, record, stop."""

import json
from importlib import import_module

import pytest
import torch
from safetensors.torch import load_file, save_file

from emo.doctor import examine
from emo.doctor import subject as module
from emo.doctor.probes import LEAST_TEXTS, MOST_TEXTS, PROBE_TEXTS, read_probes
from emo.errors import CheckError, ConfigError, DataError
from emo.outputs import read_json

from .conftest import TEXTS


@pytest.fixture
def probes(tmp_path):
    path = tmp_path / "probes.txt"
    path.write_text("\n".join(TEXTS[4:]) + "\n\n" + TEXTS[5] + "\n", encoding="utf-8")
    return path


def test_a_sound_teacher_leaves_a_table_and_a_record(
    prepared, tmp_path, probes, capsys, monkeypatch
):
    stage = import_module("emo.doctor.examine")
    monkeypatch.setattr(stage, "device_name", lambda device: f"a {device.type}")
    teacher = prepared("bert")
    examine(teacher, tmp_path / "doctor.json", texts=probes)
    record = read_json(tmp_path / "doctor.json")
    assert {finding["status"] for finding in record["findings"]} == {"passed"}
    assert len(record["findings"]) == 10
    assert (
        record["teacher"]["weights_sha256"] == read_json(teacher / "model.json")["weights_sha256"]
    )
    assert {"torch", "transformers", "sentence-transformers", "peft"} <= set(record["versions"])
    assert (record["dtype"], record["texts"]) == ("float32", len(TEXTS[4:]))
    assert len(record["code"]) == 16
    assert record["device"] in ("a cpu", "a cuda")
    table = capsys.readouterr().out
    for finding in record["findings"]:
        assert f"passed   {finding['name']}" in table


def test_a_broken_one_stops_with_each_remedy_and_leaves_the_record(
    copied, tmp_path, probes, capsys
):
    folder = copied("causal-last")
    path = folder / "tokenizer.json"
    stored = json.loads(path.read_text())
    stored["post_processor"]["single"].pop()
    path.write_text(json.dumps(stored))
    record = folder / "model.json"
    told = json.loads(record.read_text())
    told["settings"]["bidirectional"] = True
    record.write_text(json.dumps(told))
    with pytest.raises(CheckError) as caught:
        examine(folder, tmp_path / "doctor.json", texts=probes)
    lines = str(caught.value).splitlines()
    assert "fails 2 of 10 checks:" in lines[0]
    assert lines[1].startswith("- direction: ")
    assert lines[2].startswith("- begin and end tokens: ")
    assert "set the teacher's `end_token`" in lines[2]
    findings = read_json(tmp_path / "doctor.json")["findings"]
    assert [f["name"] for f in findings if f["status"] == "failed"] == [
        "direction",
        "begin and end tokens",
    ]
    assert "FAILED   direction" in capsys.readouterr().out


def test_numbers_that_are_not_finite_are_recorded(copied, tmp_path, probes):
    folder = copied("bert")
    path = folder / "model.safetensors"
    weights = load_file(path)
    weights["encoder.layer.1.output.dense.weight"][0, 0] = float("nan")
    save_file(weights, path, metadata={"format": "pt"})
    with pytest.raises(CheckError, match="have numbers that are not finite"):
        examine(folder, tmp_path / "doctor.json", texts=probes)
    assert '"nan"' in (tmp_path / "doctor.json").read_text()


def test_the_reference_goes_to_the_cpu_where_the_accelerator_is_too_small(
    prepared, monkeypatch, caplog
):
    load, asked = module.load_encoder, []

    def small(folder, dtype="float32", device=None):
        asked.append((dtype, device))
        if dtype == "float32" and device is None:
            raise torch.OutOfMemoryError("too large")
        return load(folder, dtype, device)

    monkeypatch.setattr(module, "load_encoder", small)
    found = module.load_subject(prepared("bert"), TEXTS, "bfloat16")
    assert asked == [("float32", None), ("float32", torch.device("cpu")), ("bfloat16", None)]
    assert "the reference is computed on the CPU" in caplog.text
    assert found.reference.vectors.dtype == torch.float32


def test_probe_texts_come_from_a_file(tmp_path, probes):
    assert read_probes(None) == list(PROBE_TEXTS)
    assert len(set(PROBE_TEXTS)) == MOST_TEXTS
    assert read_probes(probes) == list(TEXTS[4:])
    probes.write_text("\n".join(f"text {number}" for number in range(100)))
    assert read_probes(probes) == [f"text {number}" for number in range(MOST_TEXTS)]


def test_files_and_options_at_fault_are_named(prepared, tmp_path, probes):
    probes.write_text("one\none\ntwo\n")
    with pytest.raises(DataError, match=rf"has 2 different texts, the doctor needs {LEAST_TEXTS}"):
        read_probes(probes)
    probes.write_bytes(b"\xff\xfe")
    with pytest.raises(DataError, match="not a readable UTF-8 text file"):
        read_probes(probes)
    out = tmp_path / "doctor.json"
    with pytest.raises(ConfigError, match="`float8` is none of float32, float16, bfloat16"):
        examine(prepared("bert"), out, "float8")
    with pytest.raises(DataError, match=r"model\.json is missing"):
        examine(tmp_path, out)
    (tmp_path / "model.json").write_text("{}")
    with pytest.raises(DataError, match="holds no settings"):
        examine(tmp_path, out)


def test_a_text_without_a_token_is_named(subject):
    encoder = subject("qwen3").encoder
    encoder.model.tokenizer.backend_tokenizer.post_processor = None
    encoder.model.prompts["default"] = ""
    with pytest.raises(DataError, match="makes no token of ''"):
        module.tokenize(encoder, ["river", ""])
