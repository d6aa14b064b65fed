"""Tokens as their tokenizer shows them, marks and all, which is what the paper compares."""

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from emo.alignment.pairs import PairFinder, TextPairs, chain_pairs
from emo.tokens import TextTokenizer, TokenizedText


@dataclass(frozen=True, slots=True)
class ShownTokens:
    """The tokens of one text without the prompt; the index into each field is the position.

    Attributes:
        strings: Token strings of the vocabulary.
        special: True on tokens the tokenizer added.
        opener: String of the special token that opens the text ("<s>", "[CLS]"), or None where the
            tokenizer puts none there.
    """

    strings: list[str]
    special: list[bool]
    opener: str | None


class ShownReader(dict[int, str]):
    """Looks up the strings of a tokenizer's tokens, and remembers them.

    Args:
        tokenizer: The tokenizer.
    """

    def __init__(self, tokenizer: TextTokenizer) -> None:
        super().__init__()
        self._model = tokenizer.tokenizer

    def __call__(self, tokenized: TokenizedText) -> ShownTokens:
        """Read one text's tokens, and the opening special among them."""
        kept = ~tokenized.prompt
        input_ids = tokenized.input_ids[kept].tolist()
        special = tokenized.special[kept].tolist()
        strings = list(map(self.__getitem__, input_ids))
        return ShownTokens(strings, special, strings[0] if special[:1] == [True] else None)

    def __missing__(self, token_id: int) -> str:
        """Ask the tokenizer for a string for the first time."""
        token: str = self._model.convert_ids_to_tokens([token_id])[0]
        self[token_id] = token
        return token


class ShownPairs(PairFinder):
    """Maps the tokens of each text as they are shown; prompt tokens take no part."""

    def __init__(self, teacher: TextTokenizer, student: TextTokenizer) -> None:
        super().__init__(teacher, student)
        self._read_teacher, self._read_student = ShownReader(teacher), ShownReader(student)

    def __call__(
        self,
        texts: Sequence[str],
        teacher: Sequence[TokenizedText],
        student: Sequence[TokenizedText],
    ) -> TextPairs:
        """Map a block."""
        return chain_pairs(
            [
                self.pair(self._read_teacher(of_teacher), self._read_student(of_student))
                for of_teacher, of_student in zip(teacher, student, strict=True)
            ],
            sizes=[1] * len(texts),
        )

    @staticmethod
    @abstractmethod
    def pair(teacher: ShownTokens, student: ShownTokens) -> TextPairs:
        """Map one text."""
