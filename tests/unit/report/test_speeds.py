import pytest

from emo.errors import DataError
from emo.report import load_speeds


def test_a_wrong_speed_file_is_named(fake):
    (fake.folder / "e5.json").write_text('{"texts": 3}')
    with pytest.raises(DataError, match=r"e5\.json is no speed file .*texts_per_second"):
        load_speeds(fake.speed_paths)
