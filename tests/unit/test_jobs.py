"""The list of a study's jobs, beside the rules that make them."""

import re
from pathlib import Path

import pytest
import yaml

from emo.config import parse_study
from emo.jobs import (
    BENCHMARKS,
    RESULTS,
    Job,
    row_map_job,
    search_jobs,
    signal_jobs,
    study_jobs,
)
from emo.runs import trial_runs

REPO = Path(__file__).parents[2]
CONFIG = yaml.safe_load((REPO / "config.yaml").read_text())
RULES = "".join(path.read_text() for path in sorted((REPO / "workflow/rules").glob("*.smk")))
STUDENT = "results/me5-small/minilm-l3"
LOCAL = {"fetch", "student", "trial_student", "aggregate", "evidence"}
OURS = {"scatteritem": "part", "alignment": "request"}
"""Wildcards of the rules that have another name here."""


def parts(folder):
    return ["1-of-2", "2-of-2"]


@pytest.fixture
def study():
    return parse_study(CONFIG)


def blocks():
    """The text of each rule that is no local rule."""
    start = r"^(?:use rule \w+ as |rule )(\w+)(?: with)?:\n"
    found = re.split(start, RULES, flags=re.MULTILINE)[1:]
    rules = dict(zip(found[::2], found[1::2], strict=True))
    assert rules.keys() > LOCAL
    return {rule: text for rule, text in rules.items() if rule not in LOCAL}


def named(pattern):
    """A rule's pattern with the names of this list."""
    return re.sub(r"\{(\w+)\}", lambda match: f"{{{OURS.get(match[1], match[1])}}}", pattern)


def test_every_rule_but_local_ones_is_listed_and_measured_where_the_list_says():
    rules = blocks()
    assert rules.keys() == RESULTS.keys() == BENCHMARKS.keys()
    for rule, text in rules.items():
        measured = re.search(r'benchmark:\n +"(.+)"', text)
        assert measured, f"rule {rule} has no benchmark"
        assert named(measured[1]) == f"results/benchmarks/{rule}/{BENCHMARKS[rule]}.tsv"


def test_results_are_outputs_of_the_rules():
    for rule, text in blocks().items():
        output = text.partition("output:")[2].partition("log:")[0]
        assert f'"{RESULTS[rule]}"' in named(output), rule


def test_the_default_study_lists_each_job_once(study):
    jobs = study_jobs(study, parts)
    assert len(jobs) == len(set(jobs))
    assert len({job.benchmark for job in jobs}) == len({job.result for job in jobs}) == len(jobs)
    counts = {rule: sum(job.rule == rule for job in jobs) for rule in RESULTS}
    assert counts == {
        "task": 3,
        "texts": 2,
        "model": 2,
        "tune": 0,
        "trial": 0,
        "evaluate_trial": 0,
        "choose": 0,
        "doctor": 1,
        "doctor_tuned": 0,
        "teach_basis": 0,
        "teach_shard": 4,
        "teach": 2,
        "align": 6,  # a map of each form for masses, which `emo` also selects rows by, and types
        "teach_rows_shard": 8,
        "teach_rows": 4,
        "distil": 6,
        "evaluate": 9,
        "evaluate_reference": 6,
        "speed": 2,
    }


def test_a_basis_is_fitted_where_states_are_stored_in_one():
    teachers = {"me5-small": CONFIG["teachers"]["me5-small"] | {"store": {"width": 64}}}
    jobs = study_jobs(parse_study(CONFIG | {"teachers": teachers}), parts)
    assert [job.texts for job in jobs if job.rule == "teach_basis"] == ["questions", "sentences"]


def test_signals_are_those_that_the_method_asks_for(study):
    where = ("me5-small", "minilm-l3", "sentences")
    assert signal_jobs(study, *where, "pooled") == {}
    found = signal_jobs(study, *where, "emo-paper")
    assert {name: job.result for name, job in found.items()} == {
        "alignment": f"{STUDENT}/alignment/sentences/mined-masses.original.parquet",
        "rows": f"{STUDENT}/rows/sentences/"
        "normalised.mined-types.content.third.apart.k2/store.json",
    }
    assert row_map_job(found["rows"]).request == "mined-types.normalised"


def test_online_the_teacher_and_the_map_of_the_rows_take_the_place_of_rows():
    teachers = {"me5-small": CONFIG["teachers"]["me5-small"] | {"store": {"states": "online"}}}
    study = parse_study(CONFIG | {"teachers": teachers})
    assert not {"teach_rows", "teach_rows_shard"} & {job.rule for job in study_jobs(study, parts)}
    where = ("me5-small", "minilm-l3", "sentences")
    assert signal_jobs(study, *where, "pooled") == {}
    found = signal_jobs(study, *where, "emo-paper")
    assert {name: job.result for name, job in found.items()} == {
        "alignment": f"{STUDENT}/alignment/sentences/mined-masses.original.parquet",
        "row_alignment": f"{STUDENT}/alignment/sentences/mined-types.normalised.parquet",
        "teacher": "resources/models/me5-small",
    }


def test_a_tuned_teacher_is_tuned_and_examined_for_each_text_set():
    """What is examined and asked online is the tuned one; another form of it is not made."""
    entry = CONFIG["teachers"]["me5-small"] | {
        "tuning": {"kind": "lora"},
        "store": {"states": "online"},
    }
    study = parse_study(CONFIG | {"teachers": {"me5-small": entry}})
    jobs = study_jobs(study, parts)
    for rule in ("tune", "doctor_tuned"):
        assert [job.texts for job in jobs if job.rule == rule] == ["questions", "sentences"]
    assert "doctor" not in {job.rule for job in jobs}
    assert Job("model", "me5-small") in jobs, "it is tuned from there"
    found = signal_jobs(study, "me5-small", "minilm-l3", "sentences", "emo")
    assert found["teacher"].result == "results/me5-small/tuned/sentences/model"


def test_a_model_is_named_by_its_role():
    assert Job("model", teacher="e5").result == "resources/models/e5"
    assert Job("evaluate_reference", student="minilm", task="trec").result == (
        "results/reference/minilm/trec/scores.json"
    )


def test_a_search_tries_every_rate_on_every_task_before_the_choice():
    study = parse_study(CONFIG | {"search": {"learning_rate": [1e-4, 3e-4]}})
    jobs = list(search_jobs(study, "me5-small", "minilm-l3", "sentences", "emo"))
    folder = "results/me5-small/minilm-l3/search/sentences/emo"
    assert [job.result for job in jobs] == [
        f"{folder}/rate0.0001/training.json",
        f"{folder}/rate0.0001/stsb/scores.json",
        f"{folder}/rate0.0001/stsb-pairs/scores.json",
        f"{folder}/rate0.0003/training.json",
        f"{folder}/rate0.0003/stsb/scores.json",
        f"{folder}/rate0.0003/stsb-pairs/scores.json",
        f"{folder}/chosen.json",
    ]
    assert set(jobs) <= set(study_jobs(study, lambda folder: ["1-of-1"]))
    runs = trial_runs(study, "me5-small", "minilm-l3", "sentences", "emo", "0.0001")
    assert {(run.method, run.seed) for run in runs} == {("emo@0.0001", 0)}


def test_no_search_no_trials():
    study = parse_study(CONFIG)
    assert not list(search_jobs(study, "me5-small", "minilm-l3", "sentences", "emo"))
