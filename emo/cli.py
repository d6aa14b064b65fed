"""The command ``emo``: one subcommand for each stage.

Exit status: 0 done, 1 failed check or data, 2 usage or config.
"""

import typer

from emo.commands.data import fetch, model, task, texts
from emo.commands.evidence import evidence
from emo.commands.options import guarded, stage
from emo.commands.plan import plan
from emo.commands.results import report, schema
from emo.commands.student import choose, distil, evaluate, speed
from emo.commands.teacher import (
    align,
    doctor,
    gather,
    teach,
    teach_basis,
    teach_rows,
    tune,
    verify,
)

app = typer.Typer(
    name="emo",
    help="Distil large text-embedding models into small ones, across tokenizers.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)

stores = typer.Typer(help="Join and check the shards of a store.", no_args_is_help=True)
app.add_typer(stores, name="store")

app.command()(stage(fetch))
app.command()(stage(model))
app.command()(stage(task))
app.command()(stage(texts))
app.command()(stage(align))
app.command()(stage(doctor))
app.command()(guarded(tune))  # holds a lock of its own, and looks for a finished result first
app.command()(stage(teach))
app.command("teach-basis")(stage(teach_basis))
app.command("teach-rows")(stage(teach_rows))
app.command()(guarded(distil))  # holds a lock of its own, and looks for a finished result first
app.command()(stage(evaluate))
app.command()(stage(choose))
app.command()(stage(speed))
app.command()(stage(report))
app.command()(stage(evidence))
app.command()(guarded(plan))
app.command()(guarded(schema))

stores.command()(stage(gather))
stores.command()(guarded(verify))


def main() -> None:
    """Run the command line."""
    app()
