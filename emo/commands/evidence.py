"""The command ``emo evidence``: what a study found, kept with the code."""

from pathlib import Path
from typing import Annotated

import typer

from emo.commands.options import Json, Log, load_option


def evidence(
    settings: Json,
    differences: Annotated[Path, typer.Option(help="The study's differences.csv.")],
    page: Annotated[Path, typer.Option(help="Markdown page with a place for the table.")],
    out: Annotated[Path, typer.Option("--out", help="Folder, named as the place in the page.")],
    log: Log = None,
) -> None:
    """Keep what a study found: scores with their tracked runs, differences, a table, a figure."""
    from emo.config import parse_study
    from emo.evidence import write_evidence

    write_evidence(parse_study(load_option(settings, "--settings")), differences, page, out)
