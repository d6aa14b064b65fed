"""The benchmarks at tiny sizes: what is paired with what, and what is written."""

import json
from pathlib import Path

import pytest
import torch

from benchmarks import alignment, loss_time, memory, results, step, teacher, timing
from benchmarks.__main__ import BENCHMARKS, chosen
from benchmarks.child import run_child
from benchmarks.material import METHOD, SHAPES, STUDY_STUDENT, Material, texts_of_length
from benchmarks.peak import peak_bytes
from benchmarks.results import Result
from benchmarks.training import BATCH_SIZE, Training
from emo.alignment.stage import load_tokenizer

from ..tiny_models import sentences, write_texts

LENGTH = 12
PAIRS = 2


@pytest.fixture(scope="module")
def material(tiny, tmp_path_factory):
    folder = tmp_path_factory.mktemp("benchmarks")
    texts = write_texts(sentences(150, seed=3), folder / "sentences.parquet")
    return Material(
        tiny.teacher, tiny.student, texts, folder, texts=(1 + PAIRS) * BATCH_SIZE, longest=32
    )


@pytest.fixture
def tiny_step(monkeypatch):
    monkeypatch.setitem(SHAPES, "tiny-bert", (2, 32, 2))
    monkeypatch.setitem(step.CASES, ("tiny-bert", LENGTH), PAIRS)


def test_works_are_timed_in_turns_and_no_repeat_comes_twice():
    """A ratio of two blocks of repeats would measure what else the machine did in each block; a
    batch that comes again would be in a cache."""
    calls = []
    works = [lambda n: calls.append(("plain", n)), lambda n: calls.append(("emo", n))]
    seconds = timing.timed_in_turns(works, pairs=3, warm_up=1)
    assert calls == [(work, n) for n in range(4) for work in ("plain", "emo")]
    assert [len(taken) for taken in seconds] == [3, 3]  # the warm-up is not among them


def test_ratio_is_the_median_of_pair_ratios_and_not_a_ratio_of_medians():
    values = timing.spread(timing.ratios([2.0, 30.0, 9.0], [1.0, 10.0, 1.5]))
    assert (values.ratio, values.low, values.high) == (3.0, 2.0, 6.0)


def test_step_is_measured_on_batches_that_differ(material, tiny_step, monkeypatch):
    """Both sides of a pair read the same batch, and no pair that of another."""
    read = []
    usual = Training.collate

    def collate(training, number):
        batch = usual(training, number)
        read.append(("teacher_rows" in batch, batch["input_ids"].clone()))
        return batch

    monkeypatch.setattr(Training, "collate", collate)
    (result,) = step.measure_step(material, "tiny-bert", LENGTH)
    assert result.name == f"step.tiny-bert.s{LENGTH}"
    assert 0 < result.low <= result.ratio <= result.high
    assert [emo for emo, _ in read] == [False, True] * (1 + PAIRS)
    pairs = list(zip(read[::2], read[1::2], strict=True))
    assert all(torch.equal(plain[1], emo[1]) for plain, emo in pairs)
    batches = [plain[1] for plain, _ in pairs]
    assert all(batch.shape == (BATCH_SIZE, LENGTH) for batch in batches)
    assert not any(torch.equal(batches[0], batch) for batch in batches[1:])


def test_a_step_changes_the_weights_by_every_term(material):
    training = Training(METHOD, material.inputs(STUDY_STUDENT, LENGTH))
    terms = training.model(**training.collate(0)).losses
    assert {"cosine", "relational", "attention", "transport"} <= terms.keys()
    before = training.model.student.head.weight.clone()
    training.repeat(0)
    assert not torch.equal(before, training.model.student.head.weight)


def test_texts_fill_the_length_and_use_no_sentence_twice(material):
    tokenizer = load_tokenizer(str(material.student))
    tokenizer = type(tokenizer)(tokenizer.tokenizer, tokenizer.prompt, LENGTH)
    made = texts_of_length(sentences(60, seed=5), tokenizer, 8)
    assert {len(text.input_ids) for text in tokenizer(made)} == {LENGTH}
    assert len(set(made)) == 8
    with pytest.raises(ValueError, match="100 are needed"):
        texts_of_length(sentences(60, seed=5), tokenizer, 100)


def test_loss_time_names_each_part(material, monkeypatch):
    monkeypatch.setattr(loss_time, "LENGTH", LENGTH)
    monkeypatch.setattr(loss_time, "ROUNDS", PAIRS)
    found = loss_time.measure_loss_time(material)
    assert [result.name for result in found] == list(loss_time.NAMES)
    assert all(result.low > 0 for result in found[2:])  # timed by themselves


def test_teacher_passes_read_other_sentences_each_time(material, monkeypatch):
    monkeypatch.setattr(teacher, "TEXTS", 30)
    monkeypatch.setattr(teacher, "PAIRS", PAIRS)
    seen = {"plain": [], "captured": []}
    for kind, name in ((teacher.PlainPass, "plain"), (teacher.CapturedPass, "captured")):
        usual = kind.__call__

        def call(self, texts, usual=usual, name=name):
            seen[name].append(texts)
            usual(self, texts)

        monkeypatch.setattr(kind, "__call__", call)
    (result,) = teacher.measure_teacher_pass(material)
    assert result.name == "teacher_pass"
    assert seen["plain"] == seen["captured"]
    assert [len(texts) for texts in seen["plain"]] == [30] * (1 + PAIRS)
    assert len({text for texts in seen["plain"] for text in texts}) == 30 * (1 + PAIRS)


