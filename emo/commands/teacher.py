"""Commands that ask a teacher, and keep what it says."""

from pathlib import Path
from typing import Annotated, Literal

import typer

from emo.commands.options import (
    Checkpoints,
    Json,
    Log,
    Out,
    Runs,
    ShardOut,
    StoreFile,
    parse_option,
)
from emo.config_methods import AlignmentMethod, TextForm


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


def gather(
    shards: Annotated[list[Path], typer.Argument(help="All shards of one text set.")],
    out: Annotated[Path, typer.Option("--out", help="store.json, beside the shards.")],
    log: Log = None,
) -> None:
    """Check all shards against their checksums and join them."""
    from emo.store import gather as run

    run(shards, out)


def verify(
    store: Annotated[Path, typer.Argument(help="A store.json.")],
    log: Log = None,
) -> None:
    """Check every file of a store against its checksum, and name what is damaged."""
    from emo.store import verify as run

    run(store)
