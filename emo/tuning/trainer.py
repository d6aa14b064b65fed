"""The tuning loop: transformers' Trainer, validated each epoch, its best pass kept."""

import functools
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import torch
from safetensors.torch import load_file
from torch import Tensor, nn
from transformers import PrinterCallback, Trainer

from emo.config_methods import Family
from emo.config_tuning import FullTuning, LoraTuning
from emo.encoder import Encoder
from emo.errors import CheckError, DataError
from emo.training_loop import SealCheckpoints, ShowProgress, adamw, loop_arguments
from emo.tuning.examples import Examples, collate
from emo.tuning.objective import Objective
from emo.weighted_metrics import main_metric

HEAD_LEARNING_RATE = 1e-3
"""Of the head: it starts anew, as the projections of a distillation do at this rate."""
WEIGHT_DECAY = 0.01
GRADIENT_CLIP = 1.0
LOG_EVERY = 10
"""Steps between logged losses."""
_VALIDATED_TOGETHER = 32

Record = Callable[[Mapping[str, Any]], None]


class Tuning(nn.Module):
    """A teacher with its objective; its state is what is trained of the two.

    A checkpoint of adapters needs the frozen weights as little as the result does.
    """

    def __init__(self, encoder: Encoder, objective: Objective) -> None:
        super().__init__()
        self.encoder = encoder
        self.objective = objective

    def forward(self, input_ids: Tensor, mask: Tensor, targets: Tensor) -> Tensor:
        """Return the loss of a batch."""
        loss: Tensor = self.objective(self.encoder(input_ids, mask).vectors, targets)
        return loss

    @torch.inference_mode()
    def predict(self, batch: Mapping[str, Tensor]) -> Tensor:
        """Return what the validation score reads, ``(B,)``."""
        device = self.encoder.device
        encoding = self.encoder(batch["input_ids"].to(device), batch["mask"].to(device))
        return self.objective.predict(encoding.vectors)

    def trained(self) -> dict[str, nn.Parameter]:
        """Return the weights that are trained, by name."""
        return {name: weight for name, weight in self.named_parameters() if weight.requires_grad}

    def state_dict(self, *args: Any, **kwargs: Any) -> dict[str, Any]:  # type: ignore[override]
        """Return the trained weights alone."""
        return {name: weight.detach() for name, weight in self.trained().items()}

    def load_state_dict(self, state_dict: Mapping[str, Any], *args: Any, **kwargs: Any) -> Any:
        """Load trained weights.

        Raises:
            DataError: They are not those of this tuning.
        """
        if state_dict.keys() != self.trained().keys():
            raise DataError("the checkpoint is of another tuning; remove it and run again")
        unexpected = super().load_state_dict(state_dict, strict=False).unexpected_keys
        return nn.modules.module._IncompatibleKeys([], unexpected)


class TuningTrainer(Trainer):
    """Trainer that validates by a family's main metric.

    Args:
        model: Teacher and objective.
        settings: Budget and optimiser.
        family: Family of the task.
        train: Rows to train on.
        validation: Rows to choose the best epoch by.
        folder: Where checkpoints go.
        record: Called with the record of each logged step and each validation.
    """

    def __init__(
        self,
        model: Tuning,
        settings: LoraTuning | FullTuning,
        family: Family,
        train: Examples,
        validation: Examples,
        folder: Path,
        record: Record,
    ) -> None:
        self._settings = settings
        self._family = family
        self._validation = validation
        self._collate = functools.partial(collate, pad_id=model.encoder.pad_id)
        self._record = record
        steps = settings.epochs * -(-len(train) // settings.batch_size)
        super().__init__(
            model=model,
            args=loop_arguments(
                folder,
                settings.seed,
                use_cpu=model.encoder.device.type == "cpu",
                num_train_epochs=settings.epochs,
                per_device_train_batch_size=settings.batch_size,
                learning_rate=settings.learning_rate,
                warmup_steps=int(settings.warmup * steps),
                max_grad_norm=GRADIENT_CLIP,
                eval_strategy="epoch",
                save_strategy="epoch",
                load_best_model_at_end=True,
                metric_for_best_model="score",
                greater_is_better=True,
            ),
            train_dataset=train,
            eval_dataset=validation,
            data_collator=self._collate,
            callbacks=[SealCheckpoints(), ShowProgress("tune")],
        )
        self.remove_callback(PrinterCallback)  # prints dicts between the lines of the log

    def create_optimizer(self, model: nn.Module | None = None) -> torch.optim.Optimizer:
        """Use AdamW; the head learns at its own rate and is never decayed."""
        if self.optimizer is None:
            heads = dict(self.tuning.objective.named_parameters(prefix="objective"))
            trained = self.tuning.trained()
            self.optimizer = adamw(
                [weight for name, weight in trained.items() if name not in heads],
                heads.values(),
                rate=self._settings.learning_rate,
                head_rate=HEAD_LEARNING_RATE,
                weight_decay=WEIGHT_DECAY,
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
            DataError: The loss is not finite.
        """
        loss: Tensor = model(**inputs)
        step = self.state.global_step + 1
        if not torch.isfinite(loss):
            raise DataError(f"step {step}: the loss is {loss.item()}; lower `tuning.learning_rate`")
        if step % LOG_EVERY == 0 or step == 1:
            rate = self._get_learning_rate()
            self._record({"step": step, "loss": loss.item(), "learning_rate": rate})
        return loss

    def evaluate(self, *args: Any, **kwargs: Any) -> dict[str, float]:
        """Score the validation rows after an epoch; the Trainer keeps the best."""
        score = self.score()
        epoch = round(self.state.epoch or 0)
        self._record({"step": self.state.global_step, "epoch": epoch, "validation": score})
        metrics = {"eval_score": score}
        self.control = self.callback_handler.on_evaluate(
            self.args, self.state, self.control, metrics
        )
        return metrics

    def score(self) -> float:
        """Return the main metric of the validation rows.

        Raises:
            CheckError: It is undefined, since all texts have become one to the teacher.
        """
        model, rows, size = self.tuning, self._validation, _VALIDATED_TOGETHER
        training = model.training
        model.eval()
        order = rows.by_length()
        predicted = [
            model.predict(self._collate([rows[n] for n in order[start : start + size]]))
            for start in range(0, len(order), size)
        ]
        model.train(training)
        gold = np.array([rows[index].target for index in order])
        score = main_metric(self._family, gold, torch.cat(predicted).cpu().numpy())
        if not np.isfinite(score):
            raise CheckError(
                "the validation score is undefined: the teacher has the same embedding for all "
                "texts; lower `tuning.learning_rate`"
            )
        return score

    def load(self, checkpoint: Path) -> None:
        """Take the weights of a checkpoint."""
        self.tuning.load_state_dict(load_file(checkpoint / "model.safetensors"))

    @property
    def tuning(self) -> Tuning:
        """Teacher and objective."""
        model = self.model
        assert isinstance(model, Tuning)
        return model
