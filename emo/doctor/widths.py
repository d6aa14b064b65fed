"""Are vectors as wide and as long as the folder declares?"""

from sentence_transformers.sentence_transformer.modules import Normalize

from emo.doctor.finding import Finding
from emo.doctor.subject import Subject

NAME = "width and length"


def check_widths(subject: Subject) -> Finding:
    """Compare the declared width with the real one, and lengths with 1 behind a Normalize."""
    encoder, said = subject.encoder, subject.together[8]
    declared, width = encoder.model.get_embedding_dimension(), said.vectors.shape[1]
    states = said.states[0].shape[1]
    off = float((said.vectors.double().norm(dim=1) - 1).abs().max())
    normalised = any(isinstance(module, Normalize) for module in encoder.model)
    measured: dict[str, float | int | str] = {
        "declared": str(declared),
        "width": width,
        "declared for states": encoder.width,
        "width of states": states,
        "length off 1": off,
    }
    if (declared, encoder.width) != (width, states):
        return Finding(
            NAME,
            "failed",
            f"vectors of width {declared} and states of width {encoder.width} are declared, "
            f"{width} and {states} come out",
            measured,
            "the folder's module configs do not fit its weights; prepare the teacher anew with "
            "`emo model`",
        )
    if normalised and not off <= subject.tolerance.difference:
        return Finding(
            NAME,
            "failed",
            "vectors do not have length 1 although the folder normalises",
            measured,
            "put the Normalize module last in modules.json",
        )
    lengths = "length 1" if normalised else "lengths of their own"
    return Finding(NAME, "passed", f"vectors have width {width} and {lengths}", measured)
