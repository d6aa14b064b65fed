"""Batches of the tiny text set for each form, and the methods that read them."""

import pytest
import torch

from emo.alignment import paper_text, read_alignment
from emo.batches import Collator, RowSignals, TokenSignals
from emo.config import EmoPaperSettings, EmoSettings, PooledSettings
from emo.encoder import load_encoder
from emo.methods import build_method
from emo.store import Store
from emo.texts import text_key

CPU = torch.device("cpu")
SETTINGS = {
    "pooled": PooledSettings(form="pooled"),
    "emo": EmoSettings(form="emo"),
    "emo-paper": EmoPaperSettings(form="emo-paper"),
}
LAYERS = {"pooled": 0, "emo": 1, "emo-paper": 2}


@pytest.fixture
def student(tiny):
    """A fresh student without dropout."""
    return load_encoder(tiny.student, device=CPU).eval()


@pytest.fixture
def student_of(tiny):
    """A fresh student as a form trains it: all but the paper's have a head, here a random one."""

    def student_of(form):
        student = load_encoder(tiny.student, device=CPU).eval()
        if form != "emo-paper":
            torch.manual_seed(5)
            student.add_head(torch.nn.Linear(32, 48))
        return student.eval()

    return student_of


@pytest.fixture(scope="session")
def collators(tiny):
    """A collator for each form."""
    encoder = load_encoder(tiny.student, device=CPU)
    tokenizer = encoder.tokenizer()
    texts = list(tiny.texts_read)
    shared = {
        "tokenized": tokenizer(texts),
        "keys": [text_key(text) for text in texts],
        "pad_id": encoder.pad_id,
        "signals": Store(tiny.store),
    }
    paper_inputs = tokenizer([paper_text(text, tokenizer) for text in texts])
    return {
        "pooled": Collator(**shared),
        "emo": Collator(
            **shared,
            tokens=TokenSignals("importance", read_alignment(tiny.alignment("mined"))),
            rows=RowSignals(Store(tiny.rows("emo-k1-m8")), 1, shared["tokenized"]),
        ),
        "emo-paper": Collator(
            **shared,
            tokens=TokenSignals("importance_all", read_alignment(tiny.alignment("mined-masses"))),
            rows=RowSignals(Store(tiny.rows("emo-paper-k2")), 2, paper_inputs),
        ),
    }


@pytest.fixture
def build(tiny):
    """Build a form's method with random projections, so that no term is near its optimum."""

    def build(form, **changes):
        torch.manual_seed(3)
        store = Store(tiny.store)
        method = build_method(
            SETTINGS[form].model_copy(update=changes),
            layers=LAYERS[form],
            student_width=32,
            vector_centre=torch.from_numpy(store["vector_centre"]),
            state_centre=torch.from_numpy(store["state_centre"]),
        )
        return method.eval()

    return build


def drop_last_text(batch):
    """Take the last text out of a batch and leave the padding that it brought."""
    last = batch["input_ids"].shape[0] - 1
    kept = {name: tensor[:last] for name, tensor in batch.items()}
    if "pairs" in batch:
        kept["pairs"] = batch["pairs"][batch["pairs"][:, 0] < last]
    if "teacher_rows" in batch:
        kept["teacher_rows"] = batch["teacher_rows"][:, :last]
    return kept
