"""An alignment that was made for something else is refused by what differs."""

from pathlib import Path

import pytest

from emo.alignment import AlignmentOrigin, require_origin
from emo.errors import DataError

ORIGIN = AlignmentOrigin("mined", "original", teacher="aa", student="bb")
FILE = Path("a.parquet")


def test_what_is_as_expected_passes():
    require_origin(ORIGIN, FILE, method="mined", form="original", teacher="aa", student="bb")
    require_origin(ORIGIN, FILE, method="mined")


@pytest.mark.parametrize(
    ("expected", "told"),
    [
        ({"method": "span"}, "was made with method 'mined' instead of 'span'; align again"),
        ({"form": "normalised"}, "form 'original' instead of 'normalised'"),
        ({"student": "cc"}, "another student tokenizer, prompt or maximum length"),
        ({"teacher": "cc", "student": "bb"}, "another teacher tokenizer"),
        ({"method": "span", "student": "cc"}, "'span' and another student tokenizer"),
    ],
)
def test_what_differs_is_named(expected, told):
    with pytest.raises(DataError, match=rf"a\.parquet: was made with .*{told.split('with ')[-1]}"):
        require_origin(ORIGIN, FILE, **expected)


def test_a_file_that_does_not_say_is_refused():
    with pytest.raises(DataError, match=r"a\.parquet: does not say what it was made from"):
        require_origin(None, FILE, method="mined")
