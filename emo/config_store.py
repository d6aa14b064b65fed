"""How a teacher's token states are stored: the keys below ``teachers.NAME.store``."""

from typing import Literal, Self

from pydantic import Field, model_validator

from emo.config_sources import Settings

StatePrecision = Literal["float32", "float16", "int8", "int4"]


class StoreSettings(Settings):
    """Less precision, fewer dimensions or fewer tokens; what is lost is measured and recorded.

    Or no states at all: then a training asks the teacher for those of its batches.
    """

    states: Literal[StatePrecision, "online"] = Field(
        "float32",
        description="precision of token states, integers with a scale for each token; attention "
        "rows are float16 unless this is float32; pooled vectors are always float32; with `online` "
        "neither states nor rows are stored, and each training runs the teacher on its batches",
    )
    width: int | None = Field(
        None, gt=0, description="principal components kept of a token state; all of it if left out"
    )
    tokens: int | None = Field(
        None,
        gt=0,
        description="states of so many text tokens of a text are kept, the most important ones; "
        "all tokens', special ones included, if left out",
    )

    @model_validator(mode="after")
    def _something_to_shrink(self) -> Self:
        if self.states == "online" and (self.width is not None or self.tokens is not None):
            raise ValueError(
                "`states: online` stores no token states, so there are none to shrink; leave out "
                "`width` and `tokens`"
            )
        return self

    @model_validator(mode="after")
    def _whole_bytes(self) -> Self:
        if self.states == "int4" and self.width is not None and self.width % 2:
            raise ValueError("`states: int4` puts two components in a byte; give an even `width`")
        return self
