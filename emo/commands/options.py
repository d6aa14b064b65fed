"""What every command shares: options, logging, locks, and errors that become exit codes."""

import json
import logging
import traceback
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Annotated, Any, ParamSpec

import typer
from pydantic import TypeAdapter, ValidationError

from emo.errors import ConfigError, EmoError
from emo.outputs import exclusive
from emo.progress import configure_logging

logger = logging.getLogger("emo")

Parameters = ParamSpec("Parameters")

Log = Annotated[Path | None, typer.Option("--log", help="Write everything to this file instead.")]
Out = Annotated[Path, typer.Option("--out", help="Where the result goes.")]
ShardOut = Annotated[
    Path, typer.Option("--out", help="The shard's folder, named after it: 1-of-1 for all texts.")
]
StoreFile = Annotated[Path, typer.Option(help="The store.json of the teacher's signals.")]
Json = Annotated[str, typer.Option("--settings", help="JSON, or the path of a JSON or YAML file.")]
Runs = Annotated[str, typer.Option("--runs", help="Tracked runs, a JSON list.")]
Checkpoints = Annotated[
    Path, typer.Option("--checkpoints", help="Folder for checkpoints, outside --out.")
]


def guarded(function: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Set up logging, close runs of dead processes, and turn errors into exit codes."""

    @wraps(function)
    def wrapper(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        log = kwargs.get("log")
        configure_logging(log if isinstance(log, Path) else None)
        try:
            _close_dead_runs()
            function(*args, **kwargs)
        except EmoError as error:
            logger.error("%s", error)
            logger.debug("%s", traceback.format_exc())
            raise typer.Exit(error.exit_code) from None
        except Exception:
            logger.exception("unexpected error")
            raise typer.Exit(1) from None

    return wrapper


def stage(function: Callable[Parameters, None]) -> Callable[Parameters, None]:
    """Guard a command, and let one process at a time make what its ``out`` names."""

    @wraps(function)
    def alone(*args: Parameters.args, **kwargs: Parameters.kwargs) -> None:
        out = kwargs["out"]
        assert isinstance(out, Path)  # typer passes every option by name
        out = out.absolute()  # so that "." has a name too
        with exclusive(out.parent / f".{out.name}", f"the output {out}"):
            function(*args, **kwargs)

    return guarded(alone)


def parse_option(kind: Any, text: str, option: str = "--settings") -> Any:
    """Read an option's JSON or YAML as the type that a stage takes.

    Raises:
        ConfigError: It is neither, or does not fit the type; the message names the option.
    """
    try:
        return TypeAdapter(kind).validate_python(load_option(text, option))
    except ValidationError as error:
        faults = (f"{'.'.join(map(str, e['loc']))}: {e['msg']}" for e in error.errors())
        raise ConfigError(f"{option}: {'; '.join(faults)}") from None


def load_option(text: str, option: str) -> Any:
    """Read JSON given in place, or the JSON or YAML file that the text names.

    Raises:
        ConfigError: It is neither; the message names the option.
    """
    import yaml

    try:
        if text.lstrip()[:1] in ("{", "[", '"'):
            return json.loads(text)
        return yaml.safe_load(Path(text).read_text(encoding="utf-8"))
    except (OSError, ValueError, yaml.YAMLError) as error:
        raise ConfigError(f"{option}: neither JSON nor a readable file: {error}") from None


def _close_dead_runs() -> None:
    from emo.tracking import close_dead_runs

    close_dead_runs()
