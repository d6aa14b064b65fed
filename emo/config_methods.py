"""The methods of a study: terms, their weights, and the switches between the two forms of EMO.

Both forms have the same keys. :class:`EmoSettings` holds what each key means and its value in the
repaired form; :class:`EmoPaperSettings` holds the published value of every key that differs. A
method of either form may set any key, so that each repair can be tried alone and with any other.
"""

from typing import Annotated, Any, ClassVar, Literal, Self

from pydantic import Discriminator, Field, Tag, field_validator, model_validator

from emo.config_pooled import Cosine, Dropout, PooledTerms, Relational, Task, Weight
from emo.config_token_options import TokenOptions

Family = Literal["classification", "pairs", "sts"]
AlignmentMethod = Literal["mined", "mined-dp", "span", "mined-types", "mined-masses"]
TextForm = Literal["original", "normalised"]
LayerPair = Annotated[list[Annotated[int, Field(ge=0)]], Field(min_length=2, max_length=2)]


def _kind(value: Any) -> str:
    """Tell the members of a union apart by YAML's own kinds, so that a fault names one of them."""
    kinds: dict[type, str] = {dict: "mapping", list: "list", str: "word"}
    return kinds.get(type(value), "number")


Attention = Annotated[
    Weight, Field(description="weight of the attention CKA term; with 0 no teacher rows are made")
]
Transport = Annotated[Weight, Field(description="weight of the transport term")]
Layers = Annotated[
    Annotated[Annotated[int, Field(ge=1)], Tag("number")]
    | Annotated[dict[Family, Annotated[int, Field(ge=1)]], Tag("mapping")]
    | Annotated[Annotated[list[LayerPair], Field(min_length=1, max_length=12)], Tag("list")],
    Discriminator(_kind),
    Field(
        description="layers whose attention is compared: how many of the student's last ones, the "
        "same by family of the text set, or a list of pairs [student layer, teacher layer]"
    ),
]
RowText = Annotated[
    TextForm,
    Field(
        description="text whose attention is compared; `normalised`: what the student read, "
        "lower-cased and without punctuation, at the price of one more student pass"
    ),
]
RowMap = Annotated[
    Literal["mined", "mined-dp", "span", "mined-types"],
    Field(description="map that pairs the rows"),
]
RowRanking = Annotated[
    Literal["text", "content"],
    Field(
        description="importance that chooses the rows: that of the mapped tokens in the text that "
        "is compared, or that of every token in a second pass without stop words and digits"
    ),
]
Rows = Annotated[
    Annotated[Annotated[int, Field(ge=2)], Tag("number")]
    | Annotated[Literal["third"], Tag("word")],
    Discriminator(_kind),
    Field(description="most rows of a text, or a third of its mapped pairs"),
]
RowPairing = Annotated[
    Literal["paired", "apart"],
    Field(description="`apart` sorts the rows of each side by its own order and pairs by rank"),
]
Cka = Annotated[
    Literal["debiased", "biased", "pooled", "root"],
    Field(
        description="estimator of CKA; `pooled` is debiased over the whole batch, `root` the "
        "published root of the biased one"
    ),
]
CkaReduction = Annotated[
    Literal["mean", "sum", "sum-4"],
    Field(
        description="over texts and layers; `sum-4` is the sum times 4/B, which weighs as the sum "
        "did in the published batches of four"
    ),
]
MassMap = Annotated[
    Literal["mined", "mined-dp", "span", "mined-masses"],
    Field(description="map that pairs tokens and carries the teacher's masses to the student"),
]
Tokens = Annotated[
    Literal["text", "all"],
    Field(description="tokens whose states are compared: those of the text, or special ones too"),
]
Masses = Annotated[
    Literal["share", "softmax"],
    Field(description="from importance to masses: share of the total, or softmax on both sides"),
]
Cost = Annotated[
    Literal["cosine", "euclidean", "attention"], Field(description="of moving mass between tokens")
]
Solver = Annotated[
    Literal["envelope", "unrolled", "unbalanced", "fused"],
    Field(
        description="`envelope` finds the plan without gradient, `unrolled` differentiates "
        "through every round; `unbalanced` may leave mass where it is, `fused` also keeps "
        "distances among the tokens of a side"
    ),
]
Projection = Annotated[
    Literal["student", "teacher"],
    Field(
        description="side of the linear map between the two widths: a head on the student, started "
        "by least squares and kept, or a random one on the teacher, dropped after training"
    ),
]


class PooledSettings(PooledTerms):
    """The strong simple baseline, without terms on tokens."""

    projection: ClassVar[Literal["student"]] = "student"
    form: Literal["pooled"]


