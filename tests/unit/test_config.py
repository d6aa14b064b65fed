"""What a study may say, and how the message reads when it says something else."""

import json
import re
from copy import deepcopy
from pathlib import Path

import pytest
import yaml

from emo.config import Study, parse_study
from emo.config_methods import EmoSettings
from emo.config_sources import HubSource, LocalSource, WheelSource
from emo.errors import ConfigError

ROOT = Path(__file__).parents[2]
CONFIG = yaml.safe_load((ROOT / "config.yaml").read_text())
REMOVE = object()


def changed(**changes):
    """Return the default config with other values, by dotted key."""
    config = deepcopy(CONFIG)
    for dotted, value in changes.items():
        *parents, last = dotted.split(".")
        place = config
        for part in parents:
            place = place[part]
        if value is REMOVE:
            del place[last]
        else:
            place[last] = value
    return config


def message(**changes):
    with pytest.raises(ConfigError) as caught:
        parse_study(changed(**changes))
    return str(caught.value)


def test_the_default_study_parses():
    study = parse_study(CONFIG)
    assert study.methods["emo"].form == "emo"
    assert isinstance(study.teachers["me5-small"].source, WheelSource)
    assert study.trained_texts() == ["questions", "sentences"]
    assert set(study.models()) == {"me5-small", "minilm-l3"}
    assert (study.text_family("questions"), study.text_family("sentences")) == (
        "classification",
        "sts",
    )


def test_every_key_of_the_model_is_described_or_plain():
    """The schema is the documentation of a study; a settings class without words explains none."""
    for definition in Study.model_json_schema()["$defs"].values():
        assert definition.get("description"), definition["title"]


