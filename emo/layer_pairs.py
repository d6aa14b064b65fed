"""Which layers of student and teacher are compared."""

from collections.abc import Sequence

from emo.errors import DataError
from emo.requests import RowRequest


def layer_pairs(
    request: RowRequest, student_layers: int, teacher_layers: int
) -> list[tuple[int, int]]:
    """Return (student, teacher) layers that are compared, 0-based.

    Unless the request names the pairs, the paper's block map does: with b = N_T // N_S, student
    layer i meets teacher layer i * b + b - 1.

    Raises:
        DataError: The student or the teacher has no such layer.
    """
    if not isinstance(request.layers, int):
        return _existing(request.layers, student_layers, teacher_layers)
    if request.layers > student_layers or student_layers > teacher_layers:
        raise DataError(
            f"cannot compare the last {request.layers} of {student_layers} student layers with "
            f"{teacher_layers} teacher layers; ask for fewer `layers` in the method, or name pairs"
        )
    block = teacher_layers // student_layers
    chosen = request.student_layers(student_layers)
    return [(layer, layer * block + block - 1) for layer in chosen]


def _existing(
    pairs: Sequence[tuple[int, int]], student_layers: int, teacher_layers: int
) -> list[tuple[int, int]]:
    for student, teacher in pairs:
        if student >= student_layers or teacher >= teacher_layers:
            raise DataError(
                f"layers [{student}, {teacher}]: the student has layers 0 to {student_layers - 1}, "
                f"the teacher 0 to {teacher_layers - 1}; change `layers` in the method"
            )
    return list(pairs)
