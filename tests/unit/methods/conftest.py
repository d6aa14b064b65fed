"""Batches of the tiny text set for each form, and the methods that read them."""

import pytest
import torch

from emo.alignment import paper_texts, read_alignment
from emo.batches import Collator, TokenSignals
from emo.config_methods import EmoPaperSettings, EmoSettings, PooledSettings
from emo.encoder import load_encoder
from emo.methods import build_method
from emo.requests import signal_request
from emo.store import Store
from emo.texts import text_key
from emo.token_source import StoredSource

CPU = torch.device("cpu")
SETTINGS = {
    "pooled": PooledSettings(form="pooled"),
    "emo": EmoSettings(form="emo"),
    "emo-paper": EmoPaperSettings(form="emo-paper"),
}


@pytest.fixture
def student(tiny):
    """A fresh student without dropout."""
    return load_encoder(tiny.student, device=CPU).eval()


@pytest.fixture
def student_for(tiny):
    """A fresh student as a method trains it: with a head, here a random one, where it has one."""

    def student_for(settings):
        student = load_encoder(tiny.student, device=CPU).eval()
        if settings.projection == "student":
            torch.manual_seed(5)
            student.add_head(torch.nn.Linear(32, 48))
        return student.eval()

    return student_for


@pytest.fixture
def student_of(student_for):
    """A fresh student as a form trains it."""
    return lambda form: student_for(SETTINGS[form])


def collators_of(tiny):
    """Make collators of a text set, each with all that a method asks for."""
    encoder = load_encoder(tiny.student, device=CPU)
    tokenizer = encoder.tokenizer()
    texts = list(tiny.texts_read)
    tokenized = tokenizer(texts)
    normalised = tokenizer(paper_texts(texts, tokenizer))
    keys, signals = [text_key(text) for text in texts], Store(tiny.store)

    def collator_for(settings, family="sts"):
        request = signal_request(settings, family)
        tokens, rows, read = None, None, None
        if request.alignment:
            every = settings.tokens == "all"
            alignment = read_alignment(tiny.alignment(request.alignment.name))
            tokens = TokenSignals("importance_all" if every else "importance", alignment)
        if request.rows:
            read = normalised if settings.row_text == "normalised" else None
            rows = Store(tiny.rows(request.rows.name))
        source = StoredSource(signals, keys, tokens is not None, rows)
        return Collator(tokenized, keys, encoder.pad_id, signals, source, tokens, read)

    return collator_for


@pytest.fixture(scope="session")
def collator_for(tiny):
    """A collator of the texts."""
    return collators_of(tiny)


@pytest.fixture(scope="session")
def pair_collator_for(tiny_pairs):
    """A collator of the sentence pairs."""
    return collators_of(tiny_pairs)


@pytest.fixture(scope="session")
def collators(collator_for):
    """A collator for each form."""
    return {form: collator_for(settings) for form, settings in SETTINGS.items()}


@pytest.fixture
def build_for(tiny):
    """Build a method with random projections, so that no term is near its optimum."""

    def build_for(settings, family="sts", task=None):
        torch.manual_seed(3)
        store = Store(tiny.store)
        rows = signal_request(settings, family).rows
        own = settings.form != "pooled" and settings.own_token_head
        layers = own and settings.state_layers or [1]
        method = build_method(
            settings,
            student_layers=rows.student_layers(2) if rows else (),
            student_width=32,
            vector_centre=torch.from_numpy(store["vector_centre"]),
            state_centre=torch.from_numpy(store["state_centre"]),
            token_heads=[torch.nn.Linear(32, 48) for _ in layers] if own else (),
            task=task,
        )
        return method.eval()

    return build_for


@pytest.fixture
def build(build_for):
    """Build a form's method, with other values of some settings."""
    return lambda form, **changes: build_for(SETTINGS[form].model_copy(update=changes))


def drop_last_text(batch):
    """Take the last text out of a batch and leave the padding that it brought."""
    last = batch["input_ids"].shape[0] - 1
    kept = {name: tensor[:last] for name, tensor in batch.items()}
    if "pairs" in batch:
        kept["pairs"] = batch["pairs"][batch["pairs"][:, 0] < last]
    if "teacher_rows" in batch:
        kept["teacher_rows"] = batch["teacher_rows"][:, :last]
    return kept
