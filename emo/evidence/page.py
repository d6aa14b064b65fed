"""A page written by hand, with tables between markers that are put in by the program.

A table stands between ``<!-- table: NAME -->`` and ``<!-- end -->``, each on a line of its own,
with an empty line on either side.
"""

import re
from collections.abc import Sequence
from pathlib import Path

from emo.errors import DataError
from emo.outputs import atomic_file

BEGIN = re.compile(r"<!-- table: ([\w-]+) -->")
END = "<!-- end -->"


def tables_of(text: str, page: str) -> dict[str, str]:
    r"""Return the tables that a page shows, by name.

    Args:
        text: The page.
        page: Its name, for errors.

    Raises:
        DataError: A table has no end, an end no table, or a name occurs twice.

    Example:
        >>> tables_of("Prose.\n\n<!-- table: switches -->\n\n| a |\n\n<!-- end -->\n", "page.md")
        {'switches': '| a |\n'}
    """
    lines = text.splitlines(keepends=True)
    places = _places(lines, page)
    return {
        name: "".join(lines[first:last]).strip("\n") + "\n"
        for name, (first, last) in places.items()
    }


def put_table(text: str, name: str, table: str, page: str) -> str:
    r"""Return the page with a table in its place.

    Raises:
        DataError: The page has no such place, or its markers are damaged.

    Example:
        >>> put_table("<!-- table: a -->\nold\n<!-- end -->\n", "a", "new\n", "page.md")
        '<!-- table: a -->\n\nnew\n\n<!-- end -->\n'
    """
    lines = text.splitlines(keepends=True)
    places = _places(lines, page)
    if name not in places:
        raise DataError(
            f"{page}: no place for the table {name}; add the lines `<!-- table: {name} -->` and "
            f"`{END}`"
        )
    first, last = places[name]
    return "".join([*lines[:first], f"\n{table}\n", *lines[last:]])


def read_page(page: Path) -> str:
    """Read a page.

    Raises:
        DataError: It is not there.
    """
    try:
        return page.read_text(encoding="utf-8")
    except OSError as error:
        raise DataError(f"{page}: no page to put a table in ({error.strerror})") from error


def update_page(page: Path, name: str, table: str) -> None:
    """Put a table in its place in a page.

    Raises:
        DataError: The page is not there, has no such place, or its markers are damaged.
    """
    text = put_table(read_page(page), name, table, str(page))
    with atomic_file(page) as temporary:
        temporary.write_text(text, encoding="utf-8")


def _places(lines: Sequence[str], page: str) -> dict[str, tuple[int, int]]:
    """Return the first line of each table and the line behind it."""
    places: dict[str, tuple[int, int]] = {}
    name, first = "", 0
    for number, line in enumerate(lines):
        begin, where = BEGIN.fullmatch(line.strip()), f"{page}, line {number + 1}"
        if begin and name:
            raise DataError(f"{where}: the table {name} before has no `{END}`")
        if begin:
            name, first = begin[1], number + 1
            if name in places:
                raise DataError(f"{where}: the table {name} is there twice")
        elif line.strip() == END:
            if not name:
                raise DataError(f"{where}: an `{END}` without a table before")
            places[name] = (first, number)
            name = ""
    if name:
        raise DataError(f"{page}, line {first}: the table {name} has no `{END}`")
    return places
