"""Judge a model on a task: by its frozen embeddings, or by a head of its own."""

import hashlib
import json
import logging
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from sentence_transformers import SentenceTransformer

from emo.config_methods import Family
from emo.embedding import describe, embed, load_model
from emo.encoder import device_name, load_encoder
from emo.errors import DataError
from emo.head_evaluation import head_scores
from emo.metrics import FamilyScores, cosines, score_classification, score_pairs, score_sts
from emo.outputs import atomic_file, write_json
from emo.tasks import SPLITS, TEXT_COLUMNS, Split, load_split

logger = logging.getLogger(__name__)

USED_SPLITS: dict[Family, tuple[Split, ...]] = {
    "classification": ("train", "validation", "test"),
    "pairs": ("validation", "test"),
    "sts": ("validation", "test"),
}
"""Splits whose texts a family needs embedded."""
HEAD_SPLITS: tuple[Split, ...] = ("validation", "test")
"""Splits that a head is asked about."""

Sides = dict[Split, list[NDArray[np.float32]]]
"""By split: the vectors of each text column, ``(N, D)``."""
Tables = dict[Split, pd.DataFrame]


def evaluate(
    model_folder: Path,
    task_folder: Path,
    task: str,
    family: Family,
    out: Path,
    head: Path | None = None,
) -> None:
    """Score a model on a task; write ``scores.json`` and ``predictions.parquet`` into ``out``.

    Args:
        model_folder: A SentenceTransformer folder.
        task_folder: A prepared task.
        task: Its name.
        family: Its family.
        out: Folder of the results; what else it holds stays.
        head: The record of the model's own head, which answers then instead of its frozen
            embeddings; see :class:`emo.head_evaluation.JudgedHead`.

    Raises:
        ConfigError: ``model_folder`` is no SentenceTransformer folder.
        DataError: A split is empty or damaged, the head is of another task, or a score is
            undefined.
    """
    splits = {split: load_split(task_folder, split) for split in SPLITS}
    for split in USED_SPLITS[family] if head is None else HEAD_SPLITS:
        if splits[split].empty:
            raise DataError(f"{task_folder}: the {split} split of {task} is empty")
    name = f"{model_folder.as_posix()} on {task}"
    if head is None:
        model = load_model(model_folder)
        scores, texts, seconds = _by_embeddings(model, splits, family, name)
    else:
        encoder = load_encoder(model_folder)
        model = encoder.model
        texts = sum(len(splits[split]) for split in HEAD_SPLITS)
        start = time.perf_counter()
        scores = head_scores(head, encoder, splits, family, name)
        seconds = time.perf_counter() - start
    logger.info("%s: %s %.4f", name, scores.main, scores.metrics[scores.main])
    test = splits["test"]
    scores.predictions.insert(0, "row", test["row"].to_numpy())
    with atomic_file(out / "predictions.parquet") as temporary:
        scores.predictions.to_parquet(temporary, index=False)
    record = {
        "task": task,
        "family": family,
        "judged_by": "embeddings" if head is None else "head",
        "metrics": scores.metrics,
        "main": scores.main,
        "validation": scores.validation,
        "choices": scores.choices,
        "model": describe(model, model_folder).as_dict(),
        "splits": {split: len(table) for split, table in splits.items()},
        "test_sha256": items_digest(test, TEXT_COLUMNS[family]),
        "seconds": round(seconds, 3),
        "texts": texts,
        "device": device_name(model.device),
    }
    write_json(out / "scores.json", record)


def _by_embeddings(
    model: SentenceTransformer, splits: Tables, family: Family, name: str
) -> tuple[FamilyScores, int, float]:
    """Return the scores, and how many texts were embedded in how many seconds.

    Each text is embedded once, however often it occurs in the splits.
    """
    columns = TEXT_COLUMNS[family]
    used = pd.concat([splits[split][[*columns]] for split in USED_SPLITS[family]])
    texts = list(dict.fromkeys(text for row in used.itertuples(index=False) for text in row))
    start = time.perf_counter()
    vectors = embed(model, texts)
    seconds = time.perf_counter() - start
    place = {text: row for row, text in enumerate(texts)}
    sides = {
        split: [vectors[[place[text] for text in splits[split][column]]] for column in columns]
        for split in USED_SPLITS[family]
    }
    return SCORERS[family](sides, splits, name), len(texts), seconds


def items_digest(test: pd.DataFrame, columns: Sequence[str]) -> str:
    """Return the digest of the test texts in order.

    Tasks with the same digest are judged on the same items, whatever their labels.
    """
    rows = test[[*columns]].to_numpy().tolist()
    return hashlib.sha256(json.dumps(rows).encode()).hexdigest()


def _classification(sides: Sides, splits: Tables, name: str) -> FamilyScores:
    labels = {split: splits[split]["label"].to_numpy(dtype=str) for split in sides}
    return score_classification(
        sides["train"][0],
        labels["train"],
        sides["validation"][0],
        labels["validation"],
        sides["test"][0],
        labels["test"],
        model=name,
    )


def _pairs(sides: Sides, splits: Tables, name: str) -> FamilyScores:
    cosine = {split: cosines(*pair, model=name) for split, pair in sides.items()}
    labels = {split: splits[split]["label"].to_numpy() for split in sides}
    return score_pairs(
        cosine["validation"], labels["validation"], cosine["test"], labels["test"], model=name
    )


def _sts(sides: Sides, splits: Tables, name: str) -> FamilyScores:
    cosine = {split: cosines(*pair, model=name) for split, pair in sides.items()}
    gold = {split: splits[split]["score"].to_numpy(dtype=np.float64) for split in sides}
    return score_sts(
        cosine["validation"], gold["validation"], cosine["test"], gold["test"], model=name
    )


Scorer = Callable[[Sides, Tables, str], FamilyScores]
SCORERS: dict[Family, Scorer] = {
    "classification": _classification,
    "pairs": _pairs,
    "sts": _sts,
}
