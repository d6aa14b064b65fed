"""Were the declared adapters merged, and did they change what the teacher says?"""

from emo.doctor.finding import Finding
from emo.doctor.subject import Subject
from emo.models.adapters import CLOSEST

NAME = "adapters"

_REMEDY = "prepare the teacher anew with `emo model`, with every adapter of its settings"


def check_adapters(subject: Subject) -> Finding:
    """Read what the preparation measured; whether weights were missing was an error there."""
    declared = len(subject.settings.adapters)
    merged = subject.record.get("adapters", [])
    measured: dict[str, float | int | str] = {"declared": declared, "merged": len(merged)}
    for place, adapter in enumerate(merged, start=1):
        measured |= {f"adapter {place}: {key}": value for key, value in adapter.items()}
    left = sorted(path.name for path in subject.folder.glob("adapter_*"))
    if left:
        meaning = f"the folder holds an adapter that is not merged: {', '.join(left)}"
        return Finding(NAME, "failed", meaning, measured, _REMEDY)
    if len(merged) != declared:
        meaning = f"{declared} adapters are declared, {len(merged)} are recorded as merged"
        return Finding(NAME, "failed", meaning, measured, _REMEDY)
    for place, adapter in enumerate(merged, start=1):
        if not (adapter["change"] > 0 and adapter["least_cosine"] >= CLOSEST):
            meaning = f"adapter {place} changed nothing, or something else than it should"
            return Finding(NAME, "failed", meaning, measured, _REMEDY)
    meaning = "every adapter was merged and changed the states" if declared else "none is declared"
    return Finding(NAME, "passed", meaning, measured)
