"""The command ``emo plan``: size and time of a store before it is made."""

import time
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar, get_args

import typer
from pydantic import BaseModel, ValidationError

from emo.commands.options import Log, load_option
from emo.config_errors import explain
from emo.config_methods import Family
from emo.config_store import StatePrecision
from emo.errors import ConfigError
from emo.process import ProcessIdentity

Form = Literal["pooled", "emo", "emo-paper"]
Model = TypeVar("Model", bound=BaseModel)


def plan(
    texts: Annotated[Path, typer.Argument(help="A text set.")],
    teacher: Annotated[Path, typer.Option(help="Prepared teacher folder.")],
    dtype: Annotated[str, typer.Option(help="float32, float16 or bfloat16.")] = "float32",
    states: Annotated[
        Literal[StatePrecision, "online"], typer.Option(help="As `store.states`.")
    ] = "float32",
    width: Annotated[int | None, typer.Option(help="As `store.width`.")] = None,
    tokens: Annotated[int | None, typer.Option(help="As `store.tokens`.")] = None,
    shards: Annotated[int, typer.Option(min=1, help="Jobs that share the texts.")] = 2,
    student: Annotated[
        Path | None, typer.Option(help="Prepared student folder: also plan what follows from it.")
    ] = None,
    method: Annotated[
        str, typer.Option(help="A form, or a method: JSON, or the path of a JSON or YAML file.")
    ] = "emo",
    family: Annotated[Family, typer.Option(help="Family of the text set.")] = "sts",
    steps: Annotated[
        int | None, typer.Option(min=1, help="With a student: also plan a training of so many.")
    ] = None,
    batch_size: Annotated[int, typer.Option(min=1, help="Texts of a step.")] = 32,
    out: Annotated[Path | None, typer.Option("--out", help="Write it as JSON, too.")] = None,
    log: Log = None,
) -> None:
    """Foretell size and time of a store and of a training, by a probe of some tens of seconds."""
    import emo.teach  # noqa: F401  (what a job imports, which takes part of its time)

    stage = _age()
    from emo.config_store import StoreSettings
    from emo.outputs import write_json
    from emo.plan import PlannedTraining, Starts
    from emo.plan import plan as run

    starts = Starts(stage=stage, training=_age())
    settings = _checked(StoreSettings, {"states": states, "width": width, "tokens": tokens})
    training = None
    if student is not None:
        given = {"student": student, "method": _method(method), "family": family}
        given |= {"steps": steps, "batch_size": batch_size}
        training = _checked(PlannedTraining, given)
    elif steps is not None:
        raise ConfigError("--steps: a training needs a student; give --student")
    forecast = run(texts, teacher, settings, dtype, shards, training, starts)
    typer.echo("\n".join(forecast.lines()))
    if out is not None:
        write_json(out, forecast.record())


def _age() -> float:
    """Return for how long this process has been running, its imports included."""
    return time.time() - ProcessIdentity.current().start


def _method(text: str) -> Any:
    return {"form": text} if text in get_args(Form) else load_option(text, "--method")


def _checked(kind: type[Model], values: dict[str, Any]) -> Model:
    try:
        return kind.model_validate(values)
    except ValidationError as error:
        raise ConfigError(explain(error, kind)) from None
