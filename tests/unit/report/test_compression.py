"""One teacher with two stores: the report says what the smaller one cost."""

import dataclasses

import pytest

from emo.config import parse_study
from emo.report import paired_difference, resample
from emo.report.averages import method_runs
from emo.report.compression import compressed_teachers
from emo.report.differences import difference_sentence
from emo.report.runs import pairs_of

from .conftest import FAMILIES, config

OTHERS = {"pooled": "emo", "emo": "pooled"}


def study_of(teachers):
    content = config((1, 2))
    content["teachers"] = teachers
    content["study"]["teachers"] = list(teachers)
    return parse_study(content)


def teacher(prompt="", **store):
    return {"source": {"path": "models/x"}, "prompt": prompt, "store": store}


@pytest.mark.parametrize(
    ("teachers", "expected"),
    [
        ({"e5": teacher(), "e5-int4": teacher(states="int4")}, [("e5-int4", "e5")]),
        ({"e5": teacher(), "e5-wide": teacher(width=4)}, [("e5-wide", "e5")]),
        ({"e5": teacher(), "other": teacher("query: ", states="int4")}, []),
        ({"e5": teacher(), "same": teacher()}, []),
        ({"e5-int8": teacher(states="int8"), "e5-int4": teacher(states="int4")}, []),
    ],
)
def test_only_one_and_the_same_teacher_is_compared(teachers, expected):
    assert compressed_teachers(study_of(teachers)) == expected


def test_every_method_is_compared_with_itself_under_the_full_store(fake):
    study = study_of({"e5": teacher(), "e5-int4": teacher(states="int4")})
    # Under the smaller store each method made the predictions that the other made in full.
    swapped = [
        dataclasses.replace(run, teacher="e5-int4", method=OTHERS.get(run.method, run.method))
        for run in fake.runs
    ]
    speeds = fake.speeds | {"e5-int4": fake.speeds["e5"]}
    report = fake.report(study=study, runs=[*fake.runs, *swapped], speeds=speeds)
    section = report[report.index("## What smaller stores cost in score") :]
    pair = pairs_of(fake.runs)[0]
    resampled = {
        name: resample(method_runs(fake.runs, pair, name, list(FAMILIES))) for name in OTHERS
    }
    lines = [line for line in section.splitlines() if line.startswith("- ")]
    assert lines == [
        "- minilm by {}: {}".format(
            name,
            difference_sentence(
                "e5-int4", "e5", paired_difference(resampled[OTHERS[name]], resampled[name])
            ),
        )
        for name in ("pooled", "emo")
    ]


def test_a_study_of_one_store_says_nothing_of_it(fake):
    assert "smaller stores" not in fake.report()
