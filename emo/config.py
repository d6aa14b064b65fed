"""The study, typed: what ``config.yaml`` may say.

``workflow/schemas/config.schema.yaml`` is written from :class:`Study` (``make schema``), so the
schema that editors read and the checks that a run makes are one thing. Threads, memory, devices
and folders are not part of a study and have no key here.
"""

from collections.abc import Iterable, Mapping
from itertools import product
from typing import Annotated, Any, Self

from pydantic import Field, ValidationError, field_validator, model_validator

from emo.config_errors import explain, nearest
from emo.config_labelled import check_labelled
from emo.config_methods import Family, MethodSettings
from emo.config_models import StudentSettings, TeacherSettings
from emo.config_search import SearchSettings
from emo.config_sources import DATA, Settings
from emo.config_tasks import Name, TaskSettings, TextSettings
from emo.config_training import TrainingSettings
from emo.errors import ConfigError

_FOLDERS = (
    *("alignment", "benchmarks", "figures", "reference", "rows", "search", "speed", "store"),
    *("student", "trained", "tuned"),
)
RESERVED_NAMES = frozenset({*_FOLDERS, "teacher", "tuning", "undistilled"})
"""Folders of the results, and what is tracked as a method and is none of the study's."""

Seed = Annotated[int, Field(ge=0, le=2**32 - 1, description="as large as numpy takes")]


class Comparison(Settings):
    """The baseline of every method's difference, and the method that the study asks about."""

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

    data: str | None = Field(
        None, description="folder that a local `path` may start with, as in {data}/file.csv"
    )
    study: Selection
    teachers: dict[Name, TeacherSettings]
    students: dict[Name, StudentSettings]
    tasks: dict[Name, TaskSettings]
    texts: dict[Name, TextSettings]
    methods: dict[Name, MethodSettings]
    training: TrainingSettings
    search: SearchSettings | None = None

    @model_validator(mode="before")
    @classmethod
    def _data_folder(cls, config: Any) -> Any:
        """Put the folder where paths name it."""
        data = config.get("data") if isinstance(config, Mapping) else None
        return config if data is None else _with_folder(config, str(data))

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
            if len(tasks) != 1:
                raise ValueError(
                    f"teachers.{teacher}.tuning: a teacher is tuned on one task, but the text set "
                    f"`{texts}` is made of {', '.join(tasks) or 'a file'}; give each task a text "
                    "set of its own, or leave `tuning` out"
                )
        return self

    @model_validator(mode="after")
    def _labels_are_learned(self) -> Self:
        check_labelled(self)
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

    def judged_on(self, texts: str) -> list[str]:
        """Return the chosen tasks whose students are trained on a text set."""
        return [task for task in self.study.tasks if self.tasks[task].texts == texts]

    def trained_texts(self) -> list[str]:
        """Return the text sets that the chosen tasks need, sorted."""
        return sorted({self.tasks[task].texts for task in self.study.tasks})

    def text_family(self, texts: str) -> Family:
        """Return the family that a text set is trained for: that of its first task.

        A file is trained for similarity, as in the studies that distil on a mixed corpus.
        """
        tasks = self.texts[texts].tasks
        return self.tasks[tasks[0]].family if tasks else "sts"


def _with_folder(config: Any, folder: str) -> Any:
    """Return a part of a config whose paths start with the folder where they said {data}."""
    if isinstance(config, Mapping):
        return {
            key: f"{folder}{value.removeprefix(DATA)}"
            if key == "path" and isinstance(value, str) and value.startswith(DATA)
            else _with_folder(value, folder)
            for key, value in config.items()
        }
    return [_with_folder(each, folder) for each in config] if isinstance(config, list) else config


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
