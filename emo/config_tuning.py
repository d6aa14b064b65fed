"""How a teacher is tuned on a task: the keys below ``teachers.NAME.tuning``.

Defaults are those of the authors' launch scripts, which are for teachers of seven billion weights;
the rate of LoRA is the largest of them, which smaller teachers need.
"""

from typing import Annotated, Literal

from pydantic import Field

from emo.config_sources import Settings


class _Tuning(Settings):
    """What both kinds share."""

    epochs: int = Field(3, gt=0, description="passes over the train split; the best one is kept")
    batch_size: int = Field(16, gt=0, description="rows a step")
    warmup: float = Field(0.0, ge=0.0, lt=1.0, description="share of the steps, then cosine decay")
    pairs: Literal["apart", "joint"] = Field(
        "apart",
        description="how the two texts of a row are read: apart, so that their embeddings are "
        "tuned, or joint, as one sequence with a head on it, as published",
    )
    seed: int = Field(1, ge=0, le=2**32 - 1, description="of the new weights, order and dropout")


class LoraTuning(_Tuning):
    """Tune a teacher by low-rank adapters, which are merged into its weights afterwards."""

    kind: Literal["lora"]
    rank: int = Field(16, gt=0, description="of an adapter")
    alpha: int = Field(32, gt=0, description="an adapter weighs alpha / rank")
    dropout: float = Field(0.1, ge=0.0, lt=1.0, description="before an adapter")
    targets: list[str] = Field(
        default_factory=list,
        description="names of the layers that get an adapter; every linear layer when left out",
    )
    learning_rate: float = Field(2.0e-4, gt=0.0, description="peak rate of the adapters")


class FullTuning(_Tuning):
    """Tune all weights of a teacher."""

    kind: Literal["full"]
    learning_rate: float = Field(1.0e-5, gt=0.0, description="peak rate of the teacher's weights")


TuningSettings = Annotated[LoraTuning | FullTuning, Field(discriminator="kind")]
