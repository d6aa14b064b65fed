"""What the stores of a study take by text and by token, beside what is lost by it."""

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from emo.errors import DataError
from emo.jobs import Job
from emo.outputs import read_json
from emo.report.table import markdown_table


def stores_table(jobs: Sequence[Job]) -> str:
    """Return the sizes of gathered stores of signals and what was lost of the token states.

    Raises:
        DataError: A store is missing or damaged.
    """
    header = [
        "store of",
        "states",
        "texts",
        "teacher tokens",
        "MB",
        "bytes a text",
        "bytes a token",
        "cosine of states",
        "variance lost (%)",
        "importance kept (%)",
    ]
    rows = []
    for job in jobs:
        record, identity = _read(job)
        rows.append(
            [
                f"{job.teacher}, {job.texts}",
                _states(identity),
                *_sizes(job, record),
                _number(record, "state_cosine", 1, ".5f"),
                _number(record, "state_unexplained", 100, ".3f"),
                _number(record, "importance_kept", 100, ".1f"),
            ]
        )
    note = (
        "Tokens are the teacher's, without its prompt. What is lost is measured on every stored "
        "token state: the mean cosine to the state as the teacher gave it, and the share of the "
        "variance; of the importance, what the tokens have that keep their state."
    )
    return f"{note}\n\n{markdown_table(header, rows, words=2)}"


def rows_table(jobs: Sequence[Job]) -> str:
    """Return the sizes of gathered stores of attention rows.

    Raises:
        DataError: A store is missing or damaged.
    """
    header = ["attention rows of", "request", "texts", "teacher tokens", "MB", "bytes a text"]
    header += ["bytes a token", "largest relative error"]
    rows = []
    for job in jobs:
        record, _ = _read(job)
        where = f"{job.teacher} to {job.student}, {job.texts}"
        bound = _number(record, "row_relative_error_bound", 1, ".1e")
        rows.append([where, f"`{job.request}`", *_sizes(job, record), bound])
    return markdown_table(header, rows, words=2)


def _read(job: Job) -> tuple[Mapping[str, Any], Mapping[str, Any]]:
    content = read_json(Path(job.result))
    return content["record"], content["identity"]


def _sizes(job: Job, record: Mapping[str, Any]) -> list[str]:
    try:
        texts, tokens, size = (record[name] for name in ("texts", "tokens", "bytes"))
    except KeyError as error:
        raise DataError(f"{job.result}: does not say its {error}; make the store again") from error
    return [
        f"{texts:,}",
        f"{tokens:,}",
        f"{size / 1e6:,.1f}",
        f"{size / max(texts, 1):,.0f}",
        f"{size / max(tokens, 1):,.0f}",
    ]


def _states(identity: Mapping[str, Any]) -> str:
    settings = identity["store"]
    parts = [settings["states"]]
    if settings["width"] is not None:
        parts.append(f"{settings['width']} components")
    if settings["tokens"] is not None:
        parts.append(f"{settings['tokens']} tokens")
    return ", ".join(parts)


def _number(record: Mapping[str, Any], name: str, times: float, form: str) -> str:
    return f"{times * record[name]:{form}}" if name in record else "-"
