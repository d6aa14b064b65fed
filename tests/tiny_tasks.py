"""Prepared tasks of each family, small enough to tune a tiny teacher on in a second."""

import numpy as np
import pandas as pd

from emo.config_tasks import TaskSettings
from emo.tasks import prepare_task

from .tiny_models import WORDS, sentences

LABELS = ("person", "place", "thing")
_OPENINGS = ("who", "where", "what")
_FILES = {split: f"{split}.csv" for split in ("train", "validation", "test")}


def write_questions(folder, train=36):
    """A classification task: the first word tells the class. 12 validation and 9 test rows."""
    texts = [f"{_OPENINGS[n % 3]} {text}" for n, text in enumerate(sentences(train + 21, seed=5))]
    rows = pd.DataFrame({"text": texts, "label": [LABELS[n % 3] for n in range(len(texts))]})
    return _prepared(folder, "classification", _cut(rows, train))


def write_similar(folder, family="sts", train=32):
    """Pairs of a sentence and its copy with other words; as pairs, alike where the score is 3."""
    generator = np.random.default_rng(6)
    pairs = [_pair(generator, text) for text in sentences(train + 40, seed=7)]
    rows = pd.DataFrame(pairs, columns=["sentence1", "sentence2", "score"])
    if family == "pairs":
        rows = rows.assign(label=(rows["score"] >= 3).astype(int))
    return _prepared(folder, family, _cut(rows, train))


def _pair(generator, text):
    words = text.split()
    changed = [str(generator.choice(WORDS)) if generator.random() < 0.4 else w for w in words]
    stayed = np.mean([one == other for one, other in zip(words, changed, strict=True)])
    return text, " ".join(changed), round(5 * float(stayed), 2)


def _cut(rows, train):
    validation = (len(rows) - train) * 4 // 7
    return {
        "train": rows[:train],
        "validation": rows[train : train + validation],
        "test": rows[train + validation :],
    }


def _prepared(folder, family, splits):
    source = folder.with_name(f"{folder.name}-source")
    source.mkdir(parents=True)
    for split, rows in splits.items():
        rows.to_csv(source / _FILES[split], index=False)
    settings = TaskSettings(
        family=family, texts="some", source={"path": "unused"}, splits={"files": _FILES}
    )
    prepare_task(folder.name, settings, source, folder)
    return folder
