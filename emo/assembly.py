"""From the files of a training to a model and its batches."""

import logging
from collections.abc import Iterator, Sequence
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
from emo.stored_tokens import StoredTokens, store_tokens
from emo.student import add_fitted_head, set_dropout
from emo.texts import count_texts, text_chunks
from emo.tokens import TEXTS_PER_CALL, TextTokenizer, TokenizedText
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
        store: The file of the store of the teacher's signals.
        alignment: The token map, for methods with a transport term.
        rows: The file of the store of attention rows, for methods with an attention term.
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
    tokenized: StoredTokens


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
    student = load_encoder(inputs.student)
    tokenized = _tokens(student.tokenizer(), inputs.texts, folder / "tokens")
    signals = Store(inputs.store)
    if settings.method.projection == "student":
        add_fitted_head(student, tokenized, tokenized.keys, signals)
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
    collator = _collator(settings, inputs, student, tokenized, signals, folder)
    return Assembly(Distillation(student, method), collator, tokenized)


def _collator(
    settings: DistilSettings,
    inputs: DistilInputs,
    student: Encoder,
    tokenized: StoredTokens,
    signals: Store,
    folder: Path,
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
            teacher=signals.identity["tokenizer"],
            student=tokenizer.digest,
        )
        importance = _importance(settings.method)
        if importance == "importance_all" and "kept" in signals.names:
            raise ConfigError(
                f"{signals.folder}: holds states of text tokens only, but this method counts "
                "special tokens, too; leave out the teacher's `store.tokens`, or set the method's "
                "`tokens` to text"
            )
        token_signals = TokenSignals(importance, alignment)
    if request.rows is not None:
        store = Store(_given(inputs.rows, "attention rows", "--rows"))
        _check_rows(store, request.rows, student.layers, tokenizer, signals)
        read = None
        if request.rows.map.text == "normalised":
            read = _tokens(tokenizer, inputs.texts, folder / "normalised-tokens", normalised=True)
        row_signals = RowSignals(store, request.rows.depth, read)
    return Collator(tokenized, tokenized.keys, student.pad_id, signals, token_signals, row_signals)


def _tokens(
    tokenizer: TextTokenizer, texts: Path, folder: Path, normalised: bool = False
) -> StoredTokens:
    """Tokenize a text set onto the disk, or find it there: the folder is this training's own."""

    def chunks() -> Iterator[tuple[Sequence[str], Sequence[TokenizedText]]]:
        for chunk in text_chunks(texts, range(count_texts(texts)), TEXTS_PER_CALL):
            read = paper_texts(chunk.texts, tokenizer) if normalised else chunk.texts
            yield chunk.keys, tokenizer(read)

    return store_tokens(folder, chunks())


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


def _check_rows(
    store: Store,
    asked: RowRequest,
    student_layers: int,
    student_tokenizer: TextTokenizer,
    signals: Store,
) -> None:
    """Rows of another request, student or teacher would often fit, and teach nonsense."""
    expected = {
        "request": asked.name,
        "signals": signals.digest,
        "student_layers": student_layers,
        "student_tokenizer": student_tokenizer.digest,
    }
    for name, value in expected.items():
        if store.identity[name] != value:
            told = f"{name} {store.identity[name]}, but the method asks for {value}"
            raise DataError(
                f"{store.folder}: rows of {told}; give those that `emo teach-rows` makes for it"
            )


def _given(path: Path | None, what: str, option: str) -> Path:
    if path is None:
        raise ConfigError(f"this method needs {what}; give {option}")
    return path
