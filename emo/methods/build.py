"""From a method's settings to the method."""

from torch import Tensor, nn

from emo.config import EmoPaperSettings, EmoSettings, MethodSettings
from emo.methods.base import Method
from emo.methods.emo import EmoMethod
from emo.methods.emo_paper import EmoPaperMethod
from emo.methods.pooled import PooledMethod


def build_method(
    settings: MethodSettings,
    *,
    layers: int,
    student_width: int,
    vector_centre: Tensor,
    state_centre: Tensor,
) -> Method:
    """Build a method with its own projections.

    Args:
        settings: The method's part of the study.
        layers: How many student layers its attention term compares.
        student_width: Width of the student's states.
        vector_centre: ``(D_t,)`` mean teacher vector.
        state_centre: ``(D_t,)`` mean teacher token state.
    """
    match settings:
        case EmoPaperSettings():
            projection = nn.Linear(state_centre.shape[0], student_width)
            return EmoPaperMethod(settings, layers, projection)
        case EmoSettings():
            return EmoMethod(settings, vector_centre, state_centre)
        case _:
            return PooledMethod(settings, vector_centre)
