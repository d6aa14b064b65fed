"""Measure how many texts a second a model embeds on the machine at hand."""

import os
import statistics
import time
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import torch
from sentence_transformers import SentenceTransformer

from emo.embedding import BATCH_SIZE, describe, load_model
from emo.encoder import device_name
from emo.errors import DataError
from emo.outputs import write_json

TEXTS = 512
PASSES = 3
WARM_UP = 64


def measure_speed(model_folder: Path, texts: Sequence[str], out: Path) -> None:
    """Write the texts a second that a model embeds: the median of three passes, tokenizer included.

    The passes embed the same texts, after a warm-up that is not timed. Of longer lists 512 texts
    are taken at even distances. The record names what the figure depends on (device, threads,
    processors) and not the host, which is nobody's business.

    Args:
        model_folder: A SentenceTransformer folder.
        texts: What to embed; the same for every model that is compared.
        out: The JSON file to write.

    Raises:
        ConfigError: The folder is no SentenceTransformer folder.
        DataError: There is no text.
    """
    if not texts:
        raise DataError(f"no texts to measure the speed of {model_folder.as_posix()} with")
    places = np.unique(np.linspace(0, len(texts) - 1, min(TEXTS, len(texts))).astype(int))
    sample = [texts[place] for place in places]
    model = load_model(model_folder)
    _seconds(model, sample[:WARM_UP])
    passes = [_seconds(model, sample) for _ in range(PASSES)]
    record = {
        "texts_per_second": len(sample) / statistics.median(passes),
        "seconds": passes,
        "texts": len(sample),
        "batch_size": BATCH_SIZE,
        "parameters": describe(model, model_folder).parameters,
        "device": device_name(model.device),
        "threads": torch.get_num_threads(),
        "processors": os.cpu_count(),
    }
    write_json(out, record)


def _seconds(model: SentenceTransformer, texts: Sequence[str]) -> float:
    start = time.perf_counter()
    model.encode([*texts], batch_size=BATCH_SIZE, show_progress_bar=False)  # waits for the device
    return time.perf_counter() - start
