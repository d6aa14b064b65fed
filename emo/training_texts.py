"""Gather the texts that students are trained on: none that a task of the study tests on."""

import hashlib
import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import pandas as pd

from emo.config_tasks import CorpusSettings, TextSettings
from emo.errors import ConfigError, DataError
from emo.labelled_rows import log_unusable
from emo.leakage import normalised, normalised_set, usable
from emo.outputs import write_json
from emo.tables import ROW, read_table, require_columns, single_file
from emo.tasks import TEXT_COLUMNS, load_split
from emo.texts import Text, TextSet, save_texts, text_key

logger = logging.getLogger(__name__)

_TEXTS = {column for columns in TEXT_COLUMNS.values() for column in columns}


@dataclass(frozen=True, slots=True)
class TextsReport:
    """What became of the texts of a set.

    Attributes:
        given: Texts that each task or file gave, before anything is left out.
        duplicates: Texts left out because an earlier one is the same.
        leaked: Texts left out because a test split of the study holds them.
        over_limit: Texts left out because there were more than asked for.
        texts: Texts in the set.
    """

    given: dict[str, int]
    duplicates: int
    leaked: int
    over_limit: int
    texts: int


def gather_texts(
    tasks: Sequence[Path],
    corpus: Path | None,
    settings: TextSettings | None,
    unseen: Sequence[Path],
    out: Path,
) -> TextsReport:
    """Make a text set from prepared tasks or from a file, see :func:`build_texts`.

    Args:
        tasks: The prepared tasks.
        corpus: The file, or the folder that holds it alone.
        settings: The text set's part of the study.
        unseen: Every prepared task whose test split must stay unseen.
        out: The text set.

    Raises:
        ConfigError: There are tasks and a file, or neither.
        DataError: See :func:`build_texts`.
    """
    described = settings.corpus if settings else None
    if described is not None and corpus is not None and not tasks:
        given = corpus_texts(corpus, described)
    elif described is None and corpus is None and tasks:
        given = task_texts(tasks)
    else:
        raise ConfigError("give either tasks, or --corpus with `corpus` in --settings")
    return build_texts(given, unseen, out, settings.limit if settings else None)


def task_texts(folders: Sequence[Path]) -> dict[str, list[str]]:
    """Return the train texts of prepared tasks, by task.

    Raises:
        DataError: A folder is not complete.
    """
    given = {}
    for folder in folders:
        path = folder / "texts.parquet"
        if not path.is_file():
            raise DataError(f"{path} is missing; prepare the task first")
        given[folder.name] = [str(text) for text in pd.read_parquet(path)["text"]]
    return given


def corpus_texts(source: Path, settings: CorpusSettings) -> dict[str, list[str]]:
    """Return the texts of a file, by its name; rows without text are left out with a warning.

    Raises:
        ConfigError: ``source`` is a folder of several files.
        DataError: The file cannot be read or lacks the column.
    """
    path = single_file(source, "name the file in the corpus's source")
    table = read_table(path, settings.table)
    require_columns(table, [settings.column], path)
    has_text = table[settings.column].map(usable)
    log_unusable(path, [int(row) for row in table.loc[~has_text, ROW]])
    return {path.name: table.loc[has_text, settings.column].tolist()}


def build_texts(
    given: dict[str, list[str]], test_folders: Sequence[Path], out: Path, limit: int | None = None
) -> TextsReport:
    """Unite texts, without repeats and without any test text of the study.

    A set of several tasks needs more care than a task alone: what one task trains on, another may
    test on. Texts are compared in normalised form.

    Args:
        given: Texts by where they are from, in this order.
        test_folders: Every prepared task whose test split must stay unseen.
        out: Parquet file with ``text`` and ``key``, see :func:`emo.texts.text_key`; the report is
            written beside it as JSON.
        limit: How many texts the set has. Which ones stay is told by their digests, so that a
            smaller set is part of a larger one; they keep their order.

    Raises:
        DataError: A task folder is not complete, no text is left, or fewer than the limit.
    """
    united = list(dict.fromkeys(text for texts in given.values() for text in texts))
    tested = tested_texts(test_folders)
    unseen = [text for text in united if normalised(text) not in tested]
    if not unseen:
        raise DataError(f"{out}: no text is left of {len(united)}; all are test texts")
    kept = unseen if limit is None else _limited(unseen, limit, out)
    report = TextsReport(
        given={name: len(texts) for name, texts in given.items()},
        duplicates=sum(map(len, given.values())) - len(united),
        leaked=len(united) - len(unseen),
        over_limit=len(unseen) - len(kept),
        texts=len(kept),
    )
    keys = [text_key(text) for text in kept]
    save_texts(TextSet(list[Text](kept), keys), out)
    write_json(out.with_suffix(".json"), asdict(report))
    logger.info("%s: %d texts, %d left out as test texts", out, report.texts, report.leaked)
    return report


def tested_texts(folders: Sequence[Path]) -> set[str]:
    """Return the texts that prepared tasks test on, in normalised form.

    Raises:
        DataError: A task folder has no test split.
    """
    tested: set[str] = set()
    for folder in folders:
        table = load_split(folder, "test")
        for column in _TEXTS.intersection(table.columns):
            tested |= normalised_set(table[column])
    return tested


def _limited(texts: Sequence[str], limit: int, out: Path) -> list[str]:
    if len(texts) < limit:
        raise DataError(f"{out}: {len(texts)} texts are fewer than `limit: {limit}`; lower it")
    # Not the key itself: splits are told by that digest, and a share of a share must stay even.
    ranks = {text: hashlib.sha256(f"limit\t{text}".encode()).hexdigest() for text in texts}
    chosen = set(sorted(texts, key=ranks.__getitem__)[:limit])
    return [text for text in texts if text in chosen]
