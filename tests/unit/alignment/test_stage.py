import pandas as pd
import pytest

from emo.alignment import read_alignment
from emo.alignment.stage import align_texts, load_tokenizer
from emo.errors import ConfigError, DataError

COLUMNS = ["text", "teacher_position", "student_position", "distance"]


def align(tiny, texts, out, teacher=None, method="mined", form=None):
    align_texts(texts, str(teacher or tiny.teacher), str(tiny.student), method, out, form)
    return pd.read_parquet(out)


@pytest.fixture
def lines(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("the old man sings\n\ncat\n", encoding="utf-8")
    return path


def test_a_text_file_has_one_text_a_line(tiny, lines, tmp_path):
    """An empty line is a text without pairs, so that row numbers stay line numbers."""
    table = align(tiny, lines, tmp_path / "deep" / "out.parquet")
    assert list(table.columns) == COLUMNS
    assert set(table["text"]) == {0, 2}
    assert read_alignment(tmp_path / "deep" / "out.parquet").statistics.texts == 3


def test_a_text_set_gives_the_same_as_its_lines(tiny, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("\n".join(tiny.texts_read), encoding="utf-8")
    table = align(tiny, path, tmp_path / "out.parquet")
    pd.testing.assert_frame_equal(table, pd.read_parquet(tiny.alignment("mined.original")))


def test_positions_leave_the_prompts_out(tiny, lines, tmp_path):
    """Both models have a prompt; [CLS] and <s> stand at 0, so "cat" is at 1 on both sides."""
    table = align(tiny, lines, tmp_path / "out.parquet")
    assert table[table["text"] == 2].to_numpy().tolist() == [[2, 1, 1, 0]]


def test_a_tokenizer_folder_or_file_will_do(tiny, tmp_path):
    """Without a model's folder there is no prompt, and the positions are the same."""
    path = tmp_path / "texts.txt"
    path.write_text("cat sings\ndog plays guitar\n")
    expected = align(tiny, path, tmp_path / "expected.parquet")
    source = tiny.folder / "teacher-source"
    pd.testing.assert_frame_equal(align(tiny, path, tmp_path / "out.parquet", source), expected)
    file = source / "tokenizer.json"
    pd.testing.assert_frame_equal(align(tiny, path, tmp_path / "out.parquet", file), expected)
    assert load_tokenizer(str(source)).prompt == load_tokenizer(str(file)).prompt == ""
    assert load_tokenizer(str(tiny.teacher)).prompt == "query: "


def test_a_bare_file_gives_what_its_folder_gives(tiny, tmp_path):
    """It names no special tokens: unknown and opening ones are told by model and sequence."""
    path = tmp_path / "texts.txt"
    read = [text for text in tiny.texts_read if len(text) < 100]  # only folders name a length
    path.write_text("\n".join(read), encoding="utf-8")
    sources = [tiny.folder / f"{side}-source" for side in ("teacher", "student")]
    for method in ("mined", "mined-masses"):
        tables = []
        for pair in (sources, [source / "tokenizer.json" for source in sources]):
            align_texts(path, *map(str, pair), method, tmp_path / "out.parquet")
            tables.append(pd.read_parquet(tmp_path / "out.parquet"))
        pd.testing.assert_frame_equal(*tables)


def test_a_tokenizer_reads_as_far_as_it_says(tiny):
    assert load_tokenizer(str(tiny.folder / "teacher-source")).max_length == 64
    assert load_tokenizer(str(tiny.folder / "teacher-source" / "tokenizer.json")).max_length == 512


def test_types_are_aligned_on_the_papers_text(tiny, tmp_path):
    """Lower-cased and without punctuation, as the rows of `emo-paper` are read."""
    path = tmp_path / "texts.txt"
    path.write_text("The OLD man, sings!\nthe old man sings\n", encoding="utf-8")
    table = align(tiny, path, tmp_path / "out.parquet", method="mined-types")
    first, second = (
        table[table["text"] == row].drop(columns="text").to_numpy().tolist() for row in (0, 1)
    )
    assert first == second


def test_what_cannot_be_read_is_refused_by_name(tiny, lines, tmp_path):
    with pytest.raises(ConfigError, match=r"nowhere: no tokenizer folder, tokenizer\.json file"):
        align(tiny, lines, tmp_path / "out.parquet", tmp_path / "nowhere")
    with pytest.raises(DataError, match=r"missing\.txt: not a readable UTF-8 text file"):
        align(tiny, tmp_path / "missing.txt", tmp_path / "out.parquet")
    (tmp_path / "latin.txt").write_bytes("café".encode("latin-1"))
    with pytest.raises(DataError, match=r"latin\.txt: not a readable UTF-8 text file"):
        align(tiny, tmp_path / "latin.txt", tmp_path / "out.parquet")
    (tmp_path / "tokenizer.json").write_text("{}")
    with pytest.raises(ConfigError, match=r"tokenizer\.json: no tokenizer folder"):
        align(tiny, lines, tmp_path / "out.parquet", tmp_path / "tokenizer.json")
    (tmp_path / "empty.txt").touch()
    with pytest.raises(DataError, match=r"empty\.txt: holds no text; write one a line"):
        align(tiny, tmp_path / "empty.txt", tmp_path / "out.parquet")
    assert not (tmp_path / "out.parquet").exists()


def test_a_line_ends_at_a_line_feed_only(tiny, tmp_path):
    """With or without a carriage return before it; a lone one is part of a text."""
    path = tmp_path / "texts.txt"
    path.write_bytes(b"cat sings\r\ndog\rbird\r\n")
    align(tiny, path, tmp_path / "out.parquet")
    assert read_alignment(tmp_path / "out.parquet").statistics.texts == 2


@pytest.mark.parametrize(
    ("method", "form", "expected"),
    [
        ("mined", None, "original"),
        ("span", None, "original"),
        ("mined-types", None, "normalised"),
        ("mined-types", "original", "original"),
        ("mined-dp", "normalised", "normalised"),
    ],
)
def test_the_form_of_the_texts_may_be_chosen(tiny, lines, tmp_path, method, form, expected):
    out = tmp_path / "out.parquet"
    align(tiny, lines, out, method=method, form=form)
    assert (read_alignment(out).origin.method, read_alignment(out).origin.form) == (
        method,
        expected,
    )


def test_normalised_texts_lose_their_signs(tiny, tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("The OLD man, sings!\nthe old man sings\n", encoding="utf-8")
    table = align(tiny, path, tmp_path / "out.parquet", form="normalised")
    first, second = (table[table["text"] == row].drop(columns="text") for row in (0, 1))
    assert first.to_numpy().tolist() == second.to_numpy().tolist()


def test_it_ends_with_a_line_of_statistics(tiny, lines, tmp_path, caplog):
    with caplog.at_level("INFO"):
        align(tiny, lines, tmp_path / "out.parquet", method="span")
    assert "1 texts without; coverage" in caplog.records[-1].getMessage()
    assert caplog.records[-1].getMessage().endswith("by span on the original text")
