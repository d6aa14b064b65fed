"""Examine a teacher: all checks, a table to read, a record, and a stop if one fails."""

import logging
from collections.abc import Sequence
from dataclasses import asdict
from math import isfinite
from pathlib import Path

from emo.doctor.adapters import check_adapters
from emo.doctor.attention import check_attention
from emo.doctor.collapse import check_vectors
from emo.doctor.direction import check_direction
from emo.doctor.finding import Finding
from emo.doctor.invariance import check_batches, check_padding
from emo.doctor.precision import check_dtype
from emo.doctor.probes import read_probes
from emo.doctor.prompt import check_prompt
from emo.doctor.specials import check_specials
from emo.doctor.subject import Subject, load_subject
from emo.doctor.widths import check_widths
from emo.encoder import device_name
from emo.errors import CheckError
from emo.outputs import write_json
from emo.provenance import code_version, versions

logger = logging.getLogger(__name__)

CHECKS = (
    check_vectors,
    check_widths,
    check_batches,
    check_padding,
    check_dtype,
    check_direction,
    check_specials,
    check_prompt,
    check_adapters,
    check_attention,
)


def examine(teacher: Path, out: Path, dtype: str = "float32", texts: Path | None = None) -> None:
    """Examine a prepared teacher, print what is found and record it.

    Args:
        teacher: The prepared folder.
        out: The record (JSON); written whether or not a check fails.
        dtype: Precision that the teacher's pass will run in.
        texts: Probe texts, one a line; built-in ones when None.

    Raises:
        CheckError: A check failed; the message names each with its remedy.
    """
    subject = load_subject(teacher, read_probes(texts), dtype)
    findings = examine_subject(subject)
    print(as_table(findings))
    write_json(out, _record(subject, findings))
    failed = [finding for finding in findings if finding.status == "failed"]
    if failed:
        faults = "\n".join(
            f"- {finding.name}: {finding.meaning}; {finding.remedy}" for finding in failed
        )
        raise CheckError(f"{teacher} fails {len(failed)} of {len(findings)} checks:\n{faults}")
    logger.info("%s passes the examination in %s", teacher, dtype)


def examine_subject(subject: Subject) -> list[Finding]:
    """Run every check on a loaded teacher."""
    return [check(subject) for check in CHECKS]


def as_table(findings: Sequence[Finding]) -> str:
    """Return the findings as lines to read.

    Example:
        >>> print(as_table([Finding("dtype", "warning", "off", {"cosine": 0.99812}, "use more")]))
        warning  dtype  off
                        cosine 0.99812
                        remedy: use more
    """
    width = max(len(finding.name) for finding in findings)
    lines = []
    for finding in findings:
        status = finding.status.upper() if finding.status == "failed" else finding.status
        lines.append(f"{status:7}  {finding.name:{width}}  {finding.meaning}")
        more = [f"{name} {_shown(value)}" for name, value in finding.measured.items()]
        more += [f"remedy: {finding.remedy}"] if finding.remedy else []
        lines += [" " * (width + 11) + line for line in more]
    return "\n".join(lines)


def _shown(value: float | int | str) -> str:
    return f"{value:.6g}" if isinstance(value, float) else repr(value)


def _record(subject: Subject, findings: Sequence[Finding]) -> dict[str, object]:
    return {
        "teacher": {
            name: subject.record.get(name) for name in ("weights_sha256", "tokenizer_sha256")
        },
        "dtype": subject.dtype,
        "device": device_name(subject.encoder.device),
        "texts": len(subject.texts),
        "findings": [
            asdict(finding) | {"measured": {k: _plain(v) for k, v in finding.measured.items()}}
            for finding in findings
        ],
        "versions": versions(),
        "code": code_version("emo.doctor.examine"),
    }


def _plain(value: float | int | str) -> float | int | str:
    """Return a number as JSON knows it: what is not finite as a word."""
    return value if not isinstance(value, float) or isfinite(value) else str(value)