@pytest.mark.parametrize(
    ("key", "value", "expected"),
    [
        ("training.stps", 5, "training.stps: unknown key; did you mean `steps`?"),
        ("training.steps", REMOVE, "training.steps: missing; add it"),
        ("training.steps", "many", "training.steps: Input should be a valid integer"),
        ("study.seeds", 1, "study.seeds: Input should be a valid list (given: 1)"),
        ("study.seeds", [1, 1], "study.seeds: name each only once"),
        ("study.seeds", [True], "study.seeds[0]: Input should be a valid integer (given: True)"),
        (
            "study.seeds",
            [2**32],
            "study.seeds[0]: Input should be less than or equal to 4294967295",
        ),
        (
            "training.steps",
            "200",
            "training.steps: Input should be a valid integer, not text (give",
        ),
        ("training.learning_rate", True, "training.learning_rate: Input should be a valid number"),
        ("training.learning_rate", "1e-4", "write 1.0e-4 for 1e-4, which YAML reads as text"),
        ("tasks.stsb-pairs.label_from_score", "3", "Input should be a valid number, not text"),
        ("methods.emo.transport", float("inf"), "methods.emo.transport: Input should be a finite"),
        (
            "tasks.trec.table.quoting",
            "no",
            "tasks.trec.table.quoting: Input should be a valid bool",
        ),
        ("study.tasks", ["trek"], "study.tasks: unknown name `trek`; did you mean `trec`?"),
        ("study.teachers", ["me5"], "study.teachers: unknown name `me5`"),
        (
            "study.compare",
            {"method": "emo", "baseline": "poled"},
            "study.compare: unknown name `poled`; did you mean `pooled`?",
        ),
        ("methods.emo.form", "emmo", "methods.emo: unknown 'form' `emmo`; did you mean `emo`?"),
        ("methods.emo.form", REMOVE, "methods.emo: needs the key 'form'"),
        ("methods.emo.attntion", 1, "methods.emo.attntion: unknown key; did you mean `attention`"),
        ("methods.emo.cka", "debias", "methods.emo.cka: unknown value `debias`; did you mean `deb"),
        ("methods.emo.cosine", -1, "methods.emo.cosine: Input should be greater than or equal to"),
        (
            "methods.pooled",
            {"form": "pooled", "cosine": 0, "relational": 0},
            "methods.pooled: give `cosine` or `relational` or `task` or `logits` a weight above 0",
        ),
        (
            "methods.emo",
            {"form": "emo", "rows": 3},
            "methods.emo: `rows: 3` is too few for `cka: debiased`, which needs 4; every text",
        ),
        (
            "methods.emo",
            {"form": "emo", "layers": [[0, 1], [0, 1]]},
            "methods.emo.layers: name no pair of layers twice",
        ),
        ("methods.emo", {"form": "emo", "rows": []}, "methods.emo.rows: expected number or word"),
        (
            "methods.emo",
            {"form": "emo", "cosine": 0, "relational": 0, "attention": 0, "transport": 0},
            "methods.emo: give `cosine` or `relational` or `task` or `logits` or `attention` or ",
        ),
        (
            "methods.emo-paper.layers",
            {"classificatn": 1},
            "methods.emo-paper.layers.classificatn: unknown value `classificatn`; did you",
        ),
        ("tasks.trec.family", "classificaton", "did you mean `classification`?"),
        ("tasks.trec.texts", "question", "tasks.trec.texts: unknown name `question`; did you mean"),
        ("tasks.trec.columns", {"txt": "x"}, "has no column `txt`; did you mean `text`?"),
        ("tasks.trec.splits", {}, "tasks.trec.splits: give either `files` or `hash`"),
        ("tasks.trec.label_from_score", 3.0, "`label_from_score` is for the family `pairs`"),
        ("tasks.trec.table", {"format": "lines"}, "tasks.trec.table: `pattern` goes with `format:"),
        ("tasks.trec.table.pattern", "(?P<text>", "`pattern` is no regular expression: missing )"),
        ("tasks.trec.table.pattern", ".+", "`pattern` needs a named group for each column"),
        ("tasks", None, "tasks: Input should be a valid dictionary"),
        ("students.minilm-l3.layers", [], "students.minilm-l3.layers: name at least one layer"),
        ("students.minilm-l3.layers", [0, 0], "and none twice"),
        ("students.minilm-l3.layers", [0, -1], "students.minilm-l3.layers[1]: Input should be gre"),
        ("texts.questions.tasks", [], "texts.questions: give either `tasks` or `corpus`"),
    ],
)
def test_a_fault_names_its_key_and_the_near_right_name(key, value, expected):
    assert expected in message(**{key: value})


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ({"wheeel": "a==1"}, "tasks.trec.source.wheeel: unknown key; did you mean `wheel`?"),
        ({"wheel": "a", "sha256": "0" * 64, "path": "x"}, "tasks.trec.source.wheel: String should"),
        ({"wheel": "a==1", "path": "x"}, "tasks.trec.source.sha256: missing; add it"),
        ({"hub": "a/b", "revision": "main"}, "tasks.trec.source.revision: String should match"),
        ({}, "tasks.trec.source.path: missing; add it"),
        ("data.csv", "tasks.trec.source: Input should be a valid dictionary"),
        (None, "tasks.trec.source: Input should be a valid dictionary"),
    ],
)
def test_a_bad_source_is_named_without_a_traceback(source, expected):
    assert expected in message(**{"tasks.trec.source": source})


@pytest.mark.parametrize(
    "laid_over", [{"hub": "a/b", "revision": "a" * 40}, {"hub": "a/b", "path": "data.csv"}]
)
def test_a_source_laid_over_another_is_refused_and_the_way_out_is_named(laid_over):
    """What Snakemake makes of a source in a --configfile whose name config.yaml declares too."""
    merged = CONFIG["tasks"]["trec"]["source"] | laid_over
    assert "wheel" in merged
    lines = message(**{"tasks.trec.source": merged}).splitlines()
    assert len(lines) == 1
    assert lines[0].startswith("tasks.trec.source: `wheel` and `hub` belong to different kinds")
    assert "declare the new source under a new name" in lines[0]
    hub = {"hub": "a/b", "revision": "a" * 40, "path": "data.csv"}
    assert "`hub` and `path` belong" in message(**{"tasks.trec.source": hub})


