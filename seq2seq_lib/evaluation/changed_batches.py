"""Chapter 2: batches with one thing changed, and how far outputs are apart.

Axes: B batch, S source, T target, V vocabulary.
"""

import dataclasses
import math

import torch
from jaxtyping import Float
from torch import Tensor
from torch.nn import functional as F

from seq2seq_lib.data.batch import Batch
from seq2seq_lib.data.examples import Pair
from seq2seq_lib.data.vocabulary import PAD

TOLERANCE = 1e-4


def small_batch() -> Batch:
    """Three words of the symbols 4 to 7, which any vocabulary has."""
    return Batch.from_pairs(
        [Pair([4, 5, 6, 7, 5], [6, 4, 7]), Pair([7, 4], [5, 5, 6, 4]), Pair([5], [7])]
    )


def spread(batch: Batch, most: int) -> list[int]:
    """A few rows, from the shortest to the longest source."""
    lengths = batch.source_mask.sum(dim=1).tolist()
    order = sorted(range(len(batch)), key=lambda row: (lengths[row], row))
    if len(order) > most:
        order = [order[i * (len(order) - 1) // (most - 1)] for i in range(most)]
    return sorted(order)


def keep_rows(batch: Batch, rows: list[int]) -> Batch:
    """Some rows, without the padding that none of them needs."""
    source = int(batch.source_mask[rows].sum(dim=1).max())
    target = int(batch.target_mask[rows].sum(dim=1).max())
    return Batch(
        batch.source[rows, :source],
        batch.source_mask[rows, :source],
        batch.decoder_input[rows, :target],
        batch.target[rows, :target],
        batch.target_mask[rows, :target],
    )


def longer_source(batch: Batch, extra: int) -> Batch:
    """Append padded positions to every source."""
    return dataclasses.replace(
        batch,
        source=_pad(batch.source, extra, PAD),
        source_mask=_pad(batch.source_mask, extra, value=False),
    )


def longer_target(batch: Batch, extra: int) -> Batch:
    """Append padded positions to every target."""
    return dataclasses.replace(
        batch,
        decoder_input=_pad(batch.decoder_input, extra, PAD),
        target=_pad(batch.target, extra, PAD),
        target_mask=_pad(batch.target_mask, extra, value=False),
    )


def _pad(tensor: Tensor, extra: int, value: int) -> Tensor:
    sides = [0, 0] * (tensor.dim() - 2) + [0, extra]  # frames have a third axis
    return F.pad(tensor, sides, value=value)


def distance(
    left: Float[Tensor, "*B V"], right: Float[Tensor, "*B V"]
) -> Float[Tensor, "*B"]:
    """The largest over the last axis; none between equal infinities."""
    apart = torch.where(left == right, 0, (left - right).abs())
    return apart.nan_to_num(nan=math.inf, posinf=math.inf).amax(dim=-1)


def felt(apart: Float[Tensor, "*B"]) -> bool:
    """Whether anything differs, rounding aside."""
    return bool((apart > TOLERANCE).any())
