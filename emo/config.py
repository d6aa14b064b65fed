"""The study, typed: what ``config.yaml`` may say.

``workflow/schemas/config.schema.yaml`` is written from :class:`Study` (``make schema``), so the
schema that editors read and the checks that a run makes are one thing. Threads, memory, devices
and folders are not part of a study and have no key here.
"""

import re
from collections.abc import Iterable, Mapping
from itertools import product
from typing import Annotated, Any, Literal, Self

from pydantic import (
    Field,
    StringConstraints,
    ValidationError,
    field_validator,
    model_validator,
)

from emo.config_errors import explain, nearest
from emo.config_methods import Family, MethodSettings
from emo.config_models import StudentSettings, TeacherSettings
from emo.config_sources import Settings, Source
from emo.errors import ConfigError

_FOLDERS = (
    *("alignment", "benchmarks", "figures", "reference", "rows", "speed", "store", "trained"),
    "tuned",
)
RESERVED_NAMES = frozenset({*_FOLDERS, "teacher", "tuning", "undistilled"})
"""Folders of the results, and what is tracked as a method and is none of the study's."""

Name = Annotated[
    str,
    StringConstraints(pattern=r"^[a-z0-9][a-z0-9-]*$"),
    Field(description="lower-case letters, digits and hyphens"),
]
Seed = Annotated[int, Field(ge=0, le=2**32 - 1, description="as large as numpy takes")]


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

    train: str
    validation: str
    test: str


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


class TaskSettings(Settings):
    """A labelled task on which embeddings are judged."""

    family: Family
    texts: Name = Field(description="the text set that students judged here are trained on")
    source: Source
    table: TableSettings = TableSettings()
    columns: dict[str, str] = Field(
        default_factory=dict, description="column of the file for each of ours, where they differ"
    )
    label_from_score: float | None = Field(
        None, description="pairs only: label = (value of the label column >= this number)"
    )
    splits: SplitSettings
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
        if self.label_from_score is not None and self.family != "pairs":
            raise ValueError("`label_from_score` is for the family `pairs`")
        return self


class TextSettings(Settings):
    """A set of unlabelled training texts: the train texts of tasks."""

    tasks: list[Name] = Field(min_length=1, description="tasks whose train texts are used")


class TrainingSettings(Settings):
    """The budget and the optimiser, the same for every method."""

    steps: int = Field(gt=0)
    batch_size: int = Field(gt=1, description="texts a step")
    learning_rate: float = Field(gt=0.0, description="peak rate of the student's weights")
    head_learning_rate: float = Field(1.0e-3, gt=0.0, description="of projections")
    warmup: float = Field(0.1, ge=0.0, lt=1.0, description="share of the steps, then cosine decay")
    weight_decay: float = Field(0.01, ge=0.0, description="never put on projections")
    gradient_clip: float = Field(1.0, gt=0.0)
    checkpoint_every: int = Field(50, gt=0, description="steps between checkpoints")
    log_every: int = Field(10, gt=0, description="steps between logged losses")
    gradient_norms_every: int = Field(50, gt=0, description="steps between norms by term")


class Comparison(Settings):
    """The two methods whose difference the report tests."""

    method: Name
    baseline: Name


class Selection(Settings):
    """Which of the declared things this study runs."""

    teachers: list[Name] = Field(min_length=1)
    students: list[Name] = Field(min_length=1)
    tasks: list[Name] = Field(min_length=1)
    methods: list[Name] = Field(min_length=1)
    seeds: list[Seed] = Field(min_length=1)
    compare: Comparison

    @field_validator("teachers", "students", "tasks", "methods", "seeds")
    @classmethod
    def _none_twice(cls, chosen: list[Any]) -> list[Any]:
        if len(set(chosen)) < len(chosen):
            raise ValueError("name each only once")
        return chosen


class Study(Settings):
    """One ``config.yaml``."""

    study: Selection
    teachers: dict[Name, TeacherSettings]
    students: dict[Name, StudentSettings]
    tasks: dict[Name, TaskSettings]
    texts: dict[Name, TextSettings]
    methods: dict[Name, MethodSettings]
    training: TrainingSettings

    @model_validator(mode="after")
    def _names_are_known(self) -> Self:
        chosen = self.study
        _require("study.teachers", chosen.teachers, self.teachers)
        _require("study.students", chosen.students, self.students)
        _require("study.tasks", chosen.tasks, self.tasks)
        _require("study.methods", chosen.methods, self.methods)
        compared = [chosen.compare.method, chosen.compare.baseline]
        _require("study.compare", compared, chosen.methods)
        for name, task in self.tasks.items():
            _require(f"tasks.{name}.texts", [task.texts], self.texts)
        for name, texts in self.texts.items():
            _require(f"texts.{name}.tasks", texts.tasks, self.tasks)
        return self

    @model_validator(mode="after")
    def _tuned_on_one_task(self) -> Self:
        tuned = [name for name in self.study.teachers if self.teachers[name].tuning is not None]
        for teacher, texts in product(tuned, self.trained_texts()):
            tasks = self.texts[texts].tasks
            if len(tasks) > 1:
                raise ValueError(
                    f"teachers.{teacher}.tuning: a teacher is tuned on one task, but the text set "
                    f"`{texts}` is made of {', '.join(tasks)}; give each of them a text set of "
                    "its own, or leave `tuning` out"
                )
        return self

    @model_validator(mode="after")
    def _names_are_free(self) -> Self:
        for section in ("teachers", "students", "tasks", "texts", "methods"):
            for name in getattr(self, section):
                if name in RESERVED_NAMES:
                    raise ValueError(f"{section}.{name}: the name `{name}` is reserved")
        for name in self.students.keys() & self.teachers.keys():
            raise ValueError(f"students.{name}: a teacher has that name; choose another")
        return self

    def models(self) -> dict[str, TeacherSettings | StudentSettings]:
        """Return every declared model by name, teachers and students together."""
        return {**self.teachers, **self.students}

    def tuned_on(self, model: str, texts: str) -> str | None:
        """Return the task that a model is tuned on before it meets a text set, if it is."""
        teacher = self.teachers.get(model)
        tuned = teacher is not None and teacher.tuning is not None
        return self.texts[texts].tasks[0] if tuned else None

    def trained_texts(self) -> list[str]:
        """Return the text sets that the chosen tasks need, sorted."""
        return sorted({self.tasks[task].texts for task in self.study.tasks})

    def text_family(self, texts: str) -> Family:
        """Return the family that a text set is trained for: that of its first task."""
        return self.tasks[self.texts[texts].tasks[0]].family


def _require(key: str, names: Iterable[str], known: Iterable[str]) -> None:
    known = list(known)
    for name in names:
        if name not in known:
            raise ValueError(f"{key}: unknown name `{name}`{nearest(name, known)}")


def parse_study(config: Mapping[str, Any]) -> Study:
    """Check a loaded ``config.yaml`` and return the study.

    Args:
        config: The file's content as plain dicts, lists and scalars.

    Raises:
        ConfigError: One line per fault: the key, what is wrong, and the nearest right name.
    """
    if not isinstance(config, Mapping) or not config:
        raise ConfigError("the config is empty; start from the config.yaml of the project")
    try:
        return Study.model_validate(config)
    except ValidationError as error:
        raise ConfigError(explain(error, Study)) from None
