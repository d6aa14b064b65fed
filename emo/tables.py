"""Read a data file into a table of strings that remembers the row numbers of the file."""

import codecs
import csv
import json
import logging
import re
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any

import pandas as pd

from emo.config_errors import nearest
from emo.config_tasks import TableSettings
from emo.errors import ConfigError, DataError

logger = logging.getLogger(__name__)

ROW = "row"
"""Column with the 1-based number of a record in its file, a header line not counted."""

_FIELD_CHARACTERS = 2**31 - 1
"""As much as the csv module can hold on every platform; its own limit of 131,072 is too few for
documents, and strict reading catches stray quotes without it."""

_Record = tuple[int, dict[str, str]]


def read_table(path: Path, settings: TableSettings) -> pd.DataFrame:
    """Read a file; all values are strings, absent ones empty.

    Args:
        path: The data file.
        settings: Its format.

    Returns:
        The columns of the file and :data:`ROW`. In ``lines`` and ``jsonl`` files a row is a line,
        in the other formats a record: quoted line breaks do not count.

    Raises:
        DataError: The file is missing, empty, in another encoding, or a row cannot be read.
        ConfigError: ``table.encoding`` names no encoding.
    """
    if not path.is_file():
        raise DataError(f"{path} does not exist{_neighbours(path)}")
    try:
        if settings.format == "parquet":
            table = _parquet(path)
        else:
            with path.open(encoding=_encoding(settings.encoding), newline="") as stream:
                table = _text_table(path, stream, settings)
    except UnicodeDecodeError as error:
        raise DataError(
            f"{path} is not {settings.encoding} (byte 0x{error.object[error.start]:02x}: "
            f"{error.reason}); set `table.encoding` to the encoding of the file"
        ) from error
    if table.empty:
        raise DataError(f"{path} holds no rows")
    return table


def single_file(source: Path, remedy: str) -> Path:
    """Return a file, or the only one of a folder.

    Args:
        source: The file or folder.
        remedy: What to do about a folder with several files.

    Raises:
        ConfigError: The folder holds none or several.
    """
    if source.is_file():
        return source
    # Hidden files are not data: workflow engines leave time stamps in folders they made.
    entries = (entry for entry in source.iterdir() if not entry.name.startswith("."))
    files = sorted(entry for entry in entries if entry.is_file())
    if len(files) != 1:
        raise ConfigError(f"{source} holds {len(files)} files where one is wanted; {remedy}")
    return files[0]


def require_columns(table: pd.DataFrame, columns: Iterable[str], path: Path) -> None:
    """Check that a table has the columns.

    Raises:
        DataError: A column is missing; the message names the nearest one.
    """
    known = [column for column in table.columns if column != ROW]
    for column in columns:
        if column not in known:
            raise DataError(
                f"{path} has no column `{column}`{nearest(column, known)}; "
                "set `columns` or `table.names` of the task"
            )


def _encoding(name: str) -> str:
    try:
        known = codecs.lookup(name).name
    except LookupError as error:
        raise ConfigError(f"table.encoding: unknown encoding `{name}`") from error
    # A byte order mark would otherwise become part of the first column's name.
    return "utf-8-sig" if known == "utf-8" else known


def _neighbours(path: Path) -> str:
    if not path.parent.is_dir():
        return ""
    return nearest(path.name, [entry.name for entry in path.parent.iterdir()])


def _text_table(path: Path, stream: IO[str], settings: TableSettings) -> pd.DataFrame:
    match settings.format:
        case "jsonl":
            return _frame(path, _json_records(path, _lines(stream)))
        case "lines":
            assert settings.pattern is not None  # TableSettings saw to it
            return _frame(path, _matched_records(path, _lines(stream), settings.pattern))
        case _:
            return _frame(path, _separated_records(path, stream, settings))


def _frame(path: Path, records: Iterable[_Record]) -> pd.DataFrame:
    rows, values = [], []
    for row, record in records:
        _check_characters(path, row, record)
        rows.append(row)
        values.append(record)
    table = pd.DataFrame(values, dtype=object).fillna("").astype(str)
    return _with_rows(path, table, rows)