class TokenTerms(TokenOptions, PooledTerms):
    """Terms on tokens beside those on the pooled vector, with the values of the repaired form."""

    state_weights: ClassVar[tuple[str, ...]] = ("transport", "matched", "relations")
    token_weights: ClassVar[tuple[str, ...]] = ("attention", *state_weights)
    weights: ClassVar[tuple[str, ...]] = (*PooledTerms.weights, *token_weights)

    @property
    def own_token_head(self) -> bool:
        """Whether token states have a head of their own that a term makes use of."""
        return self.token_head == "own" and bool(self.transport or self.matched)

    attention: Attention = 0.02
    transport: Transport = 0.06
    projection: Projection = "student"
    layers: Layers = 1
    row_text: RowText = "original"
    row_map: RowMap = "mined"
    row_ranking: RowRanking = "text"
    rows: Rows = 8
    row_pairing: RowPairing = "paired"
    cka: Cka = "debiased"
    cka_reduction: CkaReduction = "mean"
    mass_map: MassMap = "mined"
    tokens: Tokens = "text"
    masses: Masses = "share"
    cost: Cost = "cosine"
    centred: bool = Field(
        True, description="take mean states off before tokens are compared, by `relations` never"
    )
    solver: Solver = "envelope"
    epsilon: float = Field(0.1, gt=0.0, description="entropic regularisation of transport")
    rounds: int = Field(100, ge=1, description="most Sinkhorn rounds")
    floor: float = Field(
        0.1,
        ge=0.0,
        description="mass of an unmapped token with `masses: share`, in mean mapped ones",
    )

    @field_validator("layers")
    @classmethod
    def _every_family(cls, layers: Layers) -> Layers:
        """Fill in the families that are left out, and refuse a pair that is named twice."""
        if isinstance(layers, list) and len({tuple(pair) for pair in layers}) < len(layers):
            raise ValueError("name no pair of layers twice")
        if isinstance(layers, dict):
            default = cls.model_fields["layers"].default
            usual = default if isinstance(default, dict) else dict.fromkeys(_PAPER_LAYERS, default)
            return usual | layers
        return layers

    @model_validator(mode="after")
    def _enough_rows(self) -> Self:
        needed = 4 if self.cka in ("debiased", "pooled") else 2
        if self.attention and self.rows != "third" and self.rows < needed:
            raise ValueError(
                f"`rows: {self.rows}` is too few for `cka: {self.cka}`, which needs {needed}; "
                "every text would be left out"
            )
        return self

    @model_validator(mode="after")
    def _some_term_all_along(self) -> Self:
        lasting = [weight for weight in self.weights if weight not in self.token_weights]
        if self.token_schedule != "constant" and not any(getattr(self, name) for name in lasting):
            names = " or ".join(f"`{name}`" for name in lasting)
            raise ValueError(
                f"`token_schedule: {self.token_schedule}` leaves steps without a term; "
                f"give {names} a weight above 0"
            )
        return self

    @model_validator(mode="after")
    def _head_in_use(self) -> Self:
        if self.token_head == "own" and not self.own_token_head:
            raise ValueError(
                "`token_head: own` serves `transport` and `matched`; give one of them a weight, or "
                "leave it out"
            )
        if self.head_start == "drawn" and self.projection == "teacher":
            raise ValueError(
                "`head_start` needs `projection: student`; without a head leave it out"
            )
        return self

    @model_validator(mode="after")
    def _head_with_projection(self) -> Self:
        if self.token_head == "own" and self.projection == "teacher":
            raise ValueError(
                "`token_head: own` needs `projection: student`; with a projection on the "
                "teacher's side the student's token states are compared as they are"
            )
        return self

    @model_validator(mode="after")
    def _layers_with_heads(self) -> Self:
        mapped = self.transport or self.matched
        if self.state_layers is not None and mapped and self.token_head != "own":
            raise ValueError(
                f"`state_layers: {self.state_layers}` with `transport` or `matched` needs "
                "`projection: student` and `token_head: own`; the head of the vectors reads last "
                "states only"
            )
        return self

    @model_validator(mode="after")
    def _masses_with_power(self) -> Self:
        if self.masses == "softmax" and self.mass_power != 1.0:
            raise ValueError(
                f"`mass_power: {self.mass_power}` needs `masses: share`; a softmax has no share "
                "to sharpen"
            )
        return self


class EmoSettings(TokenTerms):
    """The repaired EMO (default form)."""

    form: Literal["emo"]


_PAPER_LAYERS: dict[Family, int] = {"classification": 1, "pairs": 2, "sts": 2}


class EmoPaperSettings(TokenTerms):
    """EMO as its authors ran it, oddities included."""

    form: Literal["emo-paper"]
    dropout: Dropout = None
    cosine: Cosine = 0.0
    relational: Relational = 0.0
    task: Task = 0.5
    attention: Attention = 0.05
    transport: Transport = 0.5
    projection: Projection = "teacher"
    layers: Layers = _PAPER_LAYERS
    row_text: RowText = "normalised"
    row_map: RowMap = "mined-types"
    row_ranking: RowRanking = "content"
    rows: Rows = "third"
    row_pairing: RowPairing = "apart"
    cka: Cka = "root"
    cka_reduction: CkaReduction = "sum-4"
    mass_map: MassMap = "mined-masses"
    tokens: Tokens = "all"
    masses: Masses = "softmax"
    cost: Cost = "attention"
    centred: bool = False
    solver: Solver = "unrolled"


MethodSettings = Annotated[
    PooledSettings | EmoSettings | EmoPaperSettings, Field(discriminator="form")
]
