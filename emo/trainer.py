"""The training loop: transformers' Trainer with loss terms, their norms and sealed checkpoints."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PrinterCallback, Trainer, TrainingArguments

from emo.batches import Collator, TrainingTexts
from emo.config_training import TrainingSettings
from emo.encoder import Encoder
from emo.errors import DataError
from emo.losses import mean_cosine
from emo.methods import Method, Terms
from emo.training_loop import SealCheckpoints, ShowProgress, adamw, loop_arguments

Record = Callable[[Mapping[str, Any]], None]


class Distillation(nn.Module):
    """A student with the method that trains it; checkpoints hold both, projections included."""

    def __init__(self, student: Encoder, method: Method) -> None:
        super().__init__()
        self.student = student
        self.method = method

    def forward(self, **batch: Tensor) -> Terms:
        """Return the weighted terms of a batch."""
        terms: Terms = self.method(self.student, batch)
        return terms


class DistillationTrainer(Trainer):
    """Trainer whose loss is the sum of a method's terms.

    Args:
        model: Student and method.
        settings: Budget and optimiser.
        collator: Makes batches of text numbers.
        texts: Number of texts.
        folder: Where checkpoints go.
        seed: Of the data order and of dropout.
        record: Called with the record of each logged step.
    """

    def __init__(
        self,
        model: Distillation,
        settings: TrainingSettings,
        collator: Collator,
        texts: int,
        folder: Path,
        seed: int,
        record: Record,
    ) -> None:
        self._settings = settings
        self._record = record
        super().__init__(
            model=model,
            args=_arguments(settings, folder, seed, use_cpu=model.student.device.type == "cpu"),
            train_dataset=TrainingTexts(texts),
            data_collator=collator,
            callbacks=[SealCheckpoints(), ShowProgress("distil")],
        )
        self.remove_callback(PrinterCallback)  # prints dicts between the lines of the log

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """Use AdamW; projections learn at their own rate and are never decayed."""
        if self.optimizer is None:
            settings = self._settings
            encoder = list(self._distillation.student.transformer.parameters())
            known = set(map(id, encoder))
            self.optimizer = adamw(
                encoder,
                [p for p in self._distillation.parameters() if id(p) not in known],
                rate=settings.learning_rate,
                head_rate=settings.head_learning_rate,
                weight_decay=settings.weight_decay,
            )
        return self.optimizer

    def compute_loss(
        self,
        model: nn.Module,
        inputs: dict[str, Tensor],
        return_outputs: bool = False,
        num_items_in_batch: Tensor | int | None = None,
    ) -> Tensor:
        """Return the loss of a batch, and record the step when it is due.

        Raises:
            DataError: A term is not finite; the message names step and term.
        """
        self._distillation.method.progress = self.state.global_step / self._settings.steps
        terms: Terms = model(**inputs)
        loss = terms.total()
        step = self.state.global_step + 1
        if not torch.isfinite(loss):
            values = {name: term.item() for name, term in terms.losses.items()}
            raise DataError(
                f"step {step}: the loss is not finite ({values}); lower `training.learning_rate`, "
                "take this rate out of `search.learning_rate`, or lower the weight of the term"
            )
        intervals = self._settings.log_every, self._settings.gradient_norms_every
        if step in (1, self._settings.steps) or any(step % every == 0 for every in intervals):
            self._record(self._describe(step, loss, terms))
        return loss

    @property
    def _distillation(self) -> Distillation:
        model = self.model
        assert isinstance(model, Distillation)
        return model

    def _describe(self, step: int, loss: Tensor, terms: Terms) -> dict[str, Any]:
        record: dict[str, Any] = {
            "step": step,
            "loss": loss.item(),
            "learning_rate": self._get_learning_rate(),
            "student_cosine": mean_cosine(terms.vectors.detach()),
            "terms": {name: term.item() for name, term in terms.losses.items()},
            "counts": {name: float(count) for name, count in terms.counts.items()},
        }
        if step % self._settings.gradient_norms_every == 0 or step == 1:
            record["gradient_norms"] = self._gradient_norms(terms)
        return record

    def _gradient_norms(self, terms: Terms) -> dict[str, float]:
        """Return the norm of each weighted term's gradient on the student's weights alone."""
        parameters = [p for p in self._distillation.student.parameters() if p.requires_grad]
        norms = {}
        for name, term in terms.losses.items():
            gradients = torch.autograd.grad(term, parameters, retain_graph=True, allow_unused=True)
            squares = [g.double().square().sum().item() for g in gradients if g is not None]
            norms[name] = math.sqrt(sum(squares))
        return norms


def _arguments(
    settings: TrainingSettings, folder: Path, seed: int, use_cpu: bool
) -> TrainingArguments:
    return loop_arguments(
        folder,
        seed,
        use_cpu,
        max_steps=settings.steps,
        per_device_train_batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        warmup_steps=int(settings.warmup * settings.steps),
        max_grad_norm=settings.gradient_clip,
        save_strategy="steps",
        save_steps=settings.checkpoint_every,
        dataloader_drop_last=True,
        dataloader_num_workers=0,  # the collator may hold a teacher, on a device that cannot fork
    )
