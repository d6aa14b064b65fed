"""How tables are written: whole, with every digit, and equal results as equal bytes."""

from pathlib import Path

import pandas as pd

from emo.outputs import atomic_file


def write_csv(table: pd.DataFrame, out: Path) -> None:
    """Write a table without its index."""
    with atomic_file(out) as temporary:
        table.to_csv(temporary, index=False, lineterminator="\n")
