"""Where runs are tracked: the address, made absolute and checked before anything starts."""

import os
from dataclasses import dataclass
from pathlib import Path
from typing import Self
from urllib.parse import urlsplit, urlunsplit

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
                f"tracking address {value!r} (`{VARIABLE}`): MLflow needs a database or a server, "
                f"such as {DEFAULT} or http://localhost:5000; plain folders are refused"
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
        """The address without user name and password, to be shown and stored.

        Example:
            >>> TrackingUri("https://me:secret@host:5000/path", chosen=True).public
            'https://host:5000/path'
        """
        parts = urlsplit(self.value)
        return urlunsplit(parts._replace(netloc=parts.netloc.rpartition("@")[2]))
