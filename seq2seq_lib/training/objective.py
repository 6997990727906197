"""Chapter 4: what a step of training makes smaller, for any share of a batch."""

from collections.abc import Callable

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2seq_lib.data.batch import Batch
from seq2seq_lib.interface import EncoderDecoder
from seq2seq_lib.training.config import Precision, TrainingConfig
from seq2seq_lib.training.loss import summed_cross_entropy, summed_distillation
from seq2seq_lib.training.scheduled_sampling import sampled_forward

Teacher = Callable[[Batch], Tensor]
"""Gives the probabilities of all symbols, B T V, at every position of a target."""


class Objective(nn.Module):
    """The loss of a model on some rows, such that the shares of all rows add up.

    It carries its number format with it: a thread does not inherit ``autocast``.

    Args:
        model: any encoder–decoder.
        config: how it is trained.
        teacher: whose beliefs count, as far as ``config.distillation`` says.

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
        self.teacher = teacher

    def forward(
        self, batch: Batch, *, symbols: int, sampling: float = 0.0
    ) -> Float[Tensor, ""]:
        """The summed loss of these rows, divided by ``symbols``.

        Args:
            batch: the rows.
            symbols: how many real target symbols all shares have together.
            sampling: how often the decoder reads its own choice.
        """
        batch = batch.to(self.model.device)
        precision = self.config.precision
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
        if self.teacher is not None:
            distance = summed_distillation(
                outputs, self.teacher(batch), batch.target_mask
            )
            loss = loss.lerp(distance, self.config.distillation)
        return loss / symbols
