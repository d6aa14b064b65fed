"""The training loop: transformers' Trainer with loss terms, their norms and sealed checkpoints."""

import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import torch
from torch import Tensor, nn
from transformers import PrinterCallback, Trainer, TrainerCallback, TrainingArguments

from emo.batches import Collator, TrainingTexts
from emo.checkpoints import discard_older, seal
from emo.config import TrainingSettings
from emo.encoder import Encoder
from emo.errors import DataError
from emo.losses import mean_cosine
from emo.methods import Method, Terms
from emo.progress import Progress

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
            callbacks=[_SealCheckpoints(), _ShowProgress(settings.steps)],
        )
        self.remove_callback(PrinterCallback)  # prints dicts between the lines of the log

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """Use AdamW; projections learn at their own rate and are never decayed."""
        if self.optimizer is None:
            settings = self._settings
            matrices: list[nn.Parameter] = []
            vectors: list[nn.Parameter] = []
            student = self._distillation.student
            for parameter in student.transformer.parameters():
                (matrices if parameter.ndim > 1 else vectors).append(parameter)
            known = {id(parameter) for parameter in [*matrices, *vectors]}
            heads = [p for p in self._distillation.parameters() if id(p) not in known]
            rate, head_rate = settings.learning_rate, settings.head_learning_rate
            self.optimizer = torch.optim.AdamW(
                [
                    {"params": matrices, "lr": rate, "weight_decay": settings.weight_decay},
                    {"params": vectors, "lr": rate, "weight_decay": 0.0},
                    {"params": heads, "lr": head_rate, "weight_decay": 0.0},
                ],
                fused=True,
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
        terms: Terms = model(**inputs)
        loss = terms.total()
        step = self.state.global_step + 1
        if not torch.isfinite(loss):
            values = {name: term.item() for name, term in terms.losses.items()}
            raise DataError(
                f"step {step}: the loss is not finite ({values}); lower `training.learning_rate` "
                "or the weight of the term that is not"
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
    arguments = TrainingArguments(
        output_dir=str(folder),
        use_cpu=use_cpu,
        max_steps=settings.steps,
        per_device_train_batch_size=settings.batch_size,
        learning_rate=settings.learning_rate,
        lr_scheduler_type="cosine",
        warmup_steps=int(settings.warmup * settings.steps),
        max_grad_norm=settings.gradient_clip,
        save_strategy="steps",
        save_steps=settings.checkpoint_every,
        logging_strategy="no",
        report_to="none",
        disable_tqdm=True,
        remove_unused_columns=False,
        dataloader_drop_last=True,
        dataloader_pin_memory=False,
        dataloader_num_workers=0,  # the collator may hold a teacher, on a device that cannot fork
        seed=seed,
        data_seed=seed,
    )
    # With several visible GPUs the Trainer would split the batch, and in-batch terms with it.
    arguments._n_gpu = min(arguments.n_gpu, 1)
    return arguments


class _SealCheckpoints(TrainerCallback):
    def on_save(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        checkpoint = Path(args.output_dir) / f"checkpoint-{state.global_step}"
        seal(checkpoint)
        discard_older(checkpoint)


class _ShowProgress(TrainerCallback):
    def __init__(self, steps: int) -> None:
        self._steps = steps
        self._done = 0
        self._progress: Progress | None = None

    def on_train_begin(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        self._done = state.global_step
        self._progress = Progress(self._steps, "distil", unit="steps", start=self._done)
        self._progress.__enter__()

    def on_step_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        assert self._progress is not None
        self._progress.advance(state.global_step - self._done)
        self._done = state.global_step

    def on_train_end(self, args: Any, state: Any, control: Any, **kwargs: Any) -> None:
        assert self._progress is not None
        self._progress.__exit__(None, None, None)
