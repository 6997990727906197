"""Chapter 9: telling attention where a symbol stands.

Axes: B batch, T positions, D width, H heads, K width of one head.
"""

import math
from enum import StrEnum

import torch
from jaxtyping import Float
from torch import Tensor, nn


class PositionKind(StrEnum):
    """How a position is told."""

    NONE = "none"
    SINUSOIDAL = "sinusoidal"
    LEARNED = "learned"
    ROTARY = "rotary"


def frequencies(width: int) -> Float[Tensor, " half"]:
    """The angles per position of the width/2 pairs, from 1 down to about 1/10000."""
    if width % 2:
        raise ValueError(
            f"width={width}: sines and cosines come in pairs; use an even one."
        )
    return 10000.0 ** -(torch.arange(0, width, 2, dtype=torch.double) / width)


def sinusoids(length: int, width: int) -> Float[Tensor, "T D"]:
    """Sines in the even features and cosines in the odd ones.

    PE[i, 2j] = sin(i ω_j) and PE[i, 2j+1] = cos(i ω_j) with ω_j = 10000^(−2j/D), as in
    Vaswani et al. (2017), section 3.5.

    >>> sinusoids(2, 2)
    tensor([[0.0000, 1.0000],
            [0.8415, 0.5403]])
    """
    angles = torch.arange(length, dtype=torch.double)[:, None] * frequencies(width)
    table = torch.stack([angles.sin(), angles.cos()], dim=-1)  # T D/2 2
    return table.flatten(1).to(torch.get_default_dtype())


def shift_matrix(distance: int, width: int) -> Float[Tensor, "D D"]:
    """The rotation that carries the sinusoids of any position i to those of i + δ.

    Each pair (sin, cos) turns by the angle δ ω_j, whatever i is.
    """
    angles = distance * frequencies(width)
    sine, cosine = angles.sin(), angles.cos()
    rotations = torch.stack(
        [torch.stack([cosine, sine], -1), torch.stack([-sine, cosine], -1)], dim=-2
    )
    matrix: Tensor = torch.block_diag(*rotations)  # type: ignore[no-untyped-call]
    return matrix.to(torch.get_default_dtype())


class Positions(nn.Module):
    """Adds to each embedding what tells its position; for rotary positions nothing.

    Args:
        kind: how a position is told.
        width: D.
        longest: how many positions a learned table has.
    """

    table: Tensor

    def __init__(self, kind: PositionKind, width: int, *, longest: int) -> None:
        super().__init__()
        self.kind = kind
        if kind is PositionKind.SINUSOIDAL:
            table = sinusoids(longest, width)
            self.register_buffer("table", table, persistent=False)
        elif kind is PositionKind.LEARNED:
            self.table = nn.Parameter(torch.randn(longest, width) / math.sqrt(width))

    def forward(
        self, x: Float[Tensor, "B T D"], *, start: int = 0
    ) -> Float[Tensor, "B T D"]:
        """Add the positions from ``start`` on.

        Raises:
            ValueError: a learned table has no such position.
        """
        if self.kind in (PositionKind.NONE, PositionKind.ROTARY):
            return x
        end = start + x.shape[1]
        if end > len(self.table):
            if self.kind is PositionKind.LEARNED:
                raise ValueError(
                    f"position {end - 1} was never learned: this table has "
                    f"{len(self.table)} positions. Build the model with longest={end} "
                    "or more, shorten the sequence, or use sinusoidal positions."
                )
            with torch.inference_mode(False):  # a search may need it, training later
                self.table = sinusoids(2 * end, x.shape[2]).to(self.table)
        return x + self.table[start:end]


class Rotary(nn.Module):
    """Turns queries and keys by an angle that grows with their position.

    Each pair of features turns by i ω_j, so that the product of a query at i with a
    key at j depends on i − j only (Su et al., 2021).

    Args:
        width: K, the width of one head.
        longest: how many angles are kept ready; more are computed when needed.
    """

    sine: Tensor
    cosine: Tensor

    def __init__(self, width: int, *, longest: int = 256) -> None:
        super().__init__()
        self._fill(longest, width, None)

    def _fill(self, length: int, width: int, like: Tensor | None) -> None:
        table = sinusoids(length, width).view(length, width // 2, 2)
        table = table if like is None else table.to(like)
        self.register_buffer("sine", table[..., 0].contiguous(), persistent=False)
        self.register_buffer("cosine", table[..., 1].contiguous(), persistent=False)

    def forward(
        self, x: Float[Tensor, "B H T K"], *, start: int = 0
    ) -> Float[Tensor, "B H T K"]:
        """Turn the positions from ``start`` on by their angles."""
        end = start + x.shape[2]
        if end > len(self.sine):
            self._fill(2 * end, x.shape[3], self.sine)
        sine, cosine = self.sine[start:end], self.cosine[start:end]  # T K/2
        first, second = x[..., 0::2], x[..., 1::2]  # B H T K/2
        turned = (first * cosine - second * sine, first * sine + second * cosine)
        return torch.stack(turned, dim=-1).flatten(-2)
