"""Sound teachers of every make pass every check."""

import pytest

from emo.doctor.examine import examine_subject

from .conftest import MAKES


@pytest.mark.parametrize("make", MAKES)
def test_a_sound_teacher_passes(subject, make):
    findings = {finding.name: finding for finding in examine_subject(subject(make))}
    warned = {"direction"} if make == "causal-mean" else set()
    for name, finding in findings.items():
        assert finding.status == ("warning" if name in warned else "passed"), finding
        assert bool(finding.remedy) == (name in warned), finding


@pytest.mark.parametrize("dtype", ["bfloat16", "float16"])
@pytest.mark.parametrize("make", ["bert", "llm2vec"])
def test_rounding_is_no_fault(subject, make, dtype):
    findings = {finding.name: finding for finding in examine_subject(subject(make, dtype))}
    assert {finding.status for finding in findings.values()} <= {"passed", "warning"}, findings
    assert 0.99 < findings["dtype"].measured["least cosine"] < 1
