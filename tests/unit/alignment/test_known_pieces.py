"""What was read before comes back, and only that."""

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from emo.alignment.known_pieces import KnownPieces

LETTERS = st.sampled_from(["a", "b", "é", "\x00", "ÿ", "Ā", "猫", "😀"])


@settings(max_examples=100, deadline=None)
@given(st.lists(st.lists(st.tuples(st.integers(0, 3), st.text(LETTERS, max_size=10)))))
def test_each_token_has_the_piece_of_its_id_and_slice(blocks):
    """Words of eight bytes must never be taken for others: U+0000, long and wide characters."""
    known = KnownPieces(lambda token_id, covered: f"{token_id}:{covered}")
    for block in blocks:
        ids = np.array([token_id for token_id, _ in block], dtype=np.int64)
        ends = np.cumsum([len(covered) for _, covered in block], dtype=np.int64)
        starts = np.array([0, *ends[:-1]], dtype=np.int64)[: len(ends)]
        whole = "".join(covered for _, covered in block)
        strings, lengths = known.look_up(whole, ids, np.stack([starts, ends], axis=1))
        assert strings == [f"{token_id}:{covered}" for token_id, covered in block]
        assert lengths.tolist() == [len(string) for string in strings]


def test_a_slice_is_read_once():
    read = []

    def piece(*key):
        read.append(key)
        return key[1]

    known = KnownPieces(piece)
    for _ in range(2):
        known.look_up("Thethethe", np.array([5, 5, 5]), np.array([[0, 3], [3, 6], [6, 9]]))
    assert sorted(read) == [(5, "The"), (5, "the")]


def test_long_slices_that_begin_alike_are_told_apart():
    """Only eight characters fit into a word."""
    known = KnownPieces(lambda _, covered: covered)
    spans = np.array([[0, 9], [9, 18], [0, 8]])
    strings, _ = known.look_up("abcdefgh1abcdefgh2", np.array([7, 7, 7]), spans)
    assert strings == ["abcdefgh1", "abcdefgh2", "abcdefgh"]