def test_alignment_times_sweeps_mapping_and_whole(material, monkeypatch):
    monkeypatch.setattr(alignment, "TEXTS", 10)
    monkeypatch.setattr(alignment, "SHORTEST", 4)
    names = ("teacher", "student", "sentences")
    seconds = alignment.seconds_of(*(str(getattr(material, name)) for name in names))
    assert {name: len(taken) for name, taken in seconds.items()} == {
        "all": alignment.PAIRS,
        "exact_first": alignment.PAIRS,
        "mapping": alignment.PAIRS,
        "whole": alignment.PAIRS,
    }
    monkeypatch.setattr(alignment, "TEXTS", 1000)
    with pytest.raises(ValueError, match="6000 needed"):
        alignment.seconds_of(*(str(getattr(material, name)) for name in names))


def test_a_sweep_compares_all_or_only_strings_without_a_twin(monkeypatch):
    compared = []

    def distance(one, other):
        compared.append((one, other))
        return abs(len(one) - len(other))

    monkeypatch.setattr(alignment.editdistance, "eval", distance)
    others, found = {"cat", "dogs"}, {"cat": "cat", "▁dogs": "dogs"}
    assert alignment.sweep(["cat", "▁dogs"], others, exact_first=True) == found
    assert sorted(compared) == [("▁dogs", "cat"), ("▁dogs", "dogs")]
    assert alignment.sweep(["cat", "▁dogs"], others, exact_first=False) == found
    assert len(compared) == 2 + 4


@pytest.mark.skipif(torch.cuda.is_available(), reason="counts what a CPU holds")
def test_peak_counts_what_was_freed_again_and_nothing_from_before():
    size = 64 << 20

    def held_for_a_moment():
        torch.ones(size // 4).sum()

    held_for_a_moment()
    assert 0.9 * size < peak_bytes(held_for_a_moment) < 1.3 * size
    assert peak_bytes(lambda: None) < 0.1 * size


@pytest.fixture
def peaks(monkeypatch):
    """What is measured, in this process: importing everything in others takes long."""
    measured = []

    def peak_of(module, request):
        assert module == "benchmarks.memory"
        return memory.peak_of(json.loads(json.dumps(request)))

    def peak(work):
        work()
        measured.append(work)
        return len(measured) * memory.MIB

    monkeypatch.setattr(memory, "run_child", peak_of)
    monkeypatch.setattr(memory, "peak_bytes", peak)
    return measured


def test_memory_of_a_teacher_pass_with_capture_is_over_that_of_encode(material, peaks, monkeypatch):
    monkeypatch.setattr(memory, "TEACHER_PAIRS", 1)
    ratio, peak = memory.measure_teacher_memory(material, LENGTH)
    assert (ratio.name, ratio.ratio) == (f"teacher_memory.s{LENGTH}", 2.0)
    assert (peak.name, peak.ratio, peak.unit) == (f"{ratio.name}.peak", 2.0, "MiB")


def test_memory_of_an_emo_step_is_over_that_of_a_plain_one(material, tiny_step, peaks, monkeypatch):
    monkeypatch.setattr(memory, "STEP_LENGTH", LENGTH)
    monkeypatch.setitem(memory.PAIRS, "tiny-bert", 2)
    forms = []
    usual = Training.repeat

    def repeat(training, number):
        forms.append((type(training.model.method).__name__, number))
        usual(training, number)

    monkeypatch.setattr(Training, "repeat", repeat)
    ratio, _ = memory.measure_step_memory(material, "tiny-bert")
    steps = [(kind, number) for kind in ("PooledMethod", "EmoMethod") for number in (0, 1)]
    assert forms == 2 * steps
    assert (ratio.low, ratio.high) == (4 / 3, 2.0)


def test_a_child_gets_request_and_environment_and_answers_with_its_last_line(tmp_path):
    code = "import json, os, sys; print('noise'); print(json.dumps([sys.argv[1], os.environ['A']]))"
    (tmp_path / "echo_request.py").write_text(code)
    answer = run_child("echo_request", {"a": 1}, {"PYTHONPATH": str(tmp_path), "A": "b"})
    assert answer == ['{"a": 1}', "b"]


def test_results_are_written_by_name_beside_earlier_ones(tmp_path: Path):
    path = tmp_path / "results" / "bench.json"
    first = Result("alignment", 31.0, 30.0, 32.0, "x editdistance sweeps", "cpu (1 thread)")
    results.write([first], path)
    results.write([Result("teacher_pass", 1.2, 1.1, 1.3, "x encode", "cpu (2 threads)")], path)
    written = json.loads(path.read_text())
    assert written.keys() == {"alignment", "teacher_pass"}
    assert written["teacher_pass"] == {
        "ratio": 1.2,
        "low": 1.1,
        "high": 1.3,
        "unit": "x encode",
        "device": "cpu (2 threads)",
    }
    assert results.line(first).endswith("target >= 30: met")


def test_targets_name_benchmarks_that_exist():
    """A misspelt target would never be missed."""
    known = {*BENCHMARKS, *alignment.NAMES}
    assert known >= results.AT_MOST.keys() | results.AT_LEAST.keys()


def test_a_name_chooses_one_benchmark_or_a_group():
    assert list(chosen("step.bert-base.s64")) == ["step.bert-base.s64"]
    assert list(chosen("step.minilm6")) == [f"step.minilm6.s{n}" for n in (32, 64, 128, 256)]
    assert list(chosen("alignment.texts_per_second")) == ["alignment"]
    assert chosen("") == BENCHMARKS
    with pytest.raises(SystemExit, match="no benchmark 'stp'"):
        chosen("stp")
