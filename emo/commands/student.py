"""Commands that train students and judge models."""

import json
from pathlib import Path
from typing import Annotated

import typer

from emo.commands.options import (
    Checkpoints,
    Json,
    Log,
    Out,
    Runs,
    StoreFile,
    load_option,
    parse_option,
)
from emo.config_methods import Family


def distil(
    texts: Annotated[Path, typer.Argument(help="A text set.")],
    settings: Json,
    student: Annotated[Path, typer.Option(help="Prepared student folder.")],
    store: StoreFile,
    checkpoints: Checkpoints,
    out: Out,
    alignment: Annotated[Path | None, typer.Option(help="The token map.")] = None,
    rows: Annotated[Path | None, typer.Option(help="The store.json of the rows.")] = None,
    teacher: Annotated[Path | None, typer.Option(help="Prepared teacher, run online.")] = None,
    row_alignment: Annotated[
        Path | None, typer.Option(help="Online: the map that rows are selected from.")
    ] = None,
    chosen: Annotated[
        Path | None, typer.Option(help="What a search chose; it replaces the learning rate.")
    ] = None,
    tuning: Annotated[
        Path | None, typer.Option(help="The tuning.json of the teacher, for a term on its head.")
    ] = None,
    runs: Runs = "[]",
    log: Log = None,
) -> None:
    """Train a student, or go on where an interrupted training stopped."""
    from emo.assembly import DistilSettings
    from emo.distil import distil as run
    from emo.distil_inputs import DistilInputs
    from emo.run_tags import RunKey
    from emo.search import with_chosen_rate

    if chosen is not None:
        settings = json.dumps(with_chosen_rate(load_option(settings, "--settings"), chosen))
    run(
        parse_option(DistilSettings, settings),
        DistilInputs(student, texts, store, alignment, rows, teacher, row_alignment, tuning),
        parse_option(list[RunKey], runs, "--runs"),
        checkpoints,
        out,
    )


def evaluate(
    model: Annotated[Path, typer.Argument(help="SentenceTransformer folder.")],
    task: Annotated[Path, typer.Option(help="Prepared task.")],
    family: Annotated[Family, typer.Option(help="Family of the task.")],
    out: Out,
    head: Annotated[
        Path | None,
        typer.Option(help="Let the model's own head answer: task_head.json, or tuning.json."),
    ] = None,
    runs: Runs = "[]",
    log: Log = None,
) -> None:
    """Score a model on a task by its frozen embeddings, or by a head of its own."""
    from emo.run_tags import RunKey
    from emo.tracked_evaluation import evaluate_and_track

    keys = parse_option(list[RunKey], runs, "--runs")
    evaluate_and_track(model, task, family, out, keys, head)


def choose(settings: Json, out: Out, log: Log = None) -> None:
    """Choose a method's learning rate by the validation scores of its trials."""
    from emo.search import Trial
    from emo.search import choose as run

    run(parse_option(list[Trial], settings), out)


def speed(
    model: Annotated[Path, typer.Argument(help="SentenceTransformer folder.")],
    texts: Annotated[list[Path], typer.Option(help="Text sets to embed.")],
    out: Out,
    log: Log = None,
) -> None:
    """Measure how many texts a second a model embeds here."""
    from emo.speed import measure_speed
    from emo.texts import joined, load_texts

    measure_speed(model, [joined(text) for path in texts for text in load_texts(path).texts], out)
