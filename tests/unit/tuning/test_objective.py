"""Each objective against the formula written out by hand, and what it teaches."""

import math

import pytest
import torch

from emo.tuning.objective import build_objective

WIDTH = 6
CASES = [
    ("classification", "apart", 1),
    ("pairs", "apart", 2),
    ("pairs", "joint", 1),
    ("sts", "apart", 2),
    ("sts", "joint", 1),
]


def vectors(rows, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(rows, WIDTH, generator=generator)


def built(family, reading):
    torch.manual_seed(1)
    return build_objective(family, reading, WIDTH, classes=3)


def targets(family):
    return {
        "classification": torch.tensor([2, 0, 1, 1]),
        "pairs": torch.tensor([1, 0, 0, 1]),
        "sts": torch.tensor([0.5, 5.0, 3.0, 2.0]),
    }[family]


def unit(vector):
    return vector / math.sqrt(sum(x * x for x in vector.tolist()))


def nll(logits, target):
    return -math.log(math.exp(logits[target]) / sum(map(math.exp, logits)))


def linear(layer, features):
    return [float(w @ features + b) for w, b in zip(layer.weight, layer.bias, strict=True)]


@torch.no_grad()
def test_classes():
    objective, given = built("classification", "apart"), vectors(4)
    scores = [linear(objective.classes, unit(v) * math.sqrt(WIDTH)) for v in given]
    losses = [nll(z, int(y)) for z, y in zip(scores, targets("classification"), strict=True)]
    loss = objective(given, targets("classification")).item()
    assert loss == pytest.approx(sum(losses) / 4, rel=1e-5)
    assert objective.predict(given).tolist() == [z.index(max(z)) for z in scores]
    assert objective.reads_head


@torch.no_grad()
def test_pairs_apart():
    objective, given = built("pairs", "apart"), vectors(8)
    losses, cosines = [], []
    for row, label in enumerate(targets("pairs").tolist()):
        u, v = (unit(given[place]) * math.sqrt(WIDTH) for place in (row, row + 4))
        losses.append(nll(linear(objective.classes, torch.cat([u, v, (u - v).abs()])), label))
        cosines.append(float(u @ v) / WIDTH)
    assert objective(given, targets("pairs")).item() == pytest.approx(sum(losses) / 4, rel=1e-5)
    assert objective.predict(given).tolist() == pytest.approx(cosines, abs=1e-6)
    assert not objective.reads_head


@torch.no_grad()
def test_pairs_joint():
    objective, given = built("pairs", "joint"), vectors(4)
    scores = [linear(objective.classes, unit(v) * math.sqrt(WIDTH)) for v in given]
    losses = [nll(z, int(y)) for z, y in zip(scores, targets("pairs"), strict=True)]
    assert objective(given, targets("pairs")).item() == pytest.approx(sum(losses) / 4, rel=1e-5)
    assert objective.predict(given).tolist() == pytest.approx([z[1] - z[0] for z in scores])
    assert objective.reads_head


@torch.no_grad()
def test_scores_apart():
    objective, given = built("sts", "apart"), vectors(8)
    cosines = [float(unit(given[row]) @ unit(given[row + 4])) for row in range(4)]
    errors = [(c - y / 5) ** 2 for c, y in zip(cosines, targets("sts").tolist(), strict=True)]
    assert objective(given, targets("sts")).item() == pytest.approx(sum(errors) / 4, rel=1e-5)
    assert objective.predict(given).tolist() == pytest.approx(cosines, abs=1e-6)
    assert not list(objective.parameters())
    assert not objective.reads_head


@torch.no_grad()
def test_scores_joint():
    objective, given = built("sts", "joint"), vectors(4)
    logits = []
    for vector in given:
        hidden = linear(objective.head.dense, unit(vector) * math.sqrt(WIDTH))
        (logit,) = linear(objective.head.score, torch.tensor([math.tanh(x) for x in hidden]))
        logits.append(logit)
    predicted = [5 / (1 + math.exp(-z)) for z in logits]
    errors = [(p - y) ** 2 for p, y in zip(predicted, targets("sts").tolist(), strict=True)]
    assert objective(given, targets("sts")).item() == pytest.approx(sum(errors) / 4, rel=1e-5)
    assert objective.predict(given).tolist() == pytest.approx(logits, abs=1e-5)
    assert objective.reads_head


@pytest.mark.parametrize(("family", "reading", "texts"), CASES)
def test_every_text_of_a_row_is_taught(family, reading, texts):
    """Pitfall 5: only one of two text columns entered the loss."""
    given = vectors(4 * texts).requires_grad_()
    built(family, reading)(given, targets(family)).backward()
    assert (given.grad.abs().sum(dim=1) > 0).all()


@pytest.mark.parametrize(("family", "reading", "texts"), CASES)
def test_the_length_of_an_embedding_does_not_matter(family, reading, texts):
    objective, given = built(family, reading), vectors(4 * texts)
    torch.testing.assert_close(
        objective(10 * given, targets(family)), objective(given, targets(family))
    )
    torch.testing.assert_close(objective.predict(10 * given), objective.predict(given))
