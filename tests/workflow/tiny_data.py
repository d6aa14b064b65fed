"""The data files and models of the tiny study; rows that are hard, blank or leak are in them."""

import csv
import unicodedata

import numpy as np

from ..tiny_models import HARD_TEXTS, WORDS, sentences, write_student, write_teacher

BLANK_QUESTIONS = (3, 50, 91)
"""Numbers of the rows of questions.csv that have no text."""
BLANK_TRAIN_PAIR = 7
"""Number of the row of train.tsv whose second sentence is blank."""
LEAKED = "The  OLD man, never sings!"
"""A training sentence that differs from a test sentence in form alone."""
TESTED = "the old man never sings"

OTHER_HARD_TEXTS = (
    "dog",
    "ᚨᚱᚲ",
    "a small child reads a red book " * 12,
    "😀 🎸",
    "猫在花园里",
    unicodedata.normalize("NFD", "naïve café"),
    "where does [CLS] end and <s> begin </s>",
)
"""Texts as hard as the shared ones, but others: what is tested on is not trained on."""

_LABELS = ("person", "place", "thing")
_BLANKS = ("", "   ", "\u200b")


def write_study(folder):
    """Write data and models below a folder, where the tiny study's config looks for them."""
    write_teacher(folder / "models" / "teacher")
    write_student(folder / "models" / "student", layers=6)
    data = folder / "data"
    (data / "sentences").mkdir(parents=True)
    _write(data / "questions.csv", ("text", "label"), _questions(), ",")
    for split, rows in _pairs().items():
        header = ("sentence1", "sentence2", "score")
        _write(data / "sentences" / f"{split}.tsv", header, rows, "\t")


def _questions():
    openings = ("who", "where", "what")
    texts = [f"{openings[n % 3]} {text}" for n, text in enumerate(sentences(96, seed=1))]
    rows = [[text, _LABELS[n % 3]] for n, text in enumerate([*texts, *OTHER_HARD_TEXTS])]
    for number, blank in zip(BLANK_QUESTIONS, _BLANKS, strict=True):
        rows.insert(number - 1, [blank, "place"])
    return rows


def _pairs():
    generator = np.random.default_rng(2)
    pairs = [_pair(generator, text) for text in sentences(90, seed=3)]
    train, validation, test = pairs[:40], pairs[40:65], pairs[65:]
    train.insert(BLANK_TRAIN_PAIR - 1, ["a dog sleeps", " ", 0.0])
    train += [*_hard_pairs(HARD_TEXTS), [LEAKED, "a man never sings", 4.0]]
    test += [*_hard_pairs(OTHER_HARD_TEXTS), [TESTED, "the old dog never sings", 2.5]]
    return {"train": train, "validation": validation, "test": test}


def _hard_pairs(texts):
    return [[text, texts[n - 1], 1.5 * (n % 3)] for n, text in enumerate(texts)]


def _pair(generator, text):
    """Return a text, a copy with some words changed, and a score by the share that stayed."""
    words = text.split()
    changed = [str(generator.choice(WORDS)) if generator.random() < 0.4 else w for w in words]
    stayed = np.mean([one == other for one, other in zip(words, changed, strict=True)])
    return [text, " ".join(changed), round(5 * float(stayed), 2)]


def _write(path, header, rows, delimiter):
    with path.open("w", encoding="utf-8", newline="") as stream:
        csv.writer(stream, delimiter=delimiter).writerows([header, *rows])
