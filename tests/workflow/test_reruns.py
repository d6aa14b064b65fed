"""What runs again after a change, and what does not."""

import json
import re
import shutil
from base64 import urlsafe_b64encode

import pytest

from .study_folder import REPO, StudyFolder, tiny_config

pytestmark = pytest.mark.workflow


def test_second_run_has_nothing_to_do(study):
    outcome = study.plan()
    assert outcome.code == 0, outcome.output
    assert outcome.nothing_to_do, outcome.output


def test_weight_of_one_method_reruns_that_method_alone(study):
    config = tiny_config()
    config["methods"]["emo"]["transport"] = 2.0
    outcome = study.plan(config=config)
    assert outcome.jobs == {"distil": 1, "student": 3, "evaluate": 3, "aggregate": 1, "all": 1}
    assert "Distil tiny-teacher into tiny-student on all-texts: emo, seed 1" in outcome.output


def test_a_task_on_another_text_set_is_prepared_as_it_was(study):
    config = tiny_config()
    config["texts"]["others"] = {"tasks": ["sentences"]}
    config["tasks"]["sentences"]["texts"] = "others"
    jobs = study.plan(config=config).jobs
    assert jobs["texts"] == 1
    assert not {"task", "evaluate_reference"} & jobs.keys()


def test_another_layer_count_asks_the_teacher_for_rows_and_nothing_else(study):
    config = tiny_config()
    config["methods"]["emo"]["layers"] = 2
    jobs = study.plan(config=config).jobs
    assert jobs["teach_rows"] == jobs["distil"] == 1
    assert jobs["teach_rows_shard"] == 2
    assert "teach_shard" not in jobs
    assert "align" not in jobs


@pytest.mark.parametrize(
    ("file", "rule", "count"),
    [
        ("data/questions.csv", "task", 1),
        ("data/sentences/validation.tsv", "task", 2),
        ("models/student/tokenizer.json", "model", 1),
    ],
)
def test_change_inside_a_local_file_or_folder_is_seen(study, file, rule, count):
    path = study.path / file
    path.write_text(path.read_text().replace("the", "teh"))
    assert study.plan().jobs[rule] == count


@pytest.fixture
def edited(study, tmp_path):
    """The finished study as seen by a copy of the code, which tests edit."""
    code = tmp_path / "code"
    unwanted = shutil.ignore_patterns("__pycache__")
    for name in ("emo", "workflow", "envs"):
        shutil.copytree(REPO / name, code / name, ignore=unwanted)
    shutil.copy(REPO / "Snakefile", code)
    return StudyFolder(study.path, code)


def edit(folder, file, pattern, replacement):
    path = folder.repo / file
    text, count = re.subn(pattern, replacement, path.read_text(), count=1, flags=re.MULTILINE)
    assert count == 1, f"{file} has no {pattern}"
    path.write_text(text)


def test_comments_rerun_nothing_and_a_constant_what_depends_on_it(edited):
    for file in ("emo/losses/transport.py", "emo/teach.py", "emo/config.py", "emo/tasks.py"):
        edit(edited, file, r"\A", "# A comment.\n")
    edit(edited, "emo/losses/transport.py", r"^    Formula:$", "    The formula:")
    outcome = edited.plan()
    assert outcome.nothing_to_do, outcome.output

    edit(edited, "emo/losses/plan.py", r"^TOLERANCE: Final = 1e-5$", "TOLERANCE: Final = 1e-6")
    assert edited.plan().jobs == {
        "distil": 3,
        "student": 9,
        "evaluate": 9,
        "aggregate": 1,
        "all": 1,
    }


def test_another_doctor_examines_again_and_stores_nothing_again(edited):
    edit(edited, "emo/doctor/probes.py", r"^LEAST_TEXTS = 8$", "LEAST_TEXTS = 9")
    assert edited.plan().jobs == {"doctor": 1, "aggregate": 1, "all": 1}


def test_code_of_the_evaluation_reruns_no_training(edited):
    edit(edited, "emo/metrics.py", r"^MAX_ITERATIONS = 2000$", "MAX_ITERATIONS = 2001")
    assert edited.plan().jobs == {
        "evaluate": 9,
        "evaluate_reference": 6,
        "aggregate": 1,
        "all": 1,
    }


SHARD = "results/tiny-teacher/store/all-texts/2-of-2"
STORE = "results/tiny-teacher/store/all-texts/store.json"


def test_folder_left_half_written_is_made_again(study):
    """After a power cut, say: the folder is there, and Snakemake's mark that it is not whole."""
    (study.path / SHARD / "manifest.json").unlink()
    mark = urlsafe_b64encode(SHARD.encode()).decode()
    (study.path / ".snakemake" / "incomplete" / mark).write_text(
        json.dumps({"external_jobid": None})
    )
    outcome = study.plan()
    assert outcome.jobs["teach_shard"] == outcome.jobs["teach"] == 1, outcome.output
    assert outcome.jobs["distil"] == 3
    assert "align" not in outcome.jobs


