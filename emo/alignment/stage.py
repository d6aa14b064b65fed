"""The stage ``emo align``: a file of texts and two tokenizers in, a table of pairs out."""

import logging
from pathlib import Path

import torch
from transformers import AutoTokenizer, PreTrainedTokenizerBase, PreTrainedTokenizerFast

from emo.alignment.methods import align
from emo.alignment.table import write_alignment
from emo.config_methods import AlignmentMethod, TextForm
from emo.encoder import load_encoder
from emo.errors import ConfigError, DataError
from emo.texts import Text, load_texts
from emo.tokens import TextTokenizer, own_limit

logger = logging.getLogger(__name__)

USUAL_LENGTH = 512
"""Longest sequence of a tokenizer that names none, as a bare ``tokenizer.json``."""


def align_texts(
    texts: Path,
    teacher: str,
    student: str,
    method: AlignmentMethod,
    out: Path,
    form: TextForm | None = None,
) -> None:
    """Map the tokens of every text of a file.

    Args:
        texts: A text set (parquet), or a text file with one text a line.
        teacher: A prepared model folder, whose prompt and maximum length are used; or a tokenizer
            folder, a ``tokenizer.json`` file or a hub id.
        student: The same.
        method: The map, see :mod:`emo.alignment.methods`.
        out: Parquet file with columns text, teacher_position, student_position, distance.
        form: Which form of the texts is aligned; None takes the paper's for "mined-types", whose
            rows are read on it, and the original for the others.

    Raises:
        ConfigError: A tokenizer cannot be loaded, or the method is unknown.
        DataError: The texts cannot be read.
    """
    read = _read_texts(texts)
    teacher_tokenizer, student_tokenizer = load_tokenizer(teacher), load_tokenizer(student)
    form = form or ("normalised" if method == "mined-types" else "original")
    alignment = align(read, teacher_tokenizer, student_tokenizer, method, form)
    write_alignment(alignment, out)
    logger.info("%s: %s by %s on the %s text", out, alignment.statistics, method, form)


def load_tokenizer(name: str) -> TextTokenizer:
    """Load a tokenizer with the prompt and maximum length of its model, where it has them."""
    path = Path(name)
    if (path / "modules.json").is_file():
        return load_encoder(path, device=torch.device("cpu")).tokenizer()
    try:
        tokenizer: PreTrainedTokenizerBase = (
            PreTrainedTokenizerFast(tokenizer_file=name)  # type: ignore[no-untyped-call]
            if path.is_file()
            else AutoTokenizer.from_pretrained(name)
        )
    except Exception as error:  # the library raises nothing narrower for a file it cannot read
        raise ConfigError(
            f"{name}: no tokenizer folder, tokenizer.json file or hub id: {error}"
        ) from None
    return TextTokenizer(tokenizer, max_length=own_limit(tokenizer) or USUAL_LENGTH)


def _read_texts(path: Path) -> list[Text]:
    if path.suffix == ".parquet":
        return load_texts(path).texts
    try:
        # str.splitlines would also split at U+2028, and universal newlines at a lone "\r".
        with path.open(encoding="utf-8", newline="\n") as lines:
            read: list[Text] = [line.removesuffix("\n").removesuffix("\r") for line in lines]
    except (OSError, UnicodeDecodeError) as error:
        raise DataError(f"{path}: not a readable UTF-8 text file: {error}") from None
    if not read:
        raise DataError(f"{path}: holds no text; write one a line")
    return read
