"""Chapter 9: telling attention at which position a symbol is.

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


class NoPositions(nn.Module):
    """Adds nothing, where positions are not told or attention rotates by them."""

    def forward(
        self, x: Float[Tensor, "B T D"], *, start: int = 0
    ) -> Float[Tensor, "B T D"]:
        """The embeddings."""
        return x


class Sinusoids(nn.Module):
    """Adds sines and cosines of its position to every embedding.

    Args:
        width: D.
        longest: how many positions are kept ready; more are computed when needed.
    """

    table: Tensor

    def __init__(self, width: int, longest: int = 256) -> None:
        super().__init__()
        self.register_buffer("table", sinusoids(longest, width), persistent=False)

    def forward(
        self, x: Float[Tensor, "B T D"], *, start: int = 0
    ) -> Float[Tensor, "B T D"]:
        """Add the positions from ``start`` on."""
        end = start + x.shape[1]
        if end > len(self.table):
            # grown in a search, the table must still serve training
            with torch.inference_mode(mode=False):
                self.table = sinusoids(2 * end, x.shape[2]).to(self.table)
        return x + self.table[start:end]


class LearnedPositions(nn.Module):
    """Adds a learned vector to every embedding, one for each position.

    Args:
        width: D.
        longest: how many positions the table has.
    """

    def __init__(self, width: int, longest: int) -> None:
        super().__init__()
        self.table = nn.Parameter(torch.randn(longest, width) / math.sqrt(width))

    def forward(
        self, x: Float[Tensor, "B T D"], *, start: int = 0
    ) -> Float[Tensor, "B T D"]:
        """Add the positions from ``start`` on.

        Raises:
            ValueError: the table has no such position.
        """
        end = start + x.shape[1]
        if end > len(self.table):
            raise ValueError(
                f"position {end - 1} was never learned: this table has "
                f"{len(self.table)} positions. Build the model with longest={end} "
                "or more, shorten the sequence, or use sinusoidal positions."
            )
        return x + self.table[start:end]


def make_positions(
    kind: PositionKind, width: int, longest: int
) -> NoPositions | Sinusoids | LearnedPositions:
    """What is added to embeddings for positions of this kind.

    Args:
        kind: how a position is told.
        width: D.
        longest: how many positions a table has.
    """
    match kind:
        case PositionKind.NONE | PositionKind.ROTARY:
            return NoPositions()
        case PositionKind.SINUSOIDAL:
            return Sinusoids(width, longest)
        case PositionKind.LEARNED:
            return LearnedPositions(width, longest)


def rotate(x: Float[Tensor, "*B T K"], start: int = 0) -> Float[Tensor, "*B T K"]:
    """Turn every pair of features by an angle that grows with the position.

    The pair (a, b) at position i becomes (a cos iω − b sin iω, a sin iω + b cos iω), so
    that the product of a query at i with a key at j depends on i − j only (Su et al.,
    2021).

    Args:
        x: queries or keys.
        start: the position of the first.

    >>> rotate(torch.tensor([[1.0, 0.0], [1.0, 0.0]]))
    tensor([[1.0000, 0.0000],
            [0.5403, 0.8415]])
    """
    end, width = start + x.shape[-2], x.shape[-1]
    table = sinusoids(end, width)[start:].to(x)
    return _turn(x, table[:, 0::2], table[:, 1::2])


def _turn(
    x: Float[Tensor, "*B T K"],
    sine: Float[Tensor, "T half"],
    cosine: Float[Tensor, "T half"],
) -> Float[Tensor, "*B T K"]:
    first, second = x[..., 0::2], x[..., 1::2]  # *B T K/2
    turned = (first * cosine - second * sine, first * sine + second * cosine)
    return torch.stack(turned, dim=-1).flatten(-2)


class Rotary(nn.Module):
    """The function ``rotate`` with a table of its sines and cosines.

    Args:
        width: K, the width of one head.
        longest: how many positions are kept ready; more are computed when needed.
    """

    sine: Tensor
    cosine: Tensor

    def __init__(self, width: int, longest: int = 256) -> None:
        super().__init__()
        self._keep(sinusoids(longest, width))

    def _keep(self, table: Float[Tensor, "T K"]) -> None:
        for name, part in (("sine", table[:, 0::2]), ("cosine", table[:, 1::2])):
            self.register_buffer(name, part.contiguous(), persistent=False)

    def forward(
        self, x: Float[Tensor, "B H T K"], *, start: int = 0
    ) -> Float[Tensor, "B H T K"]:
        """Rotate the positions from ``start`` on."""
        end = start + x.shape[2]
        if end > len(self.sine):
            # grown in a search, the table must still serve training
            with torch.inference_mode(mode=False):
                self._keep(sinusoids(2 * end, x.shape[3]).to(self.sine))
        return _turn(x, self.sine[start:end], self.cosine[start:end])
