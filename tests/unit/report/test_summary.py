import pandas as pd

from emo.report import load_runs, write_summary


def test_the_table_is_long_and_has_one_main_metric_a_run(fake):
    out = fake.folder / "summary.csv"
    write_summary(fake.runs, out)
    table = pd.read_csv(out)
    columns = "teacher,student,task,family,method,seed,metric,score,main,validation"
    assert ",".join(table.columns) == columns
    assert (table["validation"].notna() == table["main"]).all()
    run = ["teacher", "student", "task", "method", "seed"]
    assert len(table) == 2 * len(fake.manifest)
    assert (table.groupby(run)["main"].sum() == 1).all()
    assert set(table["metric"][~table["main"]]) == {"also"}


def test_scores_keep_every_digit(fake):
    out = fake.folder / "summary.csv"
    write_summary(fake.runs, out)
    written = pd.read_csv(out, dtype=str)
    expected = {repr(run.score) for run in fake.runs}
    assert set(written["score"][written["main"] == "True"]) == expected


def test_equal_runs_give_equal_bytes(fake):
    first, second = fake.folder / "1.csv", fake.folder / "2.csv"
    write_summary(fake.runs, first)
    write_summary(load_runs(fake.manifest[::-1]), second)
    assert first.read_bytes() == second.read_bytes()
