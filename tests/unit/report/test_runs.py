import json

import pytest

from emo.errors import DataError
from emo.report import load_runs


def edit(path, **changes):
    path.write_text(json.dumps({**json.loads(path.read_text()), **changes}))


def test_runs_are_sorted_whatever_the_order_of_the_manifest(fake):
    assert load_runs(fake.manifest[::-1]) == load_runs(fake.manifest)
    first = load_runs(fake.manifest)[0]
    assert (first.task, first.method, first.seed) == ("sick", "emo", 1)
    assert first.score == first.metrics["spearman"]


def test_an_empty_manifest_is_refused():
    with pytest.raises(DataError, match="lists no run"):
        load_runs([])


def test_a_missing_key_is_named(fake):
    entry = {key: value for key, value in fake.manifest[0].items() if key != "seed"}
    with pytest.raises(DataError, match="lacks seed"):
        load_runs([entry])


def test_a_run_listed_twice_is_refused(fake):
    with pytest.raises(DataError, match="e5/minilm/trec/teacher/seed0 twice"):
        load_runs([*fake.manifest, fake.manifest[0]])


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"task": "sick"}, "classification task sick, but .* task trec"),
        ({"main": "mcc"}, "main metric mcc is missing"),
        ({"metrics": {"macro_f1": float("nan")}}, "not finite"),
        ({"metrics": {"macro_f1": "high"}}, "no score file .*high"),
        ({"model": {}}, "no score file .*parameters"),
        ({"test_sha256": "text"}, "no score file"),
    ],
)
def test_a_wrong_score_file_is_named(fake, changes, words):
    path = fake.path("teacher", "trec") / "scores.json"
    edit(path, **changes)
    with pytest.raises(DataError, match=f"scores.json.*{words}"):
        load_runs(fake.manifest)


def test_a_missing_score_file_is_named(fake):
    (fake.path("teacher", "trec") / "scores.json").unlink()
    with pytest.raises(DataError, match=r"trec/0/scores\.json is missing"):
        load_runs(fake.manifest)
