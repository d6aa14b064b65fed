"""Rows from queries and keys against a plain loop."""

import math

import pytest
import torch
from torch.autograd import gradcheck

from emo.attention import scores as module
from emo.attention.scores import Scores


def random_scores(dtype=torch.float64, heads=4, key_heads=2, masks=(), causal=False):
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(2, heads, 6, 3, generator=generator, dtype=torch.float64).to(dtype)
    key = torch.randn(2, key_heads, 6, 3, generator=generator, dtype=torch.float64).to(dtype)
    return Scores(query, key, masks, causal, 0.7, 0.0)


def slow_map(scores):
    """Head-mean attention maps, one number at a time; masks are (2, 1 or heads, 6, 6)."""
    texts, heads, length, _ = scores.query.shape
    group = heads // scores.key.shape[1]
    result = torch.zeros(texts, length, length, dtype=torch.float64)
    for text in range(texts):
        for head in range(heads):
            for i in range(length):
                exps = []
                for j in range(length):
                    score = 0.7 * sum(
                        float(q) * float(k)
                        for q, k in zip(
                            scores.query[text, head, i],
                            scores.key[text, head // group, j],
                            strict=True,
                        )
                    )
                    seen = not scores.causal or j <= i
                    for mask in scores.masks:
                        value = mask[text, min(head, mask.shape[1] - 1), i, j]
                        if mask.dtype == torch.bool:
                            seen = seen and bool(value)
                        else:
                            score += float(value)
                    exps.append(math.exp(score) if seen else 0.0)
                for j in range(length):
                    result[text, i, j] += exps[j] / sum(exps) / heads
    return result


def boolean_mask():
    mask = torch.rand(2, 1, 6, 6, generator=torch.Generator().manual_seed(1)) > 0.4
    return mask | torch.eye(6, dtype=torch.bool)


def additive_mask(hidden=-math.inf):
    bias = torch.randn(2, 4, 6, 6, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    return bias.masked_fill(~boolean_mask(), hidden)


CASES = {
    "none": {},
    "one head": {"heads": 1, "key_heads": 1},
    "causal": {"causal": True},
    "bool": {"masks": (boolean_mask(),)},
    "additive": {"masks": (additive_mask(),)},
    "lowest": {"masks": (additive_mask(torch.finfo(torch.float64).min),)},
    "two": {"masks": (additive_mask(0.5), boolean_mask())},
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("block", [1, 200, 1 << 20])
def test_rows_and_sums_equal_a_plain_loop(case, block, monkeypatch):
    monkeypatch.setattr(module, "BLOCK", block)
    scores = random_scores(**CASES[case])
    expected = slow_map(scores)
    positions = torch.tensor([[5, 0, 3, 3], [1, 2, 4, 0]])
    picked = torch.stack([expected[text, positions[text]] for text in range(2)])
    torch.testing.assert_close(scores.rows(positions), picked)
    queries = torch.rand(3, 2, 6, generator=torch.Generator().manual_seed(3)) > 0.5
    sums = torch.zeros(3, 2, 6, dtype=torch.float64)
    for group in range(3):
        for text in range(2):
            for i in range(6):
                if queries[group, text, i]:
                    sums[group, text] += expected[text, i]
    torch.testing.assert_close(scores.received(queries), sums)


@pytest.mark.parametrize("case", ["causal", "bool", "additive"])
def test_gradients(case):
    scores = random_scores(**CASES[case])
    positions = torch.tensor([[5, 0], [1, 2]])
    queries = torch.tensor([[[True, False, True, True, False, True]] * 2])

    def both(query, key):
        made = Scores(query, key, scores.masks, scores.causal, scores.scaling, 0.0)
        return made.rows(positions), made.received(queries)

    assert gradcheck(both, (scores.query.requires_grad_(), scores.key.requires_grad_()))


def test_padding_that_is_nan_reaches_nothing():
    """Pitfall 72: a model may leave NaN at padding."""
    mask = torch.zeros(2, 1, 6, 6, dtype=torch.bool)
    mask[..., :4] = True
    scores = random_scores(masks=(mask,))
    real = torch.tensor([True] * 4 + [False] * 2).expand(1, 2, 6)
    expected = scores.received(real)
    scores.query[:, :, 4:] = math.nan
    scores.key[:, :, 4:] = math.nan
    torch.testing.assert_close(scores.received(real), expected)
    assert scores.rows(torch.tensor([[0, 3], [1, 2]])).isfinite().all()


@pytest.mark.parametrize(
    "mask",
    [torch.zeros(2, 1, 6, 6, dtype=torch.bool), torch.full((2, 1, 6, 6), -math.inf)],
    ids=["bool", "additive"],
)
def test_a_query_that_sees_nothing_stays_finite(mask):
    scores = random_scores(masks=(mask,))
    assert scores.rows(torch.tensor([[0], [1]])).isfinite().all()


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16, torch.float32])
def test_at_least_single_precision(dtype):
    scores = random_scores(dtype)
    queries = torch.ones(1, 2, 6, dtype=torch.bool)
    with torch.autocast("cpu", torch.bfloat16):
        rows = scores.rows(torch.tensor([[0], [1]]))
        received = scores.received(queries)
    assert rows.dtype == received.dtype == torch.float32
    expected = slow_map(scores).float()
    torch.testing.assert_close(rows[:, 0], expected[[0, 1], [0, 1]], atol=1e-6, rtol=0)
    torch.testing.assert_close(received[0], expected.sum(dim=1), atol=1e-5, rtol=0)


def test_dropout_falls_on_each_head_before_the_mean():
    scores = random_scores(heads=1, key_heads=1)
    positions = torch.tensor([[0, 1], [2, 3]])
    dropped = Scores(scores.query, scores.key, (), False, scores.scaling, 0.5)
    torch.manual_seed(0)
    rows = dropped.rows(positions)
    kept = rows != 0
    assert 0 < kept.sum() < kept.numel()
    torch.testing.assert_close(rows[kept], 2 * scores.rows(positions)[kept])
    torch.manual_seed(0)
    four = random_scores(masks=())
    rows = Scores(four.query, four.key, (), False, four.scaling, 0.5).rows(positions)
    assert rows.ne(0).sum() > kept.sum(), "a mean over heads is rarely dropped whole"
