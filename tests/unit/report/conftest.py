"""A finished study of made-up predictions."""

import json
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from emo.alignment.pairs import TextPairs
from emo.alignment.table import tabulate, write_alignment
from emo.config import parse_study
from emo.jobs import study_jobs
from emo.outputs import write_json
from emo.report import load_runs, load_speeds, write_report
from emo.report.contrasts import resampled_methods, study_contrasts
from emo.report.results import collect
from emo.runs import study_runs
from emo.weighted_metrics import MAIN_METRICS, main_metric

FAMILIES = {"trec": "classification", "stsb": "sts", "sick": "sts", "stsb-pairs": "pairs"}
# Tasks on the same sentences have the same digest.
ITEMS = {"trec": "aa", "stsb": "bb", "sick": "cc", "stsb-pairs": "bb"}
NOISE = {"teacher": 0.3, "undistilled": 1.6, "emo": 0.6, "pooled": 0.62}
PARAMETERS = {"teacher": 118_000_000, "undistilled": 17_400_000}
SIZES = {"trec": 80, "stsb": 90, "sick": 70, "stsb-pairs": 90}


@dataclass(frozen=True)
class FakeStudy:
    study: object
    folder: Path
    manifest: list
    speed_paths: dict
    task_reports: dict

    @property
    def runs(self):
        return load_runs(self.manifest)

    @property
    def speeds(self):
        return load_speeds(self.speed_paths)

    def report(self, **changes):
        """Write the report of the files as they are, or of what is given instead."""
        given = {"study": self.study, "runs": self.runs, "speeds": self.speeds} | changes
        chosen = given["study"].study
        results = collect(chosen, given["runs"], given["speeds"])
        resampled = {each.names: resampled_methods(each) for each in results}
        contrasts = study_contrasts(chosen.compare, resampled)
        reports, costs = given.get("task_reports", self.task_reports), given.get("costs", [])
        out = self.folder / "report.md"
        write_report(given["study"], results, resampled, contrasts, reports, costs, out)
        return out.read_text(encoding="utf-8")

    def path(self, method, task, seed=0):
        return self.folder / method / task / str(seed)


def make_study(folder, seeds=(1, 2)):
    manifest = [
        write_run(folder / method / task / str(seed), task, method, seed)
        for method in NOISE
        for task in FAMILIES
        for seed in (seeds if method in ("emo", "pooled") else (0,))
    ]
    speeds = {"e5": 80.0, "minilm": 640.0}
    for name, speed in speeds.items():
        write(folder / f"{name}.json", speed_record(speed))
    for task in FAMILIES:
        write(folder / f"{task}.json", task_report())
    return FakeStudy(
        study=parse_study(config(seeds)),
        folder=folder,
        manifest=manifest,
        speed_paths={name: folder / f"{name}.json" for name in speeds},
        task_reports={task: folder / f"{task}.json" for task in FAMILIES},
    )


def write_run(folder, task, method, seed):
    """Write predictions that are the gold values and noise, and the scores that follow."""
    family = FAMILIES[task]
    gold, predicted = noisy(task, family, NOISE[method], len(method) * 100 + seed)
    name, _ = MAIN_METRICS[family]
    score = main_metric(family, gold, predicted)
    folder.mkdir(parents=True)
    table = pd.DataFrame({"row": np.arange(len(gold)) + 1, "gold": gold, "predicted": predicted})
    table.to_parquet(folder / "predictions.parquet", index=False)
    record = {
        "task": task,
        "family": family,
        "metrics": {name: score, "also": 0.25},
        "main": name,
        "validation": 0.5,
        "model": {"parameters": PARAMETERS.get(method, 17_400_000)},
        "test_sha256": ITEMS[task],
        "texts": 170,
        "device": "cpu",
    }
    write(folder / "scores.json", record)
    return {
        "teacher": "e5",
        "student": "minilm",
        "task": task,
        "family": family,
        "method": method,
        "seed": seed,
        "scores": folder / "scores.json",
        "predictions": folder / "predictions.parquet",
    }


def noisy(task, family, noise, seed):
    fixed, own = np.random.default_rng(sum(map(ord, task))), np.random.default_rng(seed)
    levels = fixed.integers(0, 4, size=SIZES[task])
    blurred = levels + noise * own.normal(size=len(levels))
    if family == "classification":
        names = np.array(["a", "b", "c", "d"])
        return names[levels], names[np.clip(np.round(blurred), 0, 3).astype(int)]
    return (levels >= 2).astype(int) if family == "pairs" else levels.astype(float), blurred / 10


