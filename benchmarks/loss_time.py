"""The time of a step split by term, in shares of the plain step.

Attention and transport are told by what a step with that term alone takes beyond the plain step of
the same round, with the rows or tokens that it reads. The pooled terms and the collation are timed
by themselves.
"""

import torch

from benchmarks.material import METHOD, STUDY_STUDENT, Material
from benchmarks.results import Result, device_name
from benchmarks.step import PLAIN
from benchmarks.timing import Work, ratios, spread, timed_in_turns
from benchmarks.training import Training
from emo.methods.pooled import PooledMethod

LENGTH = 64
ROUNDS = 5
NAMES = tuple(f"loss_time.{part}" for part in ("attention", "transport", "pooled", "collation"))


def measure_loss_time(material: Material) -> list[Result]:
    """Time steps without a term in turns with whole ones."""
    inputs = material.inputs(STUDY_STUDENT, LENGTH)
    plain = Training(PLAIN, inputs)
    attention = Training(METHOD.model_copy(update={"transport": 0.0}), inputs)
    transport = Training(METHOD.model_copy(update={"attention": 0.0}), inputs)
    emo = Training(METHOD, inputs)
    base, *seconds = timed_in_turns(
        [
            plain.repeat,
            attention.repeat,
            transport.repeat,
            _pooled_terms(plain),
            lambda number: emo.collate(number),
        ],
        ROUNDS,
    )
    shares = [ratios(part, base) for part in seconds]
    for term in shares[:2]:
        term[:] = [value - 1.0 for value in term]
    return [
        Result.of(name, spread(values), "of a plain step", device_name())
        for name, values in zip(NAMES, shares, strict=True)
    ]


def _pooled_terms(training: Training) -> Work:
    """Compute the pooled terms of a batch and their gradient on the student's vectors."""
    batch = training.collate(0)
    method = training.model.method
    assert isinstance(method, PooledMethod)

    def repeat(number: int) -> None:
        vectors = torch.randn_like(batch["teacher_vectors"], requires_grad=True)
        terms = torch.stack(list(method.pooled_terms(vectors, batch).values()))
        torch.autograd.grad(terms.sum(), vectors)

    return repeat
