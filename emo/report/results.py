"""All that is reported of one teacher and one student, ready to be shown."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from emo.config import Selection
from emo.config_methods import Family
from emo.report.averages import MethodRuns, method_runs
from emo.report.runs import TEACHER, UNDISTILLED, Run, pairs_of
from emo.report.speeds import Speed, speed_of


@dataclass(frozen=True, slots=True)
class PairResults:
    """Results of one teacher and one student.

    Attributes:
        teacher: Name of the teacher.
        student: Name of the student.
        tasks: Tasks in the order of the study.
        methods: Runs by method: the teacher, the undistilled student, the methods of the study.
        teacher_speed: Speed of the teacher.
        student_speed: Speed of the undistilled student, without the head that a method may add.
    """

    teacher: str
    student: str
    tasks: tuple[str, ...]
    methods: Mapping[str, MethodRuns]
    teacher_speed: Speed
    student_speed: Speed

    @property
    def names(self) -> tuple[str, str]:
        """Teacher and student."""
        return self.teacher, self.student

    @property
    def families(self) -> list[Family]:
        """Families of the tasks, sorted."""
        return sorted(set(self.methods[TEACHER].families.values()))

    @property
    def distilled(self) -> list[str]:
        """The methods of the study, in its order."""
        return [method for method in self.methods if method not in (TEACHER, UNDISTILLED)]

    @property
    def speed_up(self) -> float | None:
        """How much faster the student is; None when the two were measured differently."""
        if self.teacher_speed.conditions != self.student_speed.conditions:
            return None
        return self.student_speed.texts_per_second / self.teacher_speed.texts_per_second

    def speed(self, method: str) -> Speed:
        """Return the speed that a method's row bears: a distilled student is not measured."""
        return self.teacher_speed if method == TEACHER else self.student_speed

    def label(self, method: str) -> str:
        """Return the name that a method's row or point bears."""
        return model_label(self.teacher, self.student, method)


def model_label(teacher: str, student: str, method: str) -> str:
    """Return the name that the row of a model bears.

    >>> model_label("e5", "minilm", "undistilled"), model_label("e5", "minilm", "emo")
    ('minilm (undistilled)', 'emo')
    """
    named = {TEACHER: f"{teacher} (teacher)", UNDISTILLED: f"{student} (undistilled)"}
    return named.get(method, method)


def collect(
    selection: Selection, runs: Sequence[Run], speeds: Mapping[str, Speed]
) -> list[PairResults]:
    """Put runs together by teacher and student.

    Raises:
        DataError: A run or a speed is missing.
    """
    names = (TEACHER, UNDISTILLED, *selection.methods)
    return [
        PairResults(
            teacher=teacher,
            student=student,
            tasks=tuple(selection.tasks),
            methods={
                name: method_runs(runs, (teacher, student), name, selection.tasks) for name in names
            },
            teacher_speed=speed_of(speeds, teacher),
            student_speed=speed_of(speeds, student),
        )
        for teacher, student in pairs_of(runs)
    ]
