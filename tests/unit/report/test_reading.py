"""What a reader is told of scores."""

from pathlib import Path

from emo.outputs import read_json, write_json
from emo.report.reading import who_collapsed

RECORD = Path("results/e5/minilm/trained/all/emo/seed2/training.json")


def kept(study, collapsed):
    training = study.training.model_copy(update={"collapsed": collapsed})
    return study.model_copy(update={"training": training})


def test_students_that_collapsed_and_were_kept_are_named(study):
    assert who_collapsed(kept(study, "keep")) == []
    write_json(RECORD, read_json(RECORD) | {"collapsed": True})
    (told,) = who_collapsed(kept(study, "keep"))
    assert "judged as they are: e5/minilm/all/emo/seed2." in told
    assert who_collapsed(kept(study, "stop")) == []
