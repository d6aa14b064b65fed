"""What trainings by transformers' Trainer share: arguments, optimiser, checkpoints, progress."""

from collections.abc import Iterable
from pathlib import Path
from typing import Any

import torch
from torch import nn
from transformers import TrainerCallback, TrainingArguments

from emo.checkpoints import discard_older, seal
from emo.progress import Progress


def loop_arguments(folder: Path, seed: int, use_cpu: bool, **chosen: Any) -> TrainingArguments:
    """Return the Trainer's arguments: cosine decay, nothing reported, dropped or moved by itself.

    Args:
        folder: Where checkpoints go.
        seed: Of the data order and of dropout.
        use_cpu: Whether to leave an accelerator alone.
        chosen: What one training differs in from others.
    """
    arguments = TrainingArguments(
        output_dir=str(folder),
        use_cpu=use_cpu,
        lr_scheduler_type="cosine",
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_pin_memory=False,
        seed=seed,
        data_seed=seed,
        **chosen,
    )
    # With several visible GPUs the Trainer would split the batch, and in-batch terms with it.
    arguments._n_gpu = min(arguments.n_gpu, 1)
    return arguments


def adamw(
    encoder: Iterable[nn.Parameter],
    heads: Iterable[nn.Parameter],
    *,
    rate: float,
    head_rate: float,
    weight_decay: float,
) -> torch.optim.Optimizer:
    """Return AdamW; heads learn at their own rate, and only an encoder's matrices are decayed."""
    matrices: list[nn.Parameter] = []
    vectors: list[nn.Parameter] = []
    for parameter in encoder:
        (matrices if parameter.ndim > 1 else vectors).append(parameter)
    return torch.optim.AdamW(
        [
            {"params": matrices, "lr": rate, "weight_decay": weight_decay},
            {"params": vectors, "lr": rate, "weight_decay": 0.0},
            {"params": list(heads), "lr": head_rate, "weight_decay": 0.0},
        ],
        fused=True,
    )


class SealCheckpoints(TrainerCallback):
    """Seals each checkpoint once it is whole; of older ones the one before and the best stay."""

    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Seal, then make room."""
        checkpoint = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        seal(checkpoint)
        discard_older(checkpoint, best=state.best_global_step)


class ShowProgress(TrainerCallback):
    """Counts the steps of a training.

    Args:
        what: Name of the stage.
    """

    def __init__(self, what: str) -> None:
        self._what = what
        self._done = 0
        self._progress: Progress | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Start where an interrupted training stopped."""
        self._done = state.global_step
        self._progress = Progress(state.max_steps, self._what, unit="steps", start=self._done)
        self._progress.__enter__()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Count a step."""
        assert self._progress is not None
        self._progress.advance(state.global_step - self._done)
        self._done = state.global_step

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        """Log the last line."""
        assert self._progress is not None
        self._progress.__exit__(None, None, None)
