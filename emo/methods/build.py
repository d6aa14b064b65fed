"""From a method's settings to the method."""

from collections.abc import Sequence

from torch import Tensor, nn

from emo.config_methods import MethodSettings, TokenTerms
from emo.methods.base import Method
from emo.methods.emo import EmoMethod
from emo.methods.pooled import PooledMethod
from emo.methods.space import Space, StudentSpace, TeacherSpace
from emo.methods.task import ContrastiveTask, LabelledTask, TaskTerm


def build_method(
    settings: MethodSettings,
    *,
    student_layers: Sequence[int],
    student_width: int,
    vector_centre: Tensor,
    state_centre: Tensor,
    token_heads: Sequence[nn.Linear] = (),
    task: TaskTerm | None = None,
) -> Method:
    """Build a method with its own projections.

    Args:
        settings: The method's part of the study.
        student_layers: Student layers whose attention is compared, 0-based.
        student_width: Width of the student's states.
        vector_centre: ``(D_t,)`` mean teacher vector.
        state_centre: ``(D_t,)`` mean teacher token state.
        token_heads: Map the student's token states, one for each compared layer, where the method
            has heads of their own.
        task: The task term of labelled batches; without one, InfoNCE over dropout views.

    Raises:
        ValueError: The settings have a logit term, and there is no task of labelled batches.
    """
    if settings.logits and not isinstance(task, LabelledTask):
        raise ValueError("a logit term needs the task of labelled batches")
    task = task or ContrastiveTask(settings.temperature)
    space: Space = TeacherSpace(vector_centre, state_centre, token_heads)
    if settings.projection == "teacher":
        space = StudentSpace(vector_centre, state_centre, student_width)
    if not isinstance(settings, TokenTerms):
        return PooledMethod(settings, space, task)
    return EmoMethod(settings, space, task, student_layers)
