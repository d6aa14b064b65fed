"""Models, texts and signals of the benchmarks, made by the real stages in a temporary folder.

Everything is made when it is first asked for. The teacher and the default student are the prepared
ones of the study. The other students have random weights: what a step costs depends on shapes, not
on weights, but for the solver of the transport term, which stops once it has converged.
"""

import shutil
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from transformers import AutoTokenizer, BertConfig, BertModel

from emo.alignment.stage import align_texts
from emo.attention_rows import store_rows
from emo.config_methods import EmoSettings
from emo.config_models import StudentSettings, TeacherSettings
from emo.distil_inputs import DistilInputs
from emo.models import prepare_model
from emo.outputs import read_json, write_json
from emo.requests import RowRequest, signal_request
from emo.store import STORE_FILE, gather
from emo.teach import teach
from emo.texts import Text, TextSet, joined, load_texts, save_texts, text_key
from emo.tokens import TextTokenizer

SHAPES = {"bert-base": (12, 768, 12), "minilm6": (6, 384, 12)}
"""Layers, width and heads of the students with random weights."""

STUDY_STUDENT = "minilm-l3"
"""The default student of the study; any other name is one of `SHAPES`."""

_MOST_POSITIONS = 512

WHOLE = "1-of-1"
"""Name of a shard that holds a whole text set."""

METHOD = EmoSettings(form="emo")
"""The default EMO; both of its token terms are served by one map."""


@dataclass(frozen=True, slots=True)
class Material:
    """What the benchmarks read.

    Attributes:
        teacher: The prepared teacher of the study.
        student: The prepared student of the study.
        sentences: A text set of real sentences.
        folder: Where everything else is made.
        texts: Texts of each length.
        longest: Tokens that a student may read; texts are made as short as they have to be.
    """

    teacher: Path
    student: Path
    sentences: Path
    folder: Path
    texts: int
    longest: int = 256

    def inputs(self, student: str, length: int) -> DistilInputs:
        """What a training with the default EMO reads."""
        return DistilInputs(
            student=self.student_model(student),
            texts=self.long_texts(length),
            store=self.store(length),
            alignment=self.alignment(length),
            rows=self.rows(student, length),
        )

    def teacher_model(self, length: int) -> Path:
        """The teacher, reading so many tokens beside its prompt."""
        out = self.folder / f"teacher-{length}"
        if not out.exists():
            how = _reading(self.teacher)
            tokenizer = AutoTokenizer.from_pretrained(self.teacher)
            prompt = len(tokenizer(how["prompt"].rstrip())["input_ids"])
            prompt -= len(tokenizer("")["input_ids"])
            source = _unlimited(self.teacher, out)
            prepare_model(TeacherSettings(**how, max_length=length + prompt), source, out)
        return out

    def student_model(self, name: str) -> Path:
        """A student by name, with the tokenizer of the study's student."""
        out = self.folder / f"student-{name}"
        if not out.exists():
            source = _unlimited(self.student, out)
            if name in SHAPES:
                _write_random_bert(*SHAPES[name], source)
            how = _reading(self.student)
            prepare_model(StudentSettings(**how, max_length=self.longest), source, out)
        return out

    def long_texts(self, length: int) -> Path:
        """Texts of which a student reads exactly so many tokens."""
        out = self.folder / f"texts-{length}.parquet"
        if not out.exists():
            prompt = _reading(self.student)["prompt"]
            tokenizer = TextTokenizer(AutoTokenizer.from_pretrained(self.student), prompt, length)
            sentences = [joined(text) for text in load_texts(self.sentences).texts]
            texts = texts_of_length(sentences, tokenizer, self.texts)
            save_texts(TextSet(list[Text](texts), list(map(text_key, texts))), out)
        return out

    def store(self, length: int) -> Path:
        """The teacher's signals, in one shard."""
        folder = self.folder / f"store-{length}"
        if not folder.exists():
            teach(self.teacher_model(length), self.long_texts(length), folder / WHOLE)
            gather([folder / WHOLE], folder / STORE_FILE)
        return folder / STORE_FILE

    def alignment(self, length: int) -> Path:
        """The map of the transport term, which serves the attention term, too."""
        out = self.folder / f"alignment-{length}.parquet"
        if not out.exists():
            models = str(self.teacher_model(length)), str(self.student_model(STUDY_STUDENT))
            align_texts(self.long_texts(length), *models, METHOD.mass_map, out)
        return out

    def rows(self, student: str, length: int) -> Path:
        """The attention rows for a student, in one shard."""
        folder = self.folder / f"rows-{student}-{length}"
        if not folder.exists():
            store_rows(
                row_request(),
                teacher=self.teacher_model(length),
                student=self.student_model(student),
                texts=self.long_texts(length),
                store=self.store(length),
                alignment=self.alignment(length),
                out=folder / WHOLE,
            )
            gather([folder / WHOLE], folder / STORE_FILE)
        return folder / STORE_FILE


def texts_of_length(sentences: list[str], tokenizer: TextTokenizer, count: int) -> list[str]:
    """Join sentences, each used once, to texts that fill the tokenizer's maximum length exactly.

    Raises:
        ValueError: There are too few sentences.
    """
    texts: list[str] = []
    joined = ""
    for sentence in sentences:
        joined = f"{joined} {sentence}".lstrip()
        tokens = tokenizer([joined])[0]
        if len(tokens.input_ids) < tokenizer.max_length:
            continue
        cut = joined[: max(end for _, end in tokens.spans)]
        joined = ""
        if len(tokenizer([cut])[0].input_ids) == tokenizer.max_length:
            texts.append(cut)
        if len(texts) == count:
            return texts
    raise ValueError(
        f"{len(sentences)} sentences make {len(texts)} texts of {tokenizer.max_length} tokens, "
        f"{count} are needed"
    )


def row_request() -> RowRequest:
    """The attention rows that the default EMO asks for."""
    request = signal_request(METHOD, "sts").rows
    assert request is not None
    return request


def _reading(prepared: Path) -> dict[str, Any]:
    """How texts are put to a prepared model; the source is there for the schema only."""
    settings = read_json(prepared / "model.json")["settings"]
    chosen = {key: settings[key] for key in ("prompt", "pooling")}
    return chosen | {"source": {"path": str(prepared)}}


def _unlimited(prepared: Path, out: Path) -> Path:
    """Copy a prepared model into a source that may be prepared for longer texts, too."""
    source = out.with_name(f"{out.name}-source")
    shutil.copytree(prepared, source)
    config = source / "tokenizer_config.json"
    write_json(config, read_json(config) | {"model_max_length": _MOST_POSITIONS})
    return source


def _write_random_bert(layers: int, width: int, heads: int, folder: Path) -> None:
    config = BertConfig(
        vocab_size=len(AutoTokenizer.from_pretrained(folder)),
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        intermediate_size=4 * width,
        max_position_embeddings=_MOST_POSITIONS,
    )
    shutil.rmtree(folder / "1_Pooling")  # says the width of the model that was copied
    BertModel(config, add_pooling_layer=False).save_pretrained(folder)
