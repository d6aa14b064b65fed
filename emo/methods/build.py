"""From a method's settings to the method."""

from torch import Tensor, nn

from emo.config import EmoPaperSettings, EmoSettings, MethodSettings
from emo.methods.base import Method
from emo.methods.emo import EmoMethod
from emo.methods.emo_paper import EmoPaperMethod
from emo.methods.head import fit_head
from emo.methods.pooled import PooledMethod


def build_method(
    settings: MethodSettings,
    *,
    layers: int,
    student_sample: Tensor,
    teacher_sample: Tensor,
    vector_centre: Tensor,
    state_centre: Tensor,
) -> Method:
    """Build a method with its projections.

    Args:
        settings: The method's part of the study.
        layers: How many student layers its attention term compares.
        student_sample: ``(N, D_s)`` pooled states of the untrained student.
        teacher_sample: ``(N, D_t)`` teacher vectors of the same texts.
        vector_centre: ``(D_t,)`` mean teacher vector.
        state_centre: ``(D_t,)`` mean teacher token state.
    """
    if isinstance(settings, EmoPaperSettings):
        projection = nn.Linear(state_centre.shape[0], student_sample.shape[1])
        return EmoPaperMethod(settings, layers, projection)
    head = fit_head(student_sample, teacher_sample - vector_centre)
    if isinstance(settings, EmoSettings):
        return EmoMethod(settings, head, vector_centre, state_centre)
    return PooledMethod(settings, head, vector_centre)
