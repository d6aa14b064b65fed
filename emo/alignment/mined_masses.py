"""The paper's map for the transport, by which teacher masses reach student tokens.

Source: the second mapping of the authors' code, of its transport. Kept as it is: a dictionary
from string to string over all tokens, special ones included, teacher to student only, many-to-one
allowed; a "<s>" or "[CLS]" that stands in the text shares the entry of the special token.
Changed: the strings on both sides are sorted, so that ties do not depend on the hash seed.
"""

from dataclasses import dataclass

import numpy as np

from emo.alignment.nearest import edit_distances
from emo.alignment.pairs import TextPairs
from emo.alignment.shown import ShownPairs, ShownTokens


@dataclass(frozen=True, slots=True)
class Target:
    """The student string a teacher string goes to; `tied` if another one is as near."""

    string: str
    distance: int
    tied: bool


class MinedMassPairs(ShownPairs):
    """Maps teacher tokens onto student tokens by their strings.

    The teacher's opening special goes to the student's, at distance 0, since the authors rewrite
    one into the other before they compare; nothing else goes there. Each student position that is
    hit is one row with the last teacher position that writes it: later tokens overwrite.
    """

    @staticmethod
    def pair(teacher: ShownTokens, student: ShownTokens) -> TextPairs:
        """Find for each student token of one text the teacher token whose mass it gets.

        Example:
            >>> teacher = ShownTokens(["<s>", "▁new", "▁new"], [True, False, False], "<s>")
            >>> student = ShownTokens(["[CLS]", "new", "##s"], [True, False, False], "[CLS]")
            >>> pairs = MinedMassPairs.pair(teacher, student)
            >>> pairs.teacher_position, pairs.student_position
            (array([0, 2], dtype=int32), array([0, 1], dtype=int32))
        """
        targets = nearest_strings(teacher, student)
        writers: dict[str, int] = {}
        for position, string in enumerate(teacher.strings):
            if string in targets:
                writers[targets[string].string] = position
        rows = sorted(
            (writers[string], position)
            for position, string in enumerate(student.strings)
            if string in writers
        )
        chosen = [targets[teacher.strings[writer]] for writer, _ in rows]
        return TextPairs(
            text=np.zeros(len(rows), dtype=np.int64),
            teacher_position=np.array([writer for writer, _ in rows], dtype=np.int32),
            student_position=np.array([position for _, position in rows], dtype=np.int32),
            distance=np.array([target.distance for target in chosen], dtype=np.int32),
            teacher_tokens=len(teacher.strings),
            student_tokens=len(student.strings),
            ties=sum(target.tied for target in chosen),
        )


def nearest_strings(teacher: ShownTokens, student: ShownTokens) -> dict[str, Target]:
    """Find the target of each teacher string; none for any if the student has only its opener."""
    targets: dict[str, Target] = {}
    if teacher.opener is not None and student.opener is not None:
        targets[teacher.opener] = Target(student.opener, 0, tied=False)
    sources = sorted(set(teacher.strings) - targets.keys())
    candidates = sorted(set(student.strings) - {student.opener})
    if not (sources and candidates):
        return targets
    distances = edit_distances(sources, candidates)
    least = distances.min(axis=1)
    tied = (distances == least[:, None]).sum(axis=1) > 1
    for source, index in enumerate(distances.argmin(axis=1)):
        targets[sources[source]] = Target(
            candidates[index], int(least[source]), tied=bool(tied[source])
        )
    return targets
