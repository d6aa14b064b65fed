"""From the files of a training to a model and its batches."""

import logging
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import torch
from pydantic import BaseModel, ConfigDict

from emo.alignment import paper_texts, read_alignment, require_origin
from emo.batches import Collator, RowSignals, TokenSignals
from emo.config import TrainingSettings
from emo.config_methods import Family, MethodSettings, TokenTerms
from emo.encoder import Encoder, load_encoder
from emo.errors import ConfigError, DataError
from emo.methods import build_method
from emo.requests import RowRequest, SignalRequest, signal_request
from emo.store import Store
from emo.student import add_fitted_head, set_dropout
from emo.texts import TextSet, load_texts
from emo.tokens import TokenizedText
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
class DistilInputs:
    """Files that a training reads.

    Attributes:
        student: The prepared, untrained student.
        texts: The text set.
        store: The teacher's signals.
        alignment: The token map, for methods with a transport term.
        rows: The attention rows, for methods with an attention term.
    """

    student: Path
    texts: Path
    store: Path
    alignment: Path | None
    rows: Path | None


@dataclass(frozen=True, slots=True)
class Assembly:
    """What a training works with.

    Attributes:
        model: The student with its method, before the first step.
        collator: Makes batches of text numbers.
        tokenized: Student tokens of each text.
    """

    model: Distillation
    collator: Collator
    tokenized: Sequence[TokenizedText]


def assemble(settings: DistilSettings, inputs: DistilInputs) -> Assembly:
    """Load the student, give it what its method needs, and open the signals.

    Raises:
        ConfigError: There are too few texts for a batch, or a file is not given.
        DataError: A file does not fit the others or the method.
    """
    text_set = load_texts(inputs.texts)
    if len(text_set.texts) < settings.training.batch_size:
        raise ConfigError(
            f"{inputs.texts}: {len(text_set.texts)} texts do not fill one batch; lower "
            f"`training.batch_size` (now {settings.training.batch_size}) or give more texts"
        )
    student = load_encoder(inputs.student)
    tokenized = student.tokenizer()(text_set.texts)
    signals = Store(inputs.store)
    if settings.method.projection == "student":
        add_fitted_head(student, tokenized, text_set.keys, signals)
    if settings.method.dropout is not None:
        set_dropout(student, settings.method.dropout)
    if isinstance(settings.method, TokenTerms) and settings.method.task:
        _warn_of_equal_views(settings.method.dropout)
    rows = settings.request.rows
    method = build_method(
        settings.method,
        student_layers=rows.student_layers(student.layers) if rows else (),
        student_width=student.width,
        vector_centre=torch.from_numpy(signals["vector_centre"]),
        state_centre=torch.from_numpy(signals["state_centre"]),
    )
    collator = _collator(settings, inputs, student, text_set, tokenized, signals)
    return Assembly(Distillation(student, method), collator, tokenized)


def _collator(
    settings: DistilSettings,
    inputs: DistilInputs,
    student: Encoder,
    text_set: TextSet,
    tokenized: Sequence[TokenizedText],
    signals: Store,
) -> Collator:
    request = settings.request
    tokenizer = student.tokenizer()
    token_signals, row_signals = None, None
    if request.alignment is not None:
        path = _given(inputs.alignment, "an alignment", "--alignment")
        alignment = read_alignment(path)
        require_origin(
            alignment.origin,
            path,
            method=request.alignment.method,
            form=request.alignment.text,
            student=tokenizer.digest,
        )
        token_signals = TokenSignals(_importance(settings.method), alignment)
    if request.rows is not None:
        store = Store(_given(inputs.rows, "attention rows", "--rows"))
        _check_rows(store, request.rows)
        read = None
        if request.rows.map.text == "normalised":
            read = tokenizer(paper_texts(text_set.texts, tokenizer))
        row_signals = RowSignals(store, request.rows.depth, read)
    return Collator(tokenized, text_set.keys, student.pad_id, signals, token_signals, row_signals)


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


def _check_rows(store: Store, asked: RowRequest) -> None:
    """Rows of another request could be cut into layers of the wrong width without an error."""
    if store.identity["request"] != asked.name:
        raise DataError(
            f"{store.folder}: rows {store.identity['request']}, but the method asks for "
            f"{asked.name}; give those that `emo teach-rows` makes for it"
        )


def _given(path: Path | None, what: str, option: str) -> Path:
    if path is None:
        raise ConfigError(f"this method needs {what}; give {option}")
    return path
