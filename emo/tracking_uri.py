"""Where runs are tracked: the address, made absolute and checked before anything starts."""

import os
import re
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit

from emo.errors import ConfigError

VARIABLE = "MLFLOW_TRACKING_URI"
DEFAULT = "sqlite:///results/mlflow.db"

_SQLITE = "sqlite:///"
_SCHEMES = ("sqlite", "http", "https", "postgresql", "mysql", "mssql")


@dataclass(frozen=True, slots=True)
class TrackingUri:
    """The address of a tracking store.

    Attributes:
        value: the address as MLflow takes it, absolute.
        chosen: whether the user named it, so that a failure to reach it stops the start.
    """

    value: str
    chosen: bool

    @classmethod
    def resolve(cls, given: str | None) -> Self:
        """Return the given address, else the environment's, else the default database.

        Raises:
            ConfigError: MLflow has no such kind of store.
        """
        named = given or os.environ.get(VARIABLE)
        value = named or DEFAULT
        scheme = urlsplit(value).scheme.partition("+")[0]
        if scheme not in _SCHEMES or (scheme == "sqlite" and not value.startswith(_SQLITE)):
            raise ConfigError(
                f"tracking address {without_passwords(value)!r} (`{VARIABLE}`): MLflow needs a "
                f"database or a server, such as {DEFAULT} or http://localhost:5000; plain folders "
                "are refused"
            )
        if scheme == "sqlite":
            value = f"{_SQLITE}{Path(value.removeprefix(_SQLITE)).absolute()}"
        return cls(value=value, chosen=named is not None)

    @property
    def database(self) -> Path | None:
        """The SQLite file, or None for a server."""
        is_file = self.value.startswith(_SQLITE)
        return Path(self.value.removeprefix(_SQLITE)) if is_file else None

    @property
    def public(self) -> str:
        """The address without user name and password, to be shown and stored."""
        return without_passwords(self.value)


def without_passwords(text: str) -> str:
    """Return a text whose addresses have lost their user names and passwords.

    Example:
        >>> without_passwords("no answer from http://me:secret@host:5000/path")
        'no answer from http://host:5000/path'
    """
    return re.sub(r"(?<=://)[^/\s]*@", "", text)
