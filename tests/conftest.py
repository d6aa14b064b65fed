"""Everything a training needs, made once by the real stages from tiny models."""

import signal
from dataclasses import dataclass
from pathlib import Path

import pytest

from emo.alignment.stage import align_texts
from emo.config_models import StudentSettings, TeacherSettings
from emo.models import prepare_model
from emo.requests import AlignmentRequest, RowRequest
from emo.texts import Text

from .stores import make_rows, make_store
from .tiny_models import (
    HARD_TEXTS,
    STUDENT_LENGTH,
    STUDENT_PROMPT,
    TEACHER_LENGTH,
    TEACHER_PROMPT,
    sentences,
    write_student,
    write_teacher,
    write_texts,
)


@pytest.fixture(scope="session", autouse=True)
def interruptible():
    """A shell starts what runs in the background deaf to Ctrl-C, which tests send."""
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
        signal.signal(signal.SIGINT, signal.default_int_handler)


@dataclass(frozen=True, slots=True)
class Tiny:
    """Files of a tiny teacher, student and text set; both models have a prompt."""

    models: Path
    folder: Path
    texts_read: tuple[Text, ...]

    @property
    def teacher(self) -> Path:
        return self.models / "teacher"

    @property
    def student(self) -> Path:
        return self.models / "student"

    @property
    def texts(self) -> Path:
        return self.folder / "texts.parquet"

    @property
    def store(self) -> Path:
        return self.folder / "store" / "store.json"

    def alignment(self, name: str) -> Path:
        """A map by its request's name, made when it is first asked for."""
        path = self.folder / f"{name}.parquet"
        if not path.exists():
            request = AlignmentRequest.from_name(name)
            align_texts(
                self.texts,
                str(self.teacher),
                str(self.student),
                request.method,
                path,
                request.text,
            )
        return path

    def rows(self, name: str) -> Path:
        """Attention rows by their request's name, made when they are first asked for."""
        folder = self.folder / "rows" / name
        if not folder.exists():
            request = RowRequest.from_name(name)
            make_rows(
                request,
                folder,
                teacher=self.teacher,
                student=self.student,
                texts=self.texts,
                store=self.store,
                alignment=self.alignment(request.map.name),
            )
        return folder / "store.json"


@pytest.fixture(scope="session")
def tiny_models(tmp_path_factory) -> Tiny:
    """The prepared models and the text set."""
    folder = tmp_path_factory.mktemp("tiny")
    source = {"path": "unused"}
    prepare_model(
        TeacherSettings(source=source, prompt=TEACHER_PROMPT, max_length=TEACHER_LENGTH),
        write_teacher(folder / "teacher-source"),
        folder / "teacher",
    )
    prepare_model(
        StudentSettings(source=source, prompt=STUDENT_PROMPT, max_length=STUDENT_LENGTH),
        write_student(folder / "student-source"),
        folder / "student",
    )
    texts = (*sentences(17), *HARD_TEXTS)
    write_texts(texts, folder / "texts.parquet")
    return Tiny(folder, folder, texts)


@pytest.fixture(scope="session")
def tiny(tiny_models) -> Tiny:
    """The same with the teacher's signals; maps and attention rows are made on demand."""
    files = tiny_models
    make_store(files.teacher, files.texts, files.folder / "store")
    return files


@pytest.fixture(scope="session")
def tiny_pairs(tiny_models, tmp_path_factory) -> Tiny:
    """The same models with a set of sentence pairs."""
    folder = tmp_path_factory.mktemp("pairs")
    first = (*sentences(8, seed=3), "cat", "中文的猫在花园里唱歌", "what is [SEP] here")
    second = (*sentences(10, seed=4), "cat")
    files = Tiny(tiny_models.models, folder, tuple(zip(first, second, strict=True)))
    write_texts(files.texts_read, files.texts)
    make_store(files.teacher, files.texts, files.folder / "store")
    return files
