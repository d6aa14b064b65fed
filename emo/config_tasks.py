"""Tasks and text sets, as the study describes them."""

import re
from collections.abc import Mapping
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from emo.config_errors import nearest
from emo.config_methods import Family
from emo.config_sources import Settings, Source

Name = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]*$"),
    Field(description="lower-case letters, digits and hyphens"),
]


class TableSettings(Settings):
    """How a data file is read."""

    format: Literal["csv", "tsv", "jsonl", "parquet", "lines"] = Field(
        "csv", description="`lines` reads each line with `pattern`"
    )
    names: list[str] | None = Field(
        None, description="column names of a file that has no header line"
    )
    quoting: bool = Field(True, description="whether double quotes enclose fields")
    pattern: str | None = Field(
        None, description="regular expression with a named group per column, for `lines`"
    )
    encoding: str = Field("utf-8")

    @model_validator(mode="after")
    def _pattern_with_lines(self) -> Self:
        if (self.format == "lines") != (self.pattern is not None):
            raise ValueError("`pattern` goes with `format: lines`, and only with it")
        try:
            columns = re.compile(self.pattern or "").groupindex
        except re.error as error:
            raise ValueError(f"`pattern` is no regular expression: {error}") from None
        if self.pattern is not None and not columns:
            raise ValueError("`pattern` needs a named group for each column, as (?P<text>.+)")
        return self


class FileSplits(Settings):
    """Published splits: one file each."""

    train: str | None = Field(
        None, description="classification needs it; without it a task gives no training texts"
    )
    validation: str | Annotated[int, Field(gt=0)] = Field(
        description="file, or how many rows to take out of the train split"
    )
    test: str

    @model_validator(mode="after")
    def _rows_to_take(self) -> Self:
        if self.train is None and isinstance(self.validation, int):
            raise ValueError("`validation` takes rows out of `train`, which is not given")
        return self


class HashSplits(Settings):
    """Splits of one file by the SHA-256 of the text: test the smallest, validation the next."""

    test: int = Field(gt=0, description="number of test texts")
    validation: int = Field(gt=0, description="number of validation texts")


class SplitSettings(Settings):
    """Where the splits come from: exactly one of the two."""

    files: FileSplits | None = None
    hash: HashSplits | None = None

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if (self.files is None) == (self.hash is None):
            raise ValueError("give either `files` or `hash`")
        return self


COLUMNS: Mapping[Family, tuple[str, ...]] = {
    "classification": ("text", "label"),
    "pairs": ("sentence1", "sentence2", "label"),
    "sts": ("sentence1", "sentence2", "score"),
}


class TaskData(Settings):
    """What a labelled task is prepared from."""

    family: Family
    source: Source
    table: TableSettings = TableSettings()
    columns: dict[str, str] = Field(
        default_factory=dict, description="column of the file for each of ours, where they differ"
    )
    label_from_score: float | None = Field(
        None, description="pairs only: label = (value of the label column >= this number)"
    )
    splits: SplitSettings
    train_fraction: float = Field(
        1.0, gt=0.0, le=1.0, description="share of the train rows that is used, the same everywhere"
    )
    drop_unusable_test_rows: bool = Field(
        False, description="drop test rows without text, with a count, instead of stopping"
    )

    @model_validator(mode="after")
    def _columns_of_family(self) -> Self:
        known = COLUMNS[self.family]
        for column in self.columns:
            if column not in known:
                raise ValueError(
                    f"a {self.family} task has no column `{column}`{nearest(column, known)}"
                )
        if self.family == "classification" and self.splits.files and not self.splits.files.train:
            raise ValueError("`splits.files.train` is missing: a classifier is fitted on it")
        if self.label_from_score is not None and self.family != "pairs":
            raise ValueError("`label_from_score` is for the family `pairs`")
        return self


class TaskSettings(TaskData):
    """A labelled task on which embeddings are judged."""

    texts: Name = Field(description="the text set that students judged here are trained on")


class CorpusSettings(Settings):
    """A file of unlabelled texts."""

    source: Source
    table: TableSettings = TableSettings()
    column: str = Field("text", description="the column that holds the text")


class TextSettings(Settings):
    """A set of training texts: those of tasks, a file, or the labelled rows of one task."""

    tasks: list[Name] = Field(default_factory=list, description="tasks whose train texts are used")
    corpus: CorpusSettings | None = Field(None, description="a file instead of tasks")
    limit: Annotated[int, Field(gt=0)] | None = Field(
        None, description="how many texts are used; a smaller set is part of a larger one"
    )
    labelled: bool = Field(
        False,
        description="keep the train rows of the one task with their labels or scores, pairs as one "
        "text: students are trained and judged with a head, as in the paper's supervised setting",
    )

    @model_validator(mode="after")
    def _exactly_one(self) -> Self:
        if bool(self.tasks) == (self.corpus is not None):
            raise ValueError("give either `tasks` or `corpus`")
        if self.labelled and len(self.tasks) != 1:
            raise ValueError("`labelled` keeps the labels of one task; name one in `tasks`")
        if self.labelled and self.limit is not None:
            raise ValueError(
                "`limit` is for texts without labels; give the task a `train_fraction`"
            )
        return self