def write_study(seeds=(1, 2)):
    """Write all files of a finished study here, at the places of the contract."""
    study = parse_study(config(seeds))
    for run in study_runs(study):
        write_run(Path(run.folder), run.key.task, run.key.method, run.key.seed)
    Path("results/speed").mkdir()
    for model, speed in {"e5": 80.0, "minilm": 640.0}.items():
        write(Path(f"results/speed/{model}.json"), speed_record(speed))
    for task in FAMILIES:
        Path(f"resources/tasks/{task}").mkdir(parents=True)
        write(Path(f"resources/tasks/{task}/report.json"), task_report())
    write_costs(study)
    return study


@pytest.fixture
def study(tmp_path, monkeypatch):
    """The files of a finished study, in a folder that is the working one."""
    monkeypatch.chdir(tmp_path)
    return write_study()


PARTS = ("1-of-2", "2-of-2")
LOST = {"state_cosine": 0.9954321, "state_relative_error": 0.1, "state_unexplained": 0.0123}


def write_costs(study):
    """Write what the jobs of a study leave besides scores and speeds, each in its own time."""
    for number, job in enumerate(study_jobs(study, lambda folder: PARTS)):
        write_benchmark(job.benchmark, seconds=100 + number, memory=1000 + number)
        if job.rule == "teach":
            write_store(
                job.result, {"store": {"states": "int8", "width": 128, "tokens": None}}, LOST
            )
        elif job.rule == "teach_rows":
            write_store(job.result, {}, {"row_relative_error_bound": 2.0**-11})
        elif job.rule == "align":
            pairs = TextPairs(*(np.zeros(0, dtype=np.int32) for _ in range(4)), 7, 7, 0)
            write_alignment(tabulate(pairs, 50), Path(job.result))
        elif job.rule == "doctor":
            write_json(Path(job.result), {"device": "cpu"})
        elif job.rule == "distil":
            write_json(Path(job.result), training_record(study, job))


def write_benchmark(path, seconds, memory):
    """Write what Snakemake writes."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    header = "s\th:m:s\tmax_rss\tmax_vms\tmax_uss\tmax_pss\tio_in\tio_out\tmean_load\tcpu_time"
    row = f"{seconds:.4f}\t0:01:40\t{memory}\t2\t2\t2\t0.00\t0.00\t99.00\t12.00"
    path.write_text(f"{header}\n{row}\n")


def write_store(path, identity, record):
    shards = [
        {
            "name": part,
            "texts": 25,
            "tokens": 400,
            "bytes": 80_000 * (number + 1),
            "device": "gpu 1",
        }
        for number, part in enumerate(PARTS)
    ]
    sizes = {"texts": 50, "tokens": 800, "bytes": 240_000}
    write_json(Path(path), {"shards": shards, "identity": identity, "record": sizes | record})


def training_record(study, job):
    return {
        "steps": 400,
        "resumed_from_step": 100,
        "batch_size": 64,
        "device": "gpu 1",
        "identity": f"{job.method}{job.seed}",
        "settings": {
            "method": study.methods[job.method].model_dump(mode="json"),
            "training": study.training.model_dump(mode="json"),
        },
    }


def speed_record(speed, device="cpu"):
    return {
        "texts_per_second": speed,
        "texts": 512,
        "batch_size": 32,
        "device": device,
        "threads": 2,
        "processors": 4,
    }


def task_report():
    return {
        "sizes": {"train": 500, "validation": 60, "test": 80},
        "not_taken": 7,
        "leaked": {"train": 11, "validation": 3},
        "leaked_sentences": 9,
        "duplicates": 2,
        "two_labels": 1,
        "unusable": {"train": [4, 5], "test": []},
    }


def config(seeds):
    model = {"source": {"path": "models/x"}}
    tasks = {
        name: {
            "family": family,
            "texts": "all",
            "source": {"path": "data"},
            "splits": {"hash": {"test": 5, "validation": 5}},
        }
        for name, family in FAMILIES.items()
    }
    return {
        "study": {
            "teachers": ["e5"],
            "students": ["minilm"],
            "tasks": list(FAMILIES),
            "methods": ["pooled", "emo"],
            "seeds": list(seeds),
            "compare": {"method": "emo", "baseline": "pooled"},
        },
        "teachers": {"e5": model},
        "students": {"minilm": model},
        "tasks": tasks,
        "texts": {"all": {"tasks": ["trec"]}},
        "methods": {"pooled": {"form": "pooled"}, "emo": {"form": "emo"}},
        "training": {"steps": 400, "batch_size": 64, "learning_rate": 1.0e-4},
    }


def write(path, value):
    path.write_text(json.dumps(value), encoding="utf-8")


@pytest.fixture
def fake(tmp_path):
    return make_study(tmp_path)


@pytest.fixture
def fake_of_one_seed(tmp_path):
    return make_study(tmp_path, seeds=(3,))
