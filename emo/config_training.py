"""The budget of a training, as the study sets it."""

from typing import Literal

from pydantic import Field

from emo.config_sources import Settings


class TrainingSettings(Settings):
    """The budget and the optimiser, the same for every method."""

    steps: int = Field(gt=0)
    batch_size: int = Field(gt=1, description="texts a step")
    learning_rate: float = Field(gt=0.0, description="peak rate of the student's weights")
    head_learning_rate: float = Field(1.0e-3, gt=0.0, description="of projections and of heads")
    warmup: float = Field(0.1, ge=0.0, lt=1.0, description="share of the steps, then cosine decay")
    weight_decay: float = Field(0.01, ge=0.0, description="never put on projections and heads")
    gradient_clip: float = Field(1.0, gt=0.0)
    checkpoint_every: int = Field(50, gt=0, description="steps between checkpoints")
    collapsed: Literal["stop", "keep"] = Field(
        "stop", description="students whose vectors are all alike; `keep`: judged as they are"
    )
    log_every: int = Field(10, gt=0, description="steps between logged losses")
    gradient_norms_every: int = Field(50, gt=0, description="steps between norms by term")
