"""An EMO step beside a step of the same student on the same batch with the pooled loss alone."""

from benchmarks.material import METHOD, SHAPES, STUDY_STUDENT, Material
from benchmarks.results import Result, device_name
from benchmarks.timing import ratios, spread, timed_in_turns
from benchmarks.training import Training
from emo.config_methods import PooledSettings

PLAIN = PooledSettings(form="pooled")

CASES = {
    **{(student, length): 5 for student in SHAPES for length in (32, 64, 128, 256)},
    (STUDY_STUDENT, 64): 5,
}
"""Pairs by student and length."""


def step_name(student: str, length: int) -> str:
    """Name a case."""
    return f"step.{student}.s{length}"


def measure_step(material: Material, student: str, length: int) -> list[Result]:
    """Time the two kinds of step in turns; each pair has a batch of its own."""
    inputs = material.inputs(student, length)
    plain, emo = Training(PLAIN, inputs), Training(METHOD, inputs)
    base, seconds = timed_in_turns([plain.repeat, emo.repeat], CASES[student, length])
    values = spread(ratios(seconds, base))
    return [Result.of(step_name(student, length), values, "x plain step", device_name())]
