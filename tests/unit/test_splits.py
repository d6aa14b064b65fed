import hashlib
import itertools

import pandas as pd
import pytest

from emo.config_tasks import HashSplits
from emo.errors import DataError
from emo.splits import distinct_rows, hash_splits, share_of


def test_repeats_are_dropped_once_and_contradictions_wholly():
    table = pd.DataFrame(
        {
            "row": range(1, 8),
            "text": ["a", " b", "a ", "c", "b", "c", "d"],
            "label": ["x", "x", "x", "x", "x", "y", "y"],
        }
    )
    distinct = distinct_rows(table, ["text"], "label")
    assert distinct.table.to_dict("list") == {
        "row": [1, 2, 7],
        "text": ["a", "b", "d"],
        "label": ["x", "x", "y"],
    }
    assert (distinct.duplicates, distinct.two_labels) == (2, 2)


def test_pairs_are_compared_as_pairs():
    table = pd.DataFrame(
        {"sentence1": ["a", "a", "b"], "sentence2": ["b", "c", "a"], "label": [1, 0, 1]}
    )
    assert len(distinct_rows(table, ["sentence1", "sentence2"], "label").table) == 3


def test_the_smallest_digests_are_test_and_the_next_validation():
    texts = [f"text {number}" for number in range(30)]
    table = pd.DataFrame({"row": range(1, 31), "text": texts})
    splits = hash_splits(table, ["text"], HashSplits(test=5, validation=3), "trec")
    ranked = sorted(texts, key=lambda text: hashlib.sha256(text.encode("utf-8")).digest())
    assert set(splits["test"]["text"]) == set(ranked[:5])
    assert set(splits["validation"]["text"]) == set(ranked[5:8])
    assert set(splits["train"]["text"]) == set(ranked[8:])
    for rows in splits.values():
        assert rows["row"].is_monotonic_increasing


def test_the_split_does_not_depend_on_the_order_of_the_file():
    table = pd.DataFrame({"sentence1": list("abcdefgh"), "sentence2": list("stuvwxyz")})
    sizes = HashSplits(test=2, validation=2)
    columns = ["sentence1", "sentence2"]
    forward = hash_splits(table, columns, sizes, "task")
    backward = hash_splits(table[::-1].reset_index(drop=True), columns, sizes, "task")
    for split, rows in forward.items():
        assert set(rows["sentence1"]) == set(backward[split]["sentence1"])


def test_pairs_are_hashed_joined_by_a_tab():
    table = pd.DataFrame({"sentence1": list("abc"), "sentence2": list("xyz")})
    splits = hash_splits(
        table, ["sentence1", "sentence2"], HashSplits(test=1, validation=1), "task"
    )
    first = min(["a\tx", "b\ty", "c\tz"], key=lambda key: hashlib.sha256(key.encode()).hexdigest())
    assert list(splits["test"]["sentence1"]) == [first[0]]


def test_too_few_rows_are_an_error():
    table = pd.DataFrame({"text": list("abc")})
    with pytest.raises(DataError, match="trec: 3 different usable rows are too few for 2 test and"):
        hash_splits(table, ["text"], HashSplits(test=2, validation=1), "trec")


def labelled(count):
    texts = [f"text {number}" for number in range(count)]
    labels = ["rare" if number % 10 == 0 else "usual" for number in range(count)]
    return pd.DataFrame({"row": range(1, count + 1), "text": texts, "label": labels})


def ranked(rows):
    return sorted(rows, key=lambda text: hashlib.sha256(text.encode("utf-8")).digest())


def test_a_share_has_the_smallest_digests_of_each_label_in_file_order():
    table = labelled(60)
    share = share_of(table, ["text"], 0.5, "label")
    assert share["label"].value_counts().to_dict() == {"usual": 27, "rare": 3}
    for label, rows in table.groupby("label")["text"]:
        kept = set(share.loc[share["label"] == label, "text"])
        assert kept == set(ranked(rows)[: len(kept)]), label
    assert share["row"].is_monotonic_increasing
    assert list(share.index) == list(range(30))


def test_a_smaller_share_is_part_of_a_larger_one_and_no_label_is_lost():
    table = labelled(60)
    shares = [share_of(table, ["text"], f, "label") for f in (0.01, 0.1, 0.3, 0.7, 1.0)]
    sizes = [len(share) for share in shares]
    assert sizes == [2, 6, 18, 42, 60]
    for smaller, larger in itertools.pairwise(shares):
        assert set(smaller["row"]) < set(larger["row"])
        assert set(smaller["label"]) == {"rare", "usual"}


def test_a_share_does_not_depend_on_the_order_of_the_file():
    table = labelled(40)
    forward = share_of(table, ["text"], 0.25, "label")
    backward = share_of(table[::-1].reset_index(drop=True), ["text"], 0.25, "label")
    assert set(forward["text"]) == set(backward["text"])


def test_a_share_of_scored_pairs_has_no_strata():
    """The scores are many, and one row of each would be all rows."""
    pairs = pd.DataFrame({"sentence1": list("abcdefgh"), "sentence2": list("stuvwxyz")})
    share = share_of(pairs.assign(score=range(8)), ["sentence1", "sentence2"], 0.5, None)
    joined = {"\t".join(pair) for pair in share[["sentence1", "sentence2"]].to_numpy().tolist()}
    assert joined == set(ranked("\t".join(pair) for pair in pairs.to_numpy().tolist())[:4])
