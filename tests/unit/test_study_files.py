"""Every study in configs/ lies over config.yaml, and says what it claims to."""

from functools import reduce
from pathlib import Path

import pytest
import yaml

from emo.config import parse_study
from emo.config_methods import EmoPaperSettings, EmoSettings
from emo.config_sources import LocalSource
from emo.errors import ConfigError
from emo.sources import require_local_sources

REPO = Path(__file__).parents[2]
EXTENDED = {
    "supervised-tenth": ["supervised"],
    "supervised-trec-tenth": ["supervised"],
    "supervised-stsb-tenth": ["supervised", "supervised-tenth"],
    "supervised-stsb-fresh": ["supervised", "supervised-tenth", "supervised-stsb-tenth"],
    "supervised-local": ["supervised"],
    "supervised-local-tenth": ["supervised", "supervised-local", "supervised-tenth"],
}
"""Studies that lie over others, too."""
STUDIES = sorted(path.stem for path in (REPO / "configs").glob("*.yaml"))


def laid_over(below, above):
    """Merge as Snakemake does: mappings key by key, anything else is replaced."""
    if not (isinstance(below, dict) and isinstance(above, dict)):
        return above
    return below | {key: laid_over(below.get(key), value) for key, value in above.items()}


def study(name, **more):
    names = [*EXTENDED.get(name, []), name]
    files = [REPO / "config.yaml", *(REPO / "configs" / f"{each}.yaml" for each in names)]
    read = [yaml.safe_load(path.read_text("utf-8")) for path in files]
    return parse_study(reduce(laid_over, read) | more)


@pytest.mark.parametrize("name", STUDIES)
def test_it_parses_and_runs_the_methods_that_it_declares(name):
    parsed = study(name)
    declared = yaml.safe_load((REPO / "configs" / f"{name}.yaml").read_text("utf-8"))
    assert set(declared.get("methods", {})) <= set(parsed.study.methods)


def test_the_ablation_turns_each_switch_alone_from_both_ends():
    ablation = study("ablation")
    forms = {"emo-less": ablation.methods["emo"], "paper-plus": ablation.methods["emo-paper"]}
    assert forms == {
        "emo-less": EmoSettings(form="emo", attention=0.2, transport=0.6),
        "paper-plus": EmoPaperSettings(form="emo-paper"),
    }
    ends = {name: method.model_dump() for name, method in forms.items()}
    switches = [key for key, value in ends["emo-less"].items() if value != ends["paper-plus"][key]]
    switches.remove("form")
    tried = []
    for start, other in (("emo-less", "paper-plus"), ("paper-plus", "emo-less")):
        for switch in switches:
            name = f"{start}-{switch.replace('_', '-')}"
            if name == "paper-plus-task":  # a student that collapses
                continue
            method = ablation.methods[name].model_dump()
            assert method == ends[start] | {switch: ends[other][switch]}, name
            tried.append(name)
    assert set(ablation.study.methods) == {"pooled", "emo-paper", "emo", *tried}


def test_local_data_lie_in_the_folder_that_is_given(tmp_path):
    local = study("local", data=str(tmp_path / "sets"))
    assert local.tasks["mrpc"].source == LocalSource(path=f"{tmp_path}/sets/mrpc")
    corpus = local.texts["nine"].corpus
    assert corpus.source == LocalSource(path=f"{tmp_path}/sets/corpus_nine_sets.csv")


def test_a_data_folder_that_is_not_given_is_asked_for():
    with pytest.raises(ConfigError, match=r"tasks\.wic\.source\.path: .* --config data=FOLDER"):
        require_local_sources(study("local"))
