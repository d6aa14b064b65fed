"""Which pairs are kept, on maps small enough to check by eye."""

import numpy as np
import pytest

from emo.alignment import Alignment
from emo.requests import AlignmentRequest, RowRequest
from emo.row_selection import ContentRanking, TextRanking, select_rows

CROSSED = {"teacher": [1, 2, 3, 4], "student": [4, 1, 3, 2]}


def alignment(*texts):
    """A map from lists of positions; its statistics are not read."""
    counts = [len(text["teacher"]) for text in texts]
    return Alignment(
        text=np.repeat(np.arange(len(texts)), counts),
        teacher_position=np.concatenate([text["teacher"] for text in texts]).astype(np.int32),
        student_position=np.concatenate([text["student"] for text in texts]).astype(np.int32),
        distance=np.zeros(sum(counts), dtype=np.int32),
        statistics=None,
    )


def request(rows=2, paired=True, ranking="text"):
    return RowRequest(AlignmentRequest("mined"), ranking, rows, paired, 1)


def selected(*args):
    return [(s.teacher.tolist(), s.student.tolist()) for s in select_rows(*args)]


def test_the_most_important_pairs_come_first_and_stay_paired():
    ranking = TextRanking([np.array([9.0, 0.1, 0.4, 0.2, 0.3])])
    assert selected(request(), alignment(CROSSED), [0], ranking) == [([2, 4], [1, 2])]


def test_ties_go_to_the_first_token():
    ranking = TextRanking([np.array([9.0, 0.5, 0.5, 0.5, 0.5])])
    assert selected(request(), alignment(CROSSED), [0], ranking) == [([1, 2], [4, 1])]


def test_apart_each_side_has_its_own_order():
    """The authors' oddity: the row of token 1 meets that of student token 1, not of 4."""
    ranking = TextRanking([np.array([0.0, 0.4, 0.3, 0.2, 0.1])])
    asked = request(rows=3, paired=False)
    assert selected(asked, alignment(CROSSED), [0], ranking) == [([1, 2, 3], [1, 3, 4])]


@pytest.mark.parametrize(("pairs", "most"), [(2, 0), (3, 1), (5, 1), (6, 2)])
def test_a_third_is_rounded_down(pairs, most):
    text = {"teacher": list(range(pairs)), "student": list(range(pairs))}
    ranking = TextRanking([np.arange(pairs, dtype=float)])
    (chosen,) = selected(request(rows=None), alignment(text), [0], ranking)
    assert chosen[0] == list(range(pairs))[::-1][:most]


def test_content_ranking_matches_by_id_and_counts_tokens_that_are_not_mapped():
    """Id 50 takes one of the two slots, and id 7 stands twice."""
    ranking = ContentRanking([np.array([0, 7, 8, 7, 9])], [np.array([50, 7, 8, 9])])
    asked = request(rows=2, ranking="content")
    assert selected(asked, alignment(CROSSED), [0], ranking) == [([1, 3], [4, 3])]


def test_texts_without_pairs_are_kept_as_empty():
    nothing = {"teacher": [], "student": []}
    ranking = TextRanking([np.empty(0), np.arange(5.0), np.empty(0)])
    chosen = selected(request(), alignment(nothing, CROSSED, nothing), range(3), ranking)
    assert chosen == [([], []), ([4, 3], [2, 3]), ([], [])]
