"""Which texts share a pass of the teacher."""

import numpy as np
import pytest

from emo.teacher_pass import BATCH_TEXTS, BATCH_TOKENS, batch_rows


@pytest.mark.parametrize("longest", [1, 20, 64, 65, 500, 5000])
def test_batches_hold_each_text_once_and_no_more_than_they_may(longest):
    lengths = np.random.default_rng(longest).integers(1, longest + 1, size=300).tolist()
    batches = batch_rows(lengths)
    assert sorted(row for batch in batches for row in batch) == list(range(300))
    for batch in batches:
        assert len(batch) <= BATCH_TEXTS
        padded = len(batch) * max(lengths[row] for row in batch)
        assert padded <= BATCH_TOKENS or len(batch) == 1
    flat = [lengths[row] for batch in batches for row in batch]
    assert flat == sorted(lengths, reverse=True), "long ones first"


def test_texts_of_one_length_stay_in_order():
    assert batch_rows([7] * 40) == [list(range(32)), list(range(32, 40))]
    assert batch_rows([]) == []
