import re

import pytest

from emo.errors import DataError
from emo.evidence.page import put_table, tables_of, update_page

PAGE = """# Evidence

<!-- table: one -->
<!-- end -->

Between.

<!-- table: two-b -->

| old |

<!-- end -->
Behind.
"""


def test_a_table_takes_its_place_and_nothing_else_changes():
    page = put_table(PAGE, "two-b", "| new |\n| more |\n", "page.md")
    assert page == PAGE.replace("| old |\n", "| new |\n| more |\n")
    assert put_table(page, "two-b", "| new |\n| more |\n", "page.md") == page
    assert tables_of(page, "page.md") == {"one": "\n", "two-b": "| new |\n| more |\n"}


def test_an_empty_place_is_filled():
    page = put_table(PAGE, "one", "| new |\n", "page.md")
    assert "<!-- table: one -->\n\n| new |\n\n<!-- end -->\n\nBetween." in page
    assert tables_of(page, "page.md")["one"] == "| new |\n"


@pytest.mark.parametrize(
    ("page", "message"),
    [
        ("a\n<!-- table: one -->\n| x |\n", "p.md, line 2: the table one has no `<!-- end -->`"),
        (
            "<!-- table: one -->\n<!-- table: two -->\n<!-- end -->\n",
            "p.md, line 2: the table one before has no",
        ),
        ("a\n\n<!-- end -->\n", "p.md, line 3: an `<!-- end -->` without a table"),
        (
            "<!-- table: one -->\n<!-- end -->\n<!-- table: one -->\n<!-- end -->\n",
            "p.md, line 3: the table one is there twice",
        ),
        ("prose\n", "p.md: no place for the table one; add the lines `<!-- table: one -->` and"),
    ],
)
def test_damaged_markers_are_named(page, message):
    with pytest.raises(DataError, match=re.escape(message)):
        put_table(page, "one", "| x |\n", "p.md")


def test_a_page_that_cannot_be_updated_stays(tmp_path):
    page = tmp_path / "page.md"
    with pytest.raises(DataError, match=r"page\.md: no page to put a table in"):
        update_page(page, "one", "| x |\n")
    page.write_text(PAGE)
    with pytest.raises(DataError, match="no place for the table three"):
        update_page(page, "three", "| x |\n")
    assert page.read_text() == PAGE
    update_page(page, "one", "| x |\n")
    assert page.read_text() == put_table(PAGE, "one", "| x |\n", "page.md")
