"""Commands that tell what was found, and what may be asked for."""

from pathlib import Path
from typing import Annotated

import typer

from emo.commands.options import Json, Log, Out, load_option


def report(
    settings: Json,
    out: Annotated[Path, typer.Option("--out", help="Folder of the tables and figures.")],
    log: Log = None,
) -> None:
    """Gather a study's scores into tables and a figure."""
    from emo.config import parse_study
    from emo.tracked_costs import report_and_track

    report_and_track(parse_study(load_option(settings, "--settings")), out)


def schema(out: Out, log: Log = None) -> None:
    """Write the schema of config.yaml."""
    from emo.config_schema import write_schema

    write_schema(out)
