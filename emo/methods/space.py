"""Where student and teacher are compared: on which side the map between their widths stands."""

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor, nn

from emo.encoder import Encoder


@dataclass(frozen=True, slots=True)
class Sides:
    """Student and teacher in one space, and the middle of each there.

    Attributes:
        student: ``(..., D)``.
        teacher: ``(..., D)``.
        student_centre: ``(D,)``, or None where only the batch can tell it.
        teacher_centre: ``(D,)``.
    """

    student: Tensor
    teacher: Tensor
    student_centre: Tensor | None
    teacher_centre: Tensor


class Space(nn.Module, ABC):
    """Brings student and teacher into one space.

    Args:
        vector_centre: ``(D_t,)`` mean teacher vector of the text set.
        state_centre: ``(D_t,)`` mean teacher token state of the text set.
    """

    vector_centre: Tensor
    state_centre: Tensor

    def __init__(self, vector_centre: Tensor, state_centre: Tensor) -> None:
        super().__init__()
        self.register_buffer("vector_centre", vector_centre)
        self.register_buffer("state_centre", state_centre)

    @abstractmethod
    def tokens(
        self, student: Encoder, student_states: Tensor, teacher_states: Tensor, place: int
    ) -> Sides:
        """Bring token states into the space.

        Args:
            student: The student.
            student_states: ``(B, S, D_s)``.
            teacher_states: ``(B, R, D_t)``.
            place: Which of the compared layers the student's states come from.
        """

    @abstractmethod
    def vectors(self, student_vectors: Tensor, teacher_vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Bring text vectors into the space, student and teacher, each centred."""


class TeacherSpace(Space):
    """The teacher's own space: the student's head, which stays part of it, maps there.

    The head maps to the scale of the teacher's vectors, so their mean centres the student, of
    tokens too; a head of their own maps token states to those of the teacher. A mean over the
    batch would make a text's loss depend on its neighbours.

    Args:
        vector_centre: ``(D_t,)`` mean teacher vector of the text set.
        state_centre: ``(D_t,)`` mean teacher token state of the text set.
        token_heads: Map token states, one for each compared layer; without any, the head of the
            student's vectors does.
    """

    def __init__(
        self, vector_centre: Tensor, state_centre: Tensor, token_heads: Sequence[nn.Linear] = ()
    ) -> None:
        super().__init__(vector_centre, state_centre)
        self.token_heads = nn.ModuleList(token_heads)

    def tokens(
        self, student: Encoder, student_states: Tensor, teacher_states: Tensor, place: int
    ) -> Sides:
        """Put the student's token states through a head."""
        if self.token_heads:
            mapped, centre = self.token_heads[place](student_states), self.state_centre
        else:
            mapped, centre = student.head(student_states), self.vector_centre
        return Sides(mapped, teacher_states, centre, self.state_centre)

    def vectors(self, student_vectors: Tensor, teacher_vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Centre both by the teacher's mean: the student's vectors come out of its head."""
        return student_vectors - self.vector_centre, teacher_vectors - self.vector_centre


class StudentSpace(Space):
    """The student's space: a projection maps the teacher there, as published.

    It learns with the student, so that part of a loss can be met by moving the target. The
    student's centre is the batch's, since nothing else tells where the student is.

    Args:
        vector_centre: ``(D_t,)`` mean teacher vector of the text set.
        state_centre: ``(D_t,)`` mean teacher token state of the text set.
        student_width: D_s.
    """

    def __init__(self, vector_centre: Tensor, state_centre: Tensor, student_width: int) -> None:
        super().__init__(vector_centre, state_centre)
        self.projection = nn.Linear(state_centre.shape[0], student_width)

    def tokens(
        self, student: Encoder, student_states: Tensor, teacher_states: Tensor, place: int
    ) -> Sides:
        """Project the teacher's token states."""
        projected = self.projection(teacher_states)
        return Sides(student_states, projected, None, self.projection(self.state_centre))

    def vectors(self, student_vectors: Tensor, teacher_vectors: Tensor) -> tuple[Tensor, Tensor]:
        """Project the teacher's vectors with the same projection."""
        projected = self.projection(teacher_vectors) - self.projection(self.vector_centre)
        return student_vectors - student_vectors.mean(dim=0), projected
