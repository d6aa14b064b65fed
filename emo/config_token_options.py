"""Keys of a method with token terms that neither form of EMO sets.

They are the same in both forms, and their defaults leave both as they are. ``docs/method.md``
lists them.
"""

from typing import Annotated, Literal

from pydantic import Field, field_validator

from emo.config_sources import Settings

TokenSchedule = Annotated[
    Literal["constant", "fade", "grow"],
    Field(
        description="weights of the terms on tokens over the training: `fade` from full at the "
        "first step to 0 at half of the steps, `grow` from 0 to full there"
    ),
]

RelationCka = Annotated[
    Literal["pooled", "debiased"],
    Field(
        description="CKA of `relations`, debiased: `pooled` over all mapped tokens of a batch at "
        "once, `debiased` text by text"
    ),
]

TokenHead = Annotated[
    Literal["shared", "own"],
    Field(
        description="linear map of the student's token states into the teacher's space: the head "
        "of its vectors, or one of their own, started by least squares on mapped tokens and "
        "dropped after training"
    ),
]

StateLayers = Annotated[
    Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=1, max_length=12)] | None,
    Field(
        description="student layers, 0-based, whose token states are compared with the teacher's "
        "last ones; null for the last layer alone"
    ),
]


class TokenOptions(Settings):
    """What may be tried beyond the two forms."""

    mass_power: float = Field(
        1.0,
        ge=0.0,
        description="power of the importance before its share is taken: above 1 sharper masses, "
        "below 1 flatter ones, with 0 equal ones",
    )
    token_schedule: TokenSchedule = "constant"
    matched: float = Field(
        0.0,
        ge=0.0,
        description="weight of 1 - cosine of the states of mapped tokens, averaged by the "
        "teacher's masses",
    )
    relations: float = Field(
        0.0,
        ge=0.0,
        description="weight of 1 - CKA between the states of mapped tokens, which needs no map "
        "between the widths",
    )
    relation_cka: RelationCka = "pooled"
    token_head: TokenHead = "shared"
    state_layers: StateLayers = None
    marginal: float = Field(
        1.0,
        gt=0.0,
        description="of `solver: unbalanced`: what it costs to miss one unit of mass, in units of "
        "the cost",
    )
    structure: float = Field(
        0.5,
        gt=0.0,
        lt=1.0,
        description="of `solver: fused`: weight of distances within each side against cost between "
        "the sides",
    )

    @field_validator("state_layers")
    @classmethod
    def _no_layer_twice(cls, layers: StateLayers) -> StateLayers:
        if layers is not None and len(set(layers)) < len(layers):
            raise ValueError("name no layer twice")
        return layers