def test_a_damaged_shard_is_named_and_it_alone_is_made_again(study):
    """Bit for bit the same, so that nothing that was made from it is made again."""
    before = {path.name: path.read_bytes() for path in (study.path / SHARD).iterdir()}
    states = study.path / SHARD / "states.npy"
    states.write_bytes(states.read_bytes()[:-1] + b"\x7f")
    check = study.emo("store", "verify", STORE)
    assert check.code == 1
    found = re.search(
        r"2-of-2/states.npy: damaged; remove (\S+) and run `snakemake (.+?)`", check.output
    )
    assert found is not None, check.output
    assert found[1] == SHARD
    shutil.rmtree(study.path / found[1])
    outcome = study.snakemake(*found[2].split())
    assert outcome.code == 0, outcome.output
    assert outcome.jobs == {"teach_shard": 1, "teach": 1}
    assert {path.name: path.read_bytes() for path in (study.path / SHARD).iterdir()} == before
    assert study.emo("store", "verify", STORE).code == 0
    told = {"aggregate": 1, "all": 1}  # what the shard cost this time
    assert study.plan().jobs == told, "the store is the same"


def test_a_shard_that_is_gone_is_made_again(study):
    shutil.rmtree(study.path / SHARD)
    jobs = study.plan().jobs
    assert jobs["teach_shard"] == jobs["teach"] == 1


def test_another_prompt_is_another_store(study):
    config = tiny_config()
    config["teachers"]["tiny-teacher"]["prompt"] = "passage: "
    jobs = study.plan(config=config).jobs
    assert (jobs["teach_shard"], jobs["teach"], jobs["distil"]) == (2, 1, 3)


def test_smaller_states_leave_the_model_and_the_maps_as_they_are(study):
    config = tiny_config()
    config["teachers"]["tiny-teacher"]["store"] = {"states": "int8", "width": 12, "tokens": 6}
    config["study"]["methods"] = ["pooled", "emo"]
    jobs = study.plan(config=config).jobs
    assert (jobs["teach_basis"], jobs["teach_shard"], jobs["teach"]) == (1, 2, 1)
    assert not {"model", "align"} & jobs.keys()
    target = "results/tiny-teacher/store/all-texts/store.json"
    outcome = study.snakemake(target, config=config)
    assert outcome.code == 0, outcome.output
    record = json.loads((study.path / target).read_text())["record"]
    assert 0.5 < record["state_cosine"] < 1
    assert 0 < record["importance_kept"] < 1


def test_online_the_training_asks_the_teacher_for_states_and_rows(study):
    """Losses are those of the stored way; the pooled method asks nothing, so it reads nothing."""
    config = tiny_config()
    config["teachers"]["tiny-teacher"]["store"] = {"states": "online"}
    jobs = study.plan(config=config).jobs
    assert (jobs["teach_shard"], jobs["teach"], jobs["distil"]) == (2, 1, 3)
    assert not {"model", "align", "teach_rows", "teach_rows_shard"} & jobs.keys()
    out = study.path / "results/tiny-teacher/tiny-student/trained/all-texts/emo/seed1"
    stored = (out / "history.jsonl").read_text()
    target = str((out / "training.json").relative_to(study.path))
    outcome = study.snakemake(target, config=config)
    assert outcome.code == 0, outcome.output
    assert outcome.jobs == {"teach_shard": 2, "teach": 1, "distil": 1}
    assert not list((study.path / "results/tiny-teacher/store").rglob("states.npy"))
    first, expected = (
        json.loads(text.splitlines()[0]) for text in ((out / "history.jsonl").read_text(), stored)
    )
    assert first["terms"] == pytest.approx(expected["terms"], abs=1e-4)


def test_another_student_with_the_same_request_asks_the_teacher_nothing(study):
    config = tiny_config()
    config["students"]["twin"] = config["students"]["tiny-student"] | {"layers": [1, 2, 4]}
    config["study"]["students"].append("twin")
    request = "original.mined.text.m4.paired.k1"
    rows = f"results/tiny-teacher/{{}}/rows/all-texts/{request}"
    target = f"{rows.format('twin')}/store.json"
    outcome = study.snakemake(target, config=config)
    assert outcome.code == 0, outcome.output
    assert outcome.jobs["teach_rows_shard"] == 2
    assert "teach_shard" not in outcome.jobs
    for part in ("1-of-2", "2-of-2"):
        log = study.path / "logs/teach_rows_shard/tiny-teacher/twin/all-texts" / request
        assert "teacher passes: 0" in (log / f"{part}.log").read_text()
        twins = [study.path / rows.format(s) / part for s in ("tiny-student", "twin")]
        one, other = ((folder / "values.npy").read_bytes() for folder in twins)
        assert one == other
