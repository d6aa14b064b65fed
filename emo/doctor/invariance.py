"""Does what the teacher says of a text depend on the texts and the padding beside it?"""

import torch
from torch import Tensor, nn

from emo.doctor.finding import Difference, Finding
from emo.doctor.passes import ask, lay_out, shifted
from emo.doctor.subject import Subject

BATCH = "batch = single"
PADDING = "padding"

LONGEST = 512
"""Columns that a batch is padded to, where the teacher reads that many tokens."""

_TEXTS = 8
"""Texts padded far beyond their length; the first probes are of mixed lengths."""


def check_batches(subject: Subject) -> Finding:
    """Compare each text alone with the same text in batches of 8 and 64."""
    measured: dict[str, float] = {}
    vectors_fit = states_fit = True
    alone = subject.alone
    for size, said in subject.together.items():
        vectors = Difference.between(alone.vectors, said.vectors)
        states = Difference.between(torch.cat(alone.states), torch.cat(said.states))
        measured |= _named(f"vectors, batch {size}", vectors)
        measured |= _named(f"states, batch {size}", states)
        vectors_fit &= vectors.within(subject.tolerance)
        states_fit &= states.within(subject.tolerance)
    if vectors_fit and states_fit:
        return Finding(BATCH, "passed", "a text says the same alone and in a batch", measured)
    if vectors_fit and subject.dtype != "float32":
        return Finding(
            BATCH,
            "warning",
            f"states of single tokens depend on the batch in {subject.dtype}, vectors do not",
            measured,
            "set the teacher's `dtype` to float32 if a method reads token states",
        )
    return Finding(
        BATCH,
        "failed",
        "a text says something else alone than in a batch: padding reaches the states or the "
        "pooling",
        measured,
        f"{_precision(subject)}choose a pooling that goes by the attention mask, and an "
        "architecture that masks padding",
    )


def check_padding(subject: Subject) -> Finding:
    """Pad to the longest text and far beyond, and on the left.

    The pooling must find its tokens on either side. Whole passes may differ where an architecture
    counts positions from the first column; that matters only to who pads on the left.
    """
    texts = subject.tokenized[:_TEXTS]
    length = min(int(subject.encoder.model.max_seq_length or 0), LONGEST)
    near = ask(subject.encoder, texts, len(texts)).vectors
    far = ask(subject.encoder, texts, len(texts), length=length).vectors
    left = ask(subject.encoder, texts, len(texts), side="left").vectors
    beyond = Difference.between(near, far)
    pooled = _pooled_on_the_left(subject)
    whole = Difference.between(near, left)
    side = subject.encoder.model.tokenizer.padding_side
    measured: dict[str, float | int | str] = {
        **_named(f"padded to {length}", beyond),
        **_named("pooled on the left", pooled),
        **_named("padded on the left", whole),
        "padding side": side,
    }
    tolerance = subject.tolerance
    if not beyond.within(tolerance):
        return Finding(
            PADDING,
            "failed",
            "vectors change with the length that a batch is padded to",
            measured,
            f"{_precision(subject)}choose an architecture that masks padding",
        )
    if not pooled.within(tolerance):
        return Finding(
            PADDING,
            "failed",
            f"the pooling ({subject.pooling}) takes other tokens when padding stands on the left",
            measured,
            "pool by the attention mask: set `pooling` rather than code of the model's own",
        )
    if whole.within(tolerance):
        return Finding(PADDING, "passed", "neither side nor length of padding matters", measured)
    if side == "left":
        return Finding(
            PADDING,
            "failed",
            "the tokenizer pads on the left, where the model counts padding as positions",
            measured,
            "set `padding_side` to right in the folder's tokenizer_config.json, or prepare the "
            "teacher anew with `emo model`",
        )
    return Finding(
        PADDING,
        "passed",
        "length does not matter; the model counts padding on the left as positions, and every pass "
        "pads on the right",
        measured,
    )


@torch.inference_mode()
def _pooled_on_the_left(subject: Subject) -> Difference:
    """Put the same states behind the padding instead of before it, and pool again."""
    encoder = subject.encoder
    input_ids, mask = lay_out(subject.tokenized[:_TEXTS], encoder.pad_id)
    mask = mask.to(encoder.device)
    encoding = encoder(input_ids.to(encoder.device), mask)
    heads = nn.Sequential(*list(encoder.model)[1:])
    features: dict[str, Tensor] = heads(
        {
            "token_embeddings": shifted(encoding.states, mask),
            "attention_mask": shifted(mask, mask).long(),
        }
    )
    return Difference.between(encoding.vectors.cpu(), features["sentence_embedding"].cpu())


def _named(name: str, difference: Difference) -> dict[str, float]:
    return {f"{name}: difference": difference.largest, f"{name}: cosine": difference.cosine}


def _precision(subject: Subject) -> str:
    return (
        "" if subject.dtype == "float32" else "set the teacher's `dtype` to float32; if it stays, "
    )