def test_whole_numbers_are_numbers_and_a_study_reads_back_from_its_own_dump():
    """Rules hand settings on as JSON, so what a dump says must parse under the same strictness."""
    values = {"training.learning_rate": 1, "tasks.stsb-pairs.label_from_score": 3}
    study = parse_study(changed(**values, **{"study.seeds": [2**32 - 1]}))
    assert study.training.learning_rate == 1.0
    assert parse_study(json.loads(json.dumps(study.model_dump(mode="json")))) == study


def test_families_left_out_of_the_layers_keep_their_default():
    study = parse_study(changed(**{"methods.emo-paper.layers": {"sts": 1}}))
    assert study.methods["emo-paper"].layers == {"classification": 1, "pairs": 2, "sts": 1}


def test_emo_may_do_without_any_three_terms():
    for weight in ("cosine", "relational", "attention", "transport"):
        weights = dict.fromkeys(EmoSettings.weights, 0.0) | {weight: 1.0}
        assert EmoSettings(form="emo", **weights)


@pytest.mark.parametrize(
    ("source", "kind"),
    [
        ({"path": "data.csv"}, LocalSource),
        ({"hub": "owner/name", "revision": "a" * 40}, HubSource),
    ],
)
def test_other_kinds_of_source(source, kind):
    study = parse_study(changed(**{"tasks.trec.source": source}))
    assert isinstance(study.tasks["trec"].source, kind)


def test_reserved_and_taken_names_are_refused():
    """A teacher called `store` would write its students into a folder of another meaning."""
    teacher, student = CONFIG["teachers"]["me5-small"], CONFIG["students"]["minilm-l3"]
    assert "teachers.store: the name `store` is reserved" in message(**{"teachers.store": teacher})
    taken = message(**{"students.me5-small": student})
    assert taken == "students.me5-small: a teacher has that name; choose another"
    assert message(**{"teachers.Bad_Name": teacher}).startswith("teachers.Bad_Name: String should")


def test_several_faults_give_several_lines():
    lines = message(
        **{
            "training.stps": 5,
            "training.batch_size": REMOVE,
            "teachers.me5-small.poling": "mean",
        }
    ).splitlines()
    assert lines == [
        "teachers.me5-small.poling: unknown key; did you mean `pooling`?",
        "training.batch_size: missing; add it",
        "training.stps: unknown key; did you mean `steps`?",
    ]


@pytest.mark.parametrize("config", [{}, None])
def test_an_empty_config_says_where_to_start(config):
    with pytest.raises(ConfigError, match="the config is empty; start from the config.yaml"):
        parse_study(config)


def test_a_config_of_one_part_names_every_other():
    with pytest.raises(ConfigError) as caught:
        parse_study({"training": CONFIG["training"]})
    assert str(caught.value).splitlines() == [
        f"{part}: missing; add it"
        for part, field in Study.model_fields.items()
        if field.is_required() and part != "training"
    ]


def test_the_conda_environment_has_the_versions_of_the_lock_file():
    """Two lists of pins drift apart unless something compares them."""
    lock = dict(
        line.split("==") for line in (ROOT / "requirements.lock").read_text().split() if line
    )
    *_, pip = yaml.safe_load((ROOT / "envs/emo.yaml").read_text())["dependencies"]
    pinned = dict(line.split("==") for line in pip["pip"])
    assert {_plain(name): version for name, version in pinned.items()} == {
        _plain(name): lock[name] for name in lock if _plain(name) in set(map(_plain, pinned))
    }


@pytest.mark.parametrize("profile", ["default", "slurm"])
def test_profiles_are_yaml_and_say_nothing_of_the_study(profile):
    content = yaml.safe_load((ROOT / f"profiles/{profile}/profile.yaml").read_text())
    assert content["rerun-incomplete"] is True
    assert not set(content) & set(Study.model_fields)


def _plain(name):
    return re.sub(r"[-_.]+", "-", name).lower()


@pytest.mark.parametrize(("form", "others"), [("emo", 1), ("emo-paper", 2)])
def test_families_that_are_left_out_keep_the_number_of_their_form(form, others):
    study = parse_study(changed(**{"methods.emo": {"form": form, "layers": {"classification": 3}}}))
    layers = study.methods["emo"].layers
    assert layers == {"classification": 3, "pairs": others, "sts": others}
