"""Everything a training needs, made once by the real stages from tiny models."""

from dataclasses import dataclass
from pathlib import Path

import pytest

from emo.alignment.stage import align_texts
from emo.attention_rows import store_rows
from emo.config import StudentSettings, TeacherSettings
from emo.models import prepare_model
from emo.requests import request_from_name
from emo.teach import teach

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


@dataclass(frozen=True, slots=True)
class Tiny:
    """Files of a tiny teacher, student and text set; both models have a prompt."""

    folder: Path
    texts_read: tuple[str, ...]

    @property
    def teacher(self) -> Path:
        return self.folder / "teacher"

    @property
    def student(self) -> Path:
        return self.folder / "student"

    @property
    def texts(self) -> Path:
        return self.folder / "texts.parquet"

    @property
    def store(self) -> Path:
        return self.folder / "store"

    def alignment(self, method: str) -> Path:
        return self.folder / f"{method}.parquet"

    def rows(self, request: str) -> Path:
        return self.folder / "rows" / request


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
    return Tiny(folder, texts)


@pytest.fixture(scope="session")
def tiny(tiny_models) -> Tiny:
    """The same with the teacher's signals, the maps and the attention rows."""
    files = tiny_models
    teach(files.teacher, files.texts, files.store)
    for method in ("mined", "mined-types", "mined-masses"):
        align_texts(
            files.texts, str(files.teacher), str(files.student), method, files.alignment(method)
        )
    for name in ("emo-k1-m8", "emo-paper-k2"):
        request = request_from_name(name)
        store_rows(
            request,
            teacher=files.teacher,
            student=files.student,
            texts=files.texts,
            store=files.store,
            alignment=files.alignment(request.alignment),
            out=files.rows(name),
        )
    return files
