from dataclasses import replace

import numpy as np
import pytest
import torch

from emo.alignment import Alignment, read_alignment
from emo.batches import Collator, TokenSignals, TrainingTexts
from emo.encoder import load_encoder
from emo.errors import DataError
from emo.store import Store
from emo.texts import text_key
from emo.token_source import StoredSource

from ..tiny_models import EMO_ROWS, HARD_TEXTS, PAPER_ROWS


@pytest.fixture(scope="module")
def parts(tiny):
    """What a collator of the form `emo` is made of."""
    tokenized = load_encoder(tiny.student, device=torch.device("cpu")).tokenizer()(tiny.texts_read)
    keys, signals = [text_key(text) for text in tiny.texts_read], Store(tiny.store)
    return {
        "tokenized": tokenized,
        "keys": keys,
        "pad_id": 0,
        "signals": signals,
        "source": StoredSource(signals, keys, states=True, rows=Store(tiny.rows(EMO_ROWS))),
        "tokens": TokenSignals("importance", read_alignment(tiny.alignment("mined.original"))),
    }


def test_a_batch_holds_what_the_methods_ask_for(parts):
    batch = Collator(**parts)([0, 5, 3])
    students = len(batch["input_ids"])
    texts, teachers = batch["teacher_mask"].shape
    assert students == texts == 3
    assert batch["teacher_states"].shape == (3, teachers, 48)
    assert batch["teacher_vectors"].shape == (3, 48)
    assert batch["row_positions"].shape == batch["row_mask"].shape
    assert batch["teacher_rows"].shape == (1, *batch["row_mask"].shape, teachers)
    assert "row_input_ids" not in batch, "the student reads the texts themselves"
    assert all(batch[name].dtype == torch.bool for name in batch if "mask" in name)


def test_pairs_point_at_the_columns_of_student_and_teacher(tiny, parts):
    """Positions leave the prompt out, columns do not: a prompt would move every pair by itself."""
    collator = Collator(**parts)
    tokenizer = load_encoder(tiny.student, device=torch.device("cpu")).model.tokenizer
    teacher = load_encoder(tiny.teacher, device=torch.device("cpu")).tokenizer()
    cat = tiny.texts_read.index("cat")
    batch = collator([0, cat])
    columns = [pair for pair in batch["pairs"].tolist() if pair[0] == 1]
    assert len(columns) == 1
    _, teacher_column, student_column = columns[0]
    assert tokenizer.convert_ids_to_tokens(batch["input_ids"][1])[student_column] == "cat"
    assert teacher_column == 1, "behind <s>, the prompt left out"
    assert (
        teacher.tokenizer.convert_ids_to_tokens(list(teacher(["cat"])[0].input_ids))[-2] == "▁cat"
    )
    row = batch["row_positions"][1][batch["row_mask"][1]].tolist()
    assert row == [student_column]


def test_masks_leave_out_prompt_and_special_tokens(tiny, parts):
    batch = Collator(**parts)([tiny.texts_read.index("cat")])
    # [CLS] text : cat [SEP]
    assert batch["mask"].tolist() == [[True] * 5]
    assert batch["student_mask"].tolist() == [[True, False, False, True, True]]
    assert batch["student_text"].tolist() == [[False, False, False, True, False]]
    # <s> ▁cat </s>
    assert batch["teacher_mask"].tolist() == [[True] * 3]
    assert batch["teacher_text"].tolist() == [[False, True, False]]


def test_signals_are_those_of_the_text_whatever_the_batch(parts):
    """Pitfalls 15 to 18."""
    collator, signals = Collator(**parts), parts["signals"]
    batch = collator([7, 2, 2])
    torch.testing.assert_close(batch["teacher_vectors"][1], batch["teacher_vectors"][2])
    for place, index in enumerate((7, 2, 2)):
        rows = signals.rows([parts["keys"][index]])
        states = batch["teacher_states"][place][batch["teacher_mask"][place]]
        np.testing.assert_array_equal(states, signals.pieces("states", rows)[0])
        importance = batch["teacher_importance"][place][batch["teacher_mask"][place]]
        np.testing.assert_array_equal(importance, signals.pieces("importance", rows)[0])


def test_literal_special_strings_count_as_text(tiny, parts):
    """Pitfall 33: `[CLS]` in a text has the special token's id, but is no special token."""
    batch = Collator(**parts)([tiny.texts_read.index(HARD_TEXTS[-1])])
    assert (batch["input_ids"][0] == 2).sum() == 2
    assert batch["student_text"][0][batch["input_ids"][0] == 2].tolist() == [False, True]


def test_texts_without_rows_or_pairs_leave_padding(tiny, parts):
    """Pitfall 47: not one row in the whole batch must still be a batch."""
    paper = Store(tiny.rows(PAPER_ROWS))
    sizes = paper.counts("teacher_position")[paper.rows(parts["keys"])]
    empty = np.flatnonzero(sizes == 0).tolist()
    source = StoredSource(parts["signals"], parts["keys"], states=True, rows=paper)
    nothing = np.empty(0, dtype=np.int32)
    pairs = read_alignment(tiny.alignment("mined.original"))
    none = Alignment(nothing.astype(np.int64), nothing, nothing, nothing, pairs.statistics)
    tokens = TokenSignals("importance", none)
    row_inputs = parts["tokenized"][::-1]
    changed = {"source": source, "tokens": tokens, "row_inputs": row_inputs}
    batch = Collator(**parts | changed)(empty[:2])
    assert not batch["row_mask"].any()
    assert batch["row_mask"].shape == (2, 1)
    assert batch["teacher_rows"].shape == (2, 2, 1, 1)
    read = [row_inputs[index].input_ids for index in empty[:2]]
    assert [len(ids) for ids in read] == batch["row_input_mask"].sum(dim=1).tolist()
    assert batch["pairs"].shape == (0, 3)
    assert batch["pairs"].dtype == torch.int64


def test_an_alignment_that_does_not_fit_is_refused(tiny, parts):
    """One of another tokenizer or text set would point past the end, or at the wrong token."""
    pairs = read_alignment(tiny.alignment("mined.original"))
    far = pairs.student_position.copy()
    far[0] = len(parts["tokenized"][0].input_ids) - 2  # inside only if the prompt counted
    other_texts = replace(pairs, statistics=replace(pairs.statistics, texts=25))
    for broken in (
        replace(pairs, student_position=far),
        replace(pairs, teacher_position=pairs.teacher_position + 40),
        other_texts,
    ):
        with pytest.raises(DataError, match="the alignment does not fit .* run `emo align` again"):
            Collator(**{**parts, "tokens": TokenSignals("importance", broken)})


def test_a_text_that_is_not_in_the_store_is_refused(parts):
    keys = [*parts["keys"][:-1], text_key("another")]
    with pytest.raises(DataError, match="1 of 24 texts are not in the store"):
        Collator(**{**parts, "keys": keys})


def test_only_what_is_asked_for_is_joined(parts):
    batch = Collator(**{**parts, "tokens": None, "source": None})([1, 2])
    assert set(batch) == {"input_ids", "mask", "student_mask", "student_text", "teacher_vectors"}


def test_training_texts_are_numbers():
    assert [TrainingTexts(3)[index] for index in range(3)] == [0, 1, 2]
    assert len(TrainingTexts(3)) == 3
