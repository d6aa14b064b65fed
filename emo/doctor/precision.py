"""How much of the teacher is lost in the precision that its pass runs in?"""

from torch.nn.functional import cosine_similarity

from emo.doctor.finding import Finding
from emo.doctor.subject import Subject

NAME = "dtype"

WARNED, FAILED = 0.999, 0.99
"""Least cosine to the vectors in float32, below which the doctor warns and fails."""


def check_dtype(subject: Subject) -> Finding:
    """Compare vectors in the precision of the pass with those in float32."""
    if subject.dtype == "float32":
        return Finding(NAME, "passed", "the pass runs in float32")
    vectors = subject.together[8].vectors.double()
    cosines = cosine_similarity(vectors, subject.reference.vectors.double(), dim=1)
    least = float(cosines.min())
    measured: dict[str, float | int | str] = {
        "mean cosine": float(cosines.mean()),
        "least cosine": least,
        "device": str(subject.encoder.device),
    }
    slow = ""
    if subject.encoder.device.type == "cpu":
        slow = f"; {subject.dtype} may be slower than float32 on a CPU"
    remedy = "set the teacher's `dtype` to float32, or try the other half precision"
    if not least >= FAILED:
        meaning = f"vectors in {subject.dtype} are not those of the teacher"
        return Finding(NAME, "failed", meaning + slow, measured, remedy)
    if least < WARNED:
        meaning = f"some vectors in {subject.dtype} are off those in float32"
        return Finding(NAME, "warning", meaning + slow, measured, remedy)
    return Finding(NAME, "passed", f"{subject.dtype} keeps the vectors{slow}", measured)
