"""Keys of every method: terms on the pooled vector, and on what a head says of the task."""

from typing import Annotated, ClassVar, Literal, Self

from pydantic import Field, model_validator

from emo.config_sources import Settings

Weight = Annotated[float, Field(ge=0.0)]
Dropout = Annotated[
    float | None,
    Field(ge=0.0, lt=1.0, description="of the student in training; null keeps the model's own"),
]
Cosine = Annotated[Weight, Field(description="weight of 1 - cosine of the centred vectors")]
Relational = Annotated[
    Weight,
    Field(description="weight of the squared difference of the in-batch similarity matrices"),
]
Task = Annotated[
    Weight,
    Field(
        description="weight of the task term: cross-entropy or squared error of a head on a "
        "labelled text set, else InfoNCE over dropout views"
    ),
]
Logits = Annotated[
    Weight,
    Field(
        description="weight of the distance to what the head of a tuned teacher says: KL of its "
        "class probabilities, or squared error of its score; on labelled text sets only"
    ),
]
HeadStart = Annotated[
    Literal["fitted", "drawn"],
    Field(
        description="first weights of a head on the student: by least squares on the teacher's "
        "vectors, or random, which a student of random layers needs"
    ),
]


class PooledTerms(Settings):
    """Terms on the pooled vector, and on what a head says of the task."""

    weights: ClassVar[tuple[str, ...]] = ("cosine", "relational", "task", "logits")

    dropout: Dropout = 0.0
    head_start: HeadStart = "fitted"
    cosine: Cosine = 1.0
    relational: Relational = 10.0
    task: Task = 0.0
    logits: Logits = 0.0
    logit_temperature: float = Field(
        2.0, gt=0.0, description="of the class probabilities that `logits` compares"
    )
    temperature: float = Field(0.05, gt=0.0, description="of InfoNCE over dropout views")

    @model_validator(mode="after")
    def _some_term(self) -> Self:
        if not any(getattr(self, weight) for weight in self.weights):
            names = " or ".join(f"`{weight}`" for weight in self.weights)
            raise ValueError(f"give {names} a weight above 0")
        return self
