"""What is tried before the trainings that count, as the study sets it."""

from typing import Annotated

from pydantic import Field, field_validator

from emo.config_sources import Settings

Rate = Annotated[float, Field(gt=0.0)]


class SearchSettings(Settings):
    """A search over learning rates, the same for every method, by the validation splits."""

    learning_rate: list[Rate] = Field(
        min_length=2, description="peak rates that each method is tried with"
    )
    seed: int = Field(0, ge=0, le=2**32 - 1, description="of the trials")
    steps: Annotated[int, Field(gt=0)] | None = Field(
        None, description="of a trial; those of `training` when left out"
    )

    @field_validator("learning_rate")
    @classmethod
    def _none_twice(cls, rates: list[float]) -> list[float]:
        if len(set(rates)) < len(rates):
            raise ValueError("name each only once")
        for rate in rates:
            if float(f"{rate:g}") != rate:
                raise ValueError(f"{rate} has more than six digits, by which trials are named")
        return rates
