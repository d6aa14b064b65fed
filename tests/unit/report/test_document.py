import dataclasses
import json
import re

import pytest

from emo.config import parse_study
from emo.errors import DataError
from emo.report import Difference
from emo.report.contrasts import Contrast
from emo.report.differences import difference_sentence, difference_tables


def written(fake, **changes):
    return fake.report(**changes)


def cells(report, start):
    line = next(line for line in report.splitlines() if line.startswith(f"| {start}"))
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_rows_are_teacher_undistilled_and_methods_in_config_order(fake):
    report = written(fake)
    models = re.findall(r"^\| (\S+(?: \(\w+\))?) \| \d", report, flags=re.MULTILINE)
    assert models[:4] == ["e5 (teacher)", "minilm (undistilled)", "pooled", "emo"]


def test_a_row_holds_scores_spread_cost_and_speed(fake):
    report = written(fake)
    header = cells(report, "model")
    assert header[1:5] == [
        "trec (macro-F1)",
        "stsb (Spearman)",
        "sick (Spearman)",
        "stsb-pairs (average precision)",
    ]
    emo, teacher = cells(report, "emo"), cells(report, "e5 (teacher)")
    scores = [run.score for run in fake.runs if (run.method, run.task) == ("emo", "trec")]
    assert emo[1].startswith(f"{50 * sum(scores):.1f} ± ")
    assert re.fullmatch(r"\d+\.\d ± \d+\.\d", emo[5])
    assert re.fullmatch(r"\d+\.\d", teacher[5])
    kept = 100 * float(emo[5].split()[0]) / float(teacher[5])
    assert float(emo[6]) == pytest.approx(kept, abs=0.2)  # from rounded averages
    assert emo[7:] == ["17.4", "640", "8.0", "400 x 64"]
    assert teacher[6:] == ["100.0", "118.0", "80", "1.0", "-"]
    assert cells(report, "minilm (undistilled)")[7:] == ["17.4", "640", "8.0", "-"]


def test_a_head_counts_in_the_parameters_and_the_speed_is_told_to_be_without_it(fake):
    for path in fake.folder.glob("emo/*/*/scores.json"):
        record = json.loads(path.read_text())
        record["model"]["parameters"] = 17_900_000
        path.write_text(json.dumps(record))
    report = written(fake)
    assert cells(report, "emo")[7:9] == ["17.9", "640"]
    assert cells(report, "pooled")[7:9] == ["17.4", "640"]
    assert "The student was measured undistilled: a head" in report


def rows_after(report, heading):
    """Return the cells of the table below a heading by the first of them."""
    lines = report[report.index(heading) :].split("\n\n")[1].splitlines()
    table = [[cell.strip() for cell in line.strip("|").split(" | ")] for line in lines]
    rows = {row[0]: row[1:] for row in table[2:]}
    assert len(rows) == len(table) - 2
    return table[0], rows


def test_every_method_meets_the_baseline_and_the_undistilled(fake):
    report = written(fake)
    header, rows = rows_after(report, "### Differences from pooled")
    assert header[:6] == [
        "method", "verdict", "average of families", "95 % interval", "p", "p (Holm)"
    ]  # fmt: skip
    assert header[6:] == ["classification", "pairs", "sts"]
    assert list(rows) == ["**emo**"]
    assert rows["**emo**"][0] == "no significant difference"
    assert not any("*" in cell for cell in rows["**emo**"])
    _, rows = rows_after(report, "### Differences from the undistilled student")
    assert set(rows) == {"**emo**", "pooled"}
    assert rows["pooled"][0] == "better"
    assert re.fullmatch(r"\+\d+\.\d\d", rows["pooled"][1])
    assert rows["pooled"][3:5] == ["0.0004", "0.0008"]
    assert re.fullmatch(r"\+\d+\.\d\d \(\+\d+\.\d\d to \+\d+\.\d\d\) \\\*", rows["pooled"][7])
    greatest = [float(row[1]) for row in rows.values()]
    assert greatest == sorted(greatest, reverse=True)


def test_resamples_left_out_are_told(fake):
    assert "Resamples without" not in written(fake)
    contrasts = [
        Contrast(
            "e5", "minilm", family, "emo", "pooled", Difference(0, 0, 0, 1.0, number), 1.0, (1,)
        )
        for family, number in {"average": 3, "sts": 7}.items()
    ]
    (note,) = difference_tables(fake.study.study.compare, ["sts"], contrasts)[2:]
    assert note.endswith("most of them, 7, of emo on sts.")


def test_tables_say_how_they_are_read(fake):
    report = written(fake)
    assert "5000 resamples of the test items" in report
    assert "never below 0.0004. Holm's correction is over all methods against one" in report
    assert "The study asks about **emo**." in report


def test_seeds_are_told(fake):
    report = written(fake)
    assert "mean ± standard deviation over the seeds 1, 2." in report


def test_one_seed_says_so(fake_of_one_seed):
    report = written(fake_of_one_seed)
    assert "trained with one seed (3)" in report
    assert "±" not in report


def test_counts_of_tasks_are_told(fake):
    report = written(fake)
    counts = report[report.index("## Test items") :]
    assert cells(counts, "trec")[1:] == ["500", "60", "80", "7", "11", "3", "9", "2", "1", "2"]
    assert "## Test items" not in written(fake, task_reports={})


def test_speeds_that_do_not_compare_give_no_speed_up(fake):
    speeds = fake.speeds
    speeds["minilm"] = dataclasses.replace(speeds["minilm"], device="cuda")
    report = written(fake, speeds=speeds)
    assert cells(report, "emo")[9] == "-"
    assert "the student's with 512 texts in batches of 32, device cuda" in report


def test_the_report_is_the_same_twice(fake):
    assert written(fake) == written(fake)


@pytest.mark.parametrize(
    ("difference", "verdict"),
    [
        (Difference(0.01, 0.001, 0.02, 0.04, 0), "emo is better."),
        (Difference(-0.01, -0.02, -0.001, 0.04, 0), "emo is worse."),
        (Difference(0.01, 0.0, 0.02, 0.04, 0), "no significant difference."),
        (Difference(0.0, -0.1, 0.1, 0.04, 7), "difference. 7 resamples without a defined score"),
    ],
)
def test_verdicts(difference, verdict):
    assert verdict in difference_sentence("emo", "pooled", difference)


def test_missing_pieces_are_named(fake):
    with pytest.raises(DataError, match="the speed of e5 was not measured"):
        written(fake, speeds={})
    (fake.folder / "trec.json").write_text(json.dumps({"sizes": {}}))
    with pytest.raises(DataError, match=r"trec\.json is no task report .*prepare trec again"):
        written(fake)
    with pytest.raises(DataError, match="there is no run of pooled"):
        written(fake, runs=[run for run in fake.runs if run.method != "pooled"])


def test_which_scores_are_those_of_heads_is_told(fake):
    assert "the head that each was trained with" not in written(fake)
    config = fake.study.model_dump(mode="json")
    config["tasks"]["trec"]["texts"] = "questions"
    config["texts"]["questions"] = {"tasks": ["trec"], "labelled": True}
    for method in config["methods"].values():
        method["task"] = 1.0
    report = written(fake, study=parse_study(config))
    assert "Students of trec were trained on labelled rows, and" in report
    assert report.count("so are the teachers that were not tuned: e5.") == 1
    config["teachers"]["e5"]["tuning"] = {"kind": "full"}
    assert "teachers that were not tuned" not in written(fake, study=parse_study(config))
