"""Tiny teachers of several makes, prepared once, and subjects to break."""

import shutil
from dataclasses import replace

import pytest
from transformers import AutoModel

from emo.config_models import TeacherSettings
from emo.doctor.probes import PROBE_TEXTS
from emo.doctor.subject import load_subject
from emo.models import prepare_model

from ...tiny_decoders import write_adapter, write_folder

TEXTS = PROBE_TEXTS[::4]

MAKES = {
    "bert": {},
    "cls": {"pooling": "cls", "prompt": "query : "},
    "xlm-roberta": {"prompt": "query: "},
    "mpnet": {},
    "llm2vec": {"bidirectional": True, "prompt": "Find the : ", "include_prompt": False},
    "causal-last": {"pooling": "last", "end_token": "</s>"},
    "causal-mean": {"pooling": "mean"},
    "qwen3": {"pooling": "last", "end_token": "<|endoftext|>", "prompt": "query: "},
}
ARCHITECTURES = {
    "cls": "bert",
    "llm2vec": "mistral",
    "causal-last": "mistral",
    "causal-mean": "llama",
}


@pytest.fixture(scope="session")
def prepared(tmp_path_factory):
    """Prepare a make, once; the folder is to be read only."""
    made = {}

    def prepare(make):
        if make not in made:
            folder = tmp_path_factory.mktemp(make)
            name = ARCHITECTURES.get(make, make)
            source = write_folder(name, folder / "source")
            adapters = []
            if make == "llm2vec":
                base = AutoModel.from_pretrained(source)
                adapters = [write_adapter(base, folder / part, ord(part)) for part in "ab"]
            settings = TeacherSettings(
                source={"path": "x"},
                adapters=[{"path": "x"} for _ in adapters],
                max_length=40,
                **MAKES[make],
            )
            prepare_model(settings, source, folder / "out", adapters)
            made[make] = folder / "out"
        return made[make]

    return prepare


@pytest.fixture
def copied(prepared, tmp_path):
    """A copy of a prepared folder, to be damaged."""

    def copy(make):
        return shutil.copytree(prepared(make), tmp_path / make)

    return copy


@pytest.fixture
def subject(prepared):
    """A freshly loaded subject, to be damaged."""

    def load(make, dtype="float32"):
        return load_subject(prepared(make), TEXTS, dtype)

    return load


@pytest.fixture
def declare():
    """Return a subject whose folder declares something else."""

    def change(subject, **settings):
        record = subject.record | {"settings": subject.record["settings"] | settings}
        return replace(subject, record=record)

    return change
