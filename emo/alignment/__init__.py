"""Which teacher token belongs to which student token, once per text set."""

from emo.alignment.methods import align, align_tokens, pair_finder
from emo.alignment.origin import AlignmentOrigin, require_origin
from emo.alignment.paper import content_text, paper_texts
from emo.alignment.table import (
    Alignment,
    AlignmentStatistics,
    read_alignment,
    write_alignment,
)

__all__ = [
    "Alignment",
    "AlignmentOrigin",
    "AlignmentStatistics",
    "align",
    "align_tokens",
    "content_text",
    "pair_finder",
    "paper_texts",
    "read_alignment",
    "require_origin",
    "write_alignment",
]
