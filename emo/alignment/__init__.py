"""Which teacher token belongs to which student token, once per text set."""

from emo.alignment.methods import Method, align
from emo.alignment.paper import content_text, paper_text
from emo.alignment.pieces import PieceReader, Pieces, for_teacher_student
from emo.alignment.table import (
    Alignment,
    AlignmentStatistics,
    read_alignment,
    write_alignment,
)

__all__ = [
    "Alignment",
    "AlignmentStatistics",
    "Method",
    "PieceReader",
    "Pieces",
    "align",
    "content_text",
    "for_teacher_student",
    "paper_text",
    "read_alignment",
    "write_alignment",
]
