"""Chapter 4: what a step of training makes smaller, for any share of a batch."""

import torch
from jaxtyping import Float
from torch import Tensor, nn

from seq2seq_lib.data.batch import Batch
from seq2seq_lib.interface import EncoderDecoder
from seq2seq_lib.training.config import Precision, TrainingConfig
from seq2seq_lib.training.loss import summed_cross_entropy
from seq2seq_lib.training.scheduled_sampling import sampled_forward


class Objective(nn.Module):
    """The loss of a model on some rows, such that the shares of all rows add up.

    It carries its number format with it: a thread does not inherit ``autocast``.

    Args:
        model: any encoder–decoder.
        config: how it is trained.
    """

    def __init__(self, model: EncoderDecoder, config: TrainingConfig) -> None:
        super().__init__()
        self.model = model
        self.config = config

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
        return loss / symbols
