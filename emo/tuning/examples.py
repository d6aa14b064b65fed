"""Labelled rows as a teacher reads them, and batches of them.

Shapes: B rows of a batch, S tokens of the longest text; ``n`` texts a row, two where they are read
apart, else one.
"""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from emo.encoder import pad
from emo.errors import DataError
from emo.supervised_rows import SplitRows
from emo.tokens import TextTokenizer, TokenizedText


@dataclass(frozen=True, slots=True)
class Example:
    """One row.

    Attributes:
        texts: What is read of it: one sequence, or two that are read apart.
        target: Its class number or its score.
    """

    texts: tuple[TokenizedText, ...]
    target: int | float


class Examples(torch.utils.data.Dataset[Example]):
    """The rows of a split, in memory.

    Args:
        rows: The rows.
        tokenizer: The teacher's tokenizer.
        joint: Whether the two texts of a row are one sequence.

    Raises:
        DataError: A text has no token.
    """

    def __init__(self, rows: SplitRows, tokenizer: TextTokenizer, joint: bool) -> None:
        first, *second = zip(*rows.texts, strict=True)
        if second and joint:
            read = [tokenizer(list(zip(first, *second, strict=True)))]
        else:
            read = [tokenizer(list(side)) for side in (first, *second)]
        self._texts = list(zip(*read, strict=True))
        self._targets = rows.targets.tolist()
        for texts, shown in zip(self._texts, rows.texts, strict=True):
            if not all(len(text.input_ids) for text in texts):
                raise DataError(
                    f"the teacher's tokenizer makes no token of {shown}; leave such rows out, or "
                    "name an `end_token`"
                )

    def __len__(self) -> int:
        return len(self._texts)

    def __getitem__(self, index: int) -> Example:
        return Example(self._texts[index], self._targets[index])

    def by_length(self) -> list[int]:
        """Return the numbers of the rows, the longest first, so that batches waste no padding."""
        longest = [max(len(text.input_ids) for text in texts) for texts in self._texts]
        return sorted(range(len(self)), key=lambda index: (-longest[index], index))


def collate(batch: Sequence[Example], pad_id: int) -> dict[str, Tensor]:
    """Join rows into tensors.

    Returns:
        ``input_ids`` and ``mask``, ``(n B, S)``: the first text of each row, then the second of
        each; and ``targets`` ``(B,)``.
    """
    sides = zip(*(example.texts for example in batch), strict=True)
    input_ids, mask = pad([text for side in sides for text in side], pad_id)
    targets = torch.tensor([example.target for example in batch])
    return {"input_ids": input_ids, "mask": mask, "targets": targets}
