"""From the files of a training to a model and its batches."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import torch
from pydantic import BaseModel, ConfigDict
from torch import nn

from emo.batches import Collator, TokenSignals
from emo.config_methods import Family, MethodSettings, TokenTerms
from emo.config_training import TrainingSettings
from emo.distil_inputs import DistilInputs, given
from emo.encoder import Encoder, load_encoder
from emo.errors import ConfigError
from emo.methods import build_method
from emo.methods.task import build_task
from emo.models.direction import sees_ahead
from emo.requests import SignalRequest, signal_request
from emo.row_texts import compared_texts
from emo.store import Store
from emo.stored_tokens import StoredTokens, tokens_of
from emo.student import add_drawn_head, add_fitted_head, set_dropout
from emo.supervision import Supervision, open_supervision
from emo.texts import count_texts
from emo.token_assembly import TokenAssembly
from emo.token_heads import fit_token_heads
from emo.trainer import Distillation

logger = logging.getLogger(__name__)


class DistilSettings(BaseModel):
    """What one training depends on besides its input files."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    method: MethodSettings
    training: TrainingSettings
    family: Family
    """Of the text set: it decides how many layers the paper's form compares."""
    seed: int

    @property
    def request(self) -> SignalRequest:
        """What the method asks for on the text set."""
        return signal_request(self.method, self.family)


@dataclass(frozen=True, slots=True)
class Assembly:
    """What a training works with.

    Attributes:
        model: The student with its method, before the first step.
        collator: Makes batches of text numbers.
        tokenized: Student tokens of each text.
        labels: Names of the classes that the student's head tells apart, if it does.
    """

    model: Distillation
    collator: Collator
    tokenized: StoredTokens
    labels: list[str]


def assemble(settings: DistilSettings, inputs: DistilInputs, folder: Path) -> Assembly:
    """Load the student, give it what its method needs, and open the signals.

    Args:
        settings: Method, budget and seed.
        inputs: Files to read.
        folder: Where the student's tokens are kept meanwhile; the training's own.

    Raises:
        ConfigError: There are too few texts for a batch, or a file is not given.
        DataError: A file does not fit the others or the method.
    """
    texts = count_texts(inputs.texts)
    if texts < settings.training.batch_size:
        raise ConfigError(
            f"{inputs.texts}: {texts} texts do not fill one batch; lower "
            f"`training.batch_size` (now {settings.training.batch_size}) or give more texts"
        )
    supervision = open_supervision(settings.method, settings.family, inputs)
    student = load_encoder(inputs.student)
    tokenized = tokens_of(inputs.texts, student.tokenizer(), folder / "tokens")
    signals = Store(inputs.store)
    if settings.method.projection == "student":
        if settings.method.head_start == "fitted":
            add_fitted_head(student, tokenized, tokenized.keys, signals)
        else:
            add_drawn_head(student, len(signals["vector_centre"]))
    if settings.method.dropout is not None:
        set_dropout(student, settings.method.dropout)
    task = None
    if supervision is not None:
        _require_summary(student, tokenized)
        task = build_task(settings.family, student.width, len(supervision.labels))
    elif settings.method.task:
        _warn_of_equal_views(settings.method.dropout)
    collator = _collator(settings, inputs, student, tokenized, signals, supervision, folder)
    token_heads: list[nn.Linear] = []
    if isinstance(settings.method, TokenTerms):
        _require_layers(settings.method.state_layers or (), student.layers)
        if settings.method.own_token_head:
            token_heads = fit_token_heads(student, settings.method, collator, texts)
    rows = settings.request.rows
    method = build_method(
        settings.method,
        student_layers=rows.student_layers(student.layers) if rows else (),
        student_width=student.width,
        vector_centre=torch.from_numpy(signals["vector_centre"]),
        state_centre=torch.from_numpy(signals["state_centre"]),
        token_heads=token_heads,
        task=task,
    )
    labels = supervision.labels if supervision is not None else []
    return Assembly(Distillation(student, method), collator, tokenized, labels)


def _collator(
    settings: DistilSettings,
    inputs: DistilInputs,
    student: Encoder,
    tokenized: StoredTokens,
    signals: Store,
    supervision: Supervision | None,
    folder: Path,
) -> Collator:
    request, tokenizer = settings.request, student.tokenizer()
    opened = TokenAssembly(inputs, student, tokenizer, signals, tokenized.keys, folder)
    tokens, row_inputs = None, None
    if request.alignment is not None:
        path = given(inputs.alignment, "an alignment", "--alignment")
        importance = _importance(settings.method)
        if importance == "importance_all" and "kept" in signals.names:
            raise ConfigError(
                f"{signals.folder}: holds states of text tokens only, but this method counts "
                "special tokens, too; leave out the teacher's `store.tokens`, or set the method's "
                "`tokens` to text"
            )
        tokens = TokenSignals(importance, opened.read_map(path, request.alignment))
    source = opened.source(request)
    if request.rows is not None and request.rows.map.text == "normalised":
        rewrite = partial(compared_texts, normaliser=tokenizer)
        row_inputs = tokens_of(inputs.texts, tokenizer, folder / "normalised-tokens", rewrite)
    return Collator(
        tokenized,
        tokenized.keys,
        student.pad_id,
        signals,
        source,
        tokens,
        row_inputs,
        supervision,
    )


def _require_summary(student: Encoder, tokenized: StoredTokens) -> None:
    """Check that the first token can speak for a text: a head reads its state."""
    if tokenized[0].special[0] and sees_ahead(student.transformer):
        return
    raise ConfigError(
        "the head of a labelled text set reads the state of the student's first token, and this "
        "student's is a word, or sees no other token; choose a student like BERT, or leave "
        "`labelled` out of the text set"
    )


def _require_layers(chosen: Sequence[int], layers: int) -> None:
    for layer in chosen:
        if layer >= layers:
            raise ConfigError(
                f"state_layers: {layer} is out of range, the student has the layers 0 to "
                f"{layers - 1}; change `state_layers` in the method"
            )


def _warn_of_equal_views(dropout: float | None) -> None:
    if dropout == 0.0:
        logger.warning(
            "the task term compares two dropout views of a text, but `dropout` is 0, so that both "
            "are the same: it only pushes texts apart; set `dropout: null` for the model's own"
        )


def _importance(method: MethodSettings) -> str:
    """Name the importance signal: over the tokens that give mass."""
    every = isinstance(method, TokenTerms) and method.tokens == "all"
    return "importance_all" if every else "importance"
