"""Which texts of a set a shard holds."""

import re
from dataclasses import dataclass

from emo.errors import ConfigError

_NAME = re.compile(r"([1-9]\d*)-of-([1-9]\d*)")


@dataclass(frozen=True, slots=True, order=True)
class ShardName:
    """One of equal parts of a text set, named as Snakemake names the parts of a scatter.

    Attributes:
        count: Number of parts.
        number: Which one, from 1.
    """

    count: int
    number: int

    @classmethod
    def parse(cls, text: str) -> "ShardName":
        """Read a name.

        Raises:
            ConfigError: It names no part.

        >>> ShardName.parse("2-of-5")
        ShardName(count=5, number=2)
        """
        match = _NAME.fullmatch(text)
        if match is None or int(match[1]) > int(match[2]):
            raise ConfigError(f"`{text}` names no shard; write one like 1-of-2")
        return cls(int(match[2]), int(match[1]))

    def __str__(self) -> str:
        return f"{self.number}-of-{self.count}"

    def rows(self, texts: int) -> range:
        """Return the rows of a set of so many texts that belong here.

        >>> [ShardName(3, number).rows(8) for number in (1, 2, 3)]
        [range(0, 2), range(2, 5), range(5, 8)]
        """
        return range(
            (self.number - 1) * texts // self.count,
            self.number * texts // self.count,
        )
