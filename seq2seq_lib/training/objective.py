"""Chapter 4: what a step of training makes smaller, for any share of a batch.

Axes: B batch, T target, V vocabulary.
"""

from abc import ABC, abstractmethod

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2seq_lib.data.batch import Batch
from seq2seq_lib.interface import EncoderDecoder
from seq2seq_lib.training.config import Precision, TrainingConfig
from seq2seq_lib.training.loss import summed_cross_entropy, summed_distillation
from seq2seq_lib.training.precision import autocast_trouble
from seq2seq_lib.training.scheduled_sampling import sampled_forward


class Teacher(ABC):
    """Whom a model learns from, besides the references."""

    @property
    @abstractmethod
    def sha256(self) -> str:
        """Checksum of all that it believes."""

    @abstractmethod
    def __call__(self, batch: Batch) -> Float[Tensor, "B T V"]:
        """The probabilities of all symbols at every position of the targets.

        Args:
            batch: on the CPU, as it was made.
        """


class Objective(nn.Module):
    """The loss of a model on some rows, such that the shares of all rows add up.

    It carries its number format with it: a thread does not inherit ``autocast``.

    Args:
        model: any encoder–decoder.
        config: how it is trained.
        teacher: whose soft targets count, as far as ``config.distillation`` says.

    Attributes:
        precision: number format of the products: the configured one, or float32.
        trouble: why the configured one is not used; empty if it is.

    Raises:
        ValueError: there is a teacher that does not count, or none that could.
    """

    def __init__(
        self,
        model: EncoderDecoder,
        config: TrainingConfig,
        teacher: Teacher | None = None,
    ) -> None:
        super().__init__()
        if (teacher is not None) != (config.distillation > 0):
            raise ValueError(
                f"distillation={config.distillation} with "
                f"{'a' if teacher else 'no'} teacher: a share above 0 needs one, and a "
                "teacher needs a share."
            )
        self.model = model
        self.config = config
        self.precision, self.trouble = config.precision, ""
        if self.precision is not Precision.FLOAT32:
            dtype = getattr(torch, self.precision.value)
            self.trouble = autocast_trouble(model, model.device, dtype)
            if self.trouble:
                self.precision = Precision.FLOAT32
        # in a tuple, so that nothing of a teacher is trained or moved
        self.teachers = () if teacher is None else (teacher,)

    @property
    def teacher_sha256(self) -> str:
        """Checksum of what the teacher believes; empty without one."""
        return "".join(teacher.sha256 for teacher in self.teachers)

    def forward(
        self, batch: Batch, *, symbols: int, sampling: float = 0.0
    ) -> Float[Tensor, ""]:
        """The summed loss of these rows, divided by ``symbols``.

        Args:
            batch: the rows.
            symbols: how many real target symbols all shares have together.
            sampling: how often the decoder reads its own choice.
        """
        # before the batch is moved
        soft_targets = [teacher(batch) for teacher in self.teachers]
        batch = batch.to(self.model.device)
        precision = self.precision
        with torch.autocast(
            self.model.device.type,
            dtype=getattr(torch, precision.value),
            enabled=precision is not Precision.FLOAT32,
            cache_enabled=self.model.device.type != "cpu",  # threads would share it
        ):
            if sampling:
                outputs = sampled_forward(self.model, batch, sampling)
            else:
                outputs = self.model(batch)
        loss = summed_cross_entropy(
            outputs,
            batch.target,
            batch.target_mask,
            label_smoothing=self.config.label_smoothing,
        )
        for probabilities in soft_targets:
            distance = summed_distillation(
                outputs, probabilities.to(outputs.device), batch.target_mask
            )
            share = self.config.distillation
            loss = (1 - share) * loss + share * distance
        return loss / symbols