def _check_characters(path: Path, row: int, record: dict[str, str]) -> None:
    r"""Refuse half a character, which JSON can spell (``"\ud83d"``) and no UTF-8 file can hold."""
    for name, value in record.items():
        try:
            f"{name}{value}".encode()
        except UnicodeEncodeError as error:
            half = f"\\u{ord(error.object[error.start]):04x}"
            raise DataError(
                f"row {row} of {path}: `{ascii(name)[1:-1]}` holds {half}, one half of a surrogate "
                "pair; mend or remove the row"
            ) from error


def _with_rows(path: Path, table: pd.DataFrame, rows: Sequence[int]) -> pd.DataFrame:
    if ROW in table.columns:
        # The file's own `row` is of no use to us, and the name is taken.
        logger.warning("%s: its column `%s` is left out, the name is taken", path, ROW)
        table = table.drop(columns=ROW)
    table.insert(0, ROW, pd.Series(list(rows), dtype="int64", index=table.index))
    return table


def _separated_records(path: Path, stream: IO[str], settings: TableSettings) -> Iterator[_Record]:
    reader = csv.reader(
        stream,
        delimiter="\t" if settings.format == "tsv" else ",",
        quoting=csv.QUOTE_MINIMAL if settings.quoting else csv.QUOTE_NONE,
        # Lenient reading lets one stray quote swallow the rest of the file without a word.
        strict=settings.quoting,
    )
    csv.field_size_limit(_FIELD_CHARACTERS)
    names = settings.names or _header(path, reader)
    row = longer = 0
    try:
        for fields in reader:
            if not fields:  # a blank line
                continue
            row += 1
            longer += _check_width(path, row, fields, names, headed=settings.names is None)
            yield row, dict(zip(names, fields, strict=False))
    except csv.Error as error:
        raise DataError(
            f"row {row + 1} of {path}: {error}; if quotes do not enclose fields in this file, "
            "set `table.quoting: false`"
        ) from error
    if longer:
        logger.info(
            "%s: %d rows have fields beyond the named ones; these are left out", path, longer
        )


def _header(path: Path, reader: Iterator[list[str]]) -> list[str]:
    names = next((fields for fields in reader if fields), [])
    for name in names:
        if names.count(name) > 1:
            raise DataError(f"{path} has two columns `{name}`; give `table.names`")
    return names


def _check_width(
    path: Path, row: int, fields: Sequence[str], names: Sequence[str], *, headed: bool
) -> bool:
    """Return whether the row has fields too many, as headerless files such as STS-B do."""
    if len(fields) < len(names) or (headed and len(fields) > len(names)):
        raise DataError(
            f"row {row} of {path} has {len(fields)} fields, expected {len(names)} "
            f"({', '.join(names)}); check `table.format`, `table.quoting` and `table.names`"
        )
    return len(fields) > len(names)


def _lines(stream: IO[str]) -> Iterator[tuple[int, str]]:
    # Not str.splitlines, which also splits at form feeds and U+2028 inside a text.
    for number, line in enumerate(stream, start=1):
        if line.strip():
            yield number, line.rstrip("\r\n")


def _matched_records(
    path: Path, lines: Iterable[tuple[int, str]], pattern: str
) -> Iterator[_Record]:
    compiled = re.compile(pattern)
    for row, line in lines:
        match = compiled.fullmatch(line)
        if match is None:
            raise DataError(f"row {row} of {path} does not match `{pattern}`: {line[:80]!r}")
        yield row, match.groupdict(default="")


def _json_records(path: Path, lines: Iterable[tuple[int, str]]) -> Iterator[_Record]:
    for row, line in lines:
        try:
            record = json.loads(line)
        except ValueError as error:
            raise DataError(f"row {row} of {path} is not JSON: {error}") from error
        if not isinstance(record, dict):
            raise DataError(f"row {row} of {path} is not a JSON object: {line[:80]!r}")
        yield row, {name: _json_text(value) for name, value in record.items()}


def _json_text(value: Any) -> str:
    if value is None:
        return ""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def _parquet(path: Path) -> pd.DataFrame:
    try:
        table = pd.read_parquet(path)
    except (OSError, ValueError) as error:  # pyarrow's errors derive from these
        raise DataError(f"{path} is not a readable parquet file: {error}") from error
    table = table.reset_index(drop=True)
    texts = table.astype(object).where(table.notna(), "").astype(str)
    return _with_rows(path, texts, range(1, len(texts) + 1))
