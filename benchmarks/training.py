"""Training steps one at a time: all that happens between two updates of the weights."""

import torch
from torch import Tensor

from emo.assembly import DistilSettings, assemble
from emo.config_methods import MethodSettings
from emo.config_training import TrainingSettings
from emo.distil_inputs import DistilInputs
from emo.trainer import DistillationTrainer

BATCH_SIZE = 16
TRAINING = TrainingSettings(
    steps=100, batch_size=BATCH_SIZE, learning_rate=3e-4, head_learning_rate=1e-3
)


class Training:
    """A student in training on given signals.

    Args:
        method: The method; ``rows`` and ``alignment`` of the inputs are read if it asks for them.
        inputs: What the training reads.
    """

    def __init__(self, method: MethodSettings, inputs: DistilInputs) -> None:
        settings = DistilSettings(method=method, training=TRAINING, family="sts", seed=1)
        made = assemble(settings, inputs, inputs.texts.with_suffix(".tokens"))
        self.model, self._collator = made.model, made.collator
        # Only its optimiser is used: its loop would also record, seal and show progress.
        trainer = DistillationTrainer(
            self.model,
            TRAINING,
            self._collator,
            len(made.tokenized),
            inputs.texts.parent / "trainer",
            seed=1,
            record=lambda entry: None,
        )
        self._optimizer = trainer.create_optimizer()
        self.model.train()

    @property
    def device(self) -> torch.device:
        """Where the student is."""
        return self.model.student.device

    def collate(self, number: int) -> dict[str, Tensor]:
        """Read the batch of that number from the stores and move it to the device."""
        batch = range(number * BATCH_SIZE, (number + 1) * BATCH_SIZE)
        return {name: value.to(self.device) for name, value in self._collator(batch).items()}

    def repeat(self, number: int) -> None:
        """Make a whole step on the batch of that number: collate, go there and back, update."""
        self.model(**self.collate(number)).total().backward()
        torch.nn.utils.clip_grad_norm_(self.model.parameters(), TRAINING.gradient_clip)
        self._optimizer.step()
        self.model.zero_grad()
