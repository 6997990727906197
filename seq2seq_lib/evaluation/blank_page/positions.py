"""Positions of chapter 9."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from seq2seq_lib.evaluation.blank_page.entry import Entry, of_class, of_function
from seq2seq_lib.models.positional import Sinusoids, rotate
from seq2seq_lib.seeds import generator

B, T, D = 2, 5, 8


def _angles(first: int, length: int, width: int, exponent: str) -> Tensor:
    """The angles of every position and pair, with a mistake in the exponent."""
    pairs = torch.arange(width // 2, dtype=torch.double)
    power = {"half": pairs, "wrong half": pairs / 2}.get(exponent, 2 * pairs) / width
    rates = 10000.0 ** (power if exponent == "growing" else -power)
    positions = torch.arange(first, first + length, dtype=torch.double)
    return positions[:, None] * rates  # T D/2


class _Sinusoids(nn.Module):
    """Sines and cosines with a mistake."""

    def __init__(self, width: int, longest: int, mistake: str) -> None:
        super().__init__()
        self.mistake = mistake
        first = 1 if mistake == "from one" else 0
        angles = _angles(first, longest, width, mistake)
        table = torch.stack([angles.sin(), angles.cos()], dim=-1)
        if mistake == "exchanged":
            table = table.flip(-1)
        elif mistake == "halves":
            table = table.mT
        self.register_buffer("table", table.flatten(1).float())

    def forward(self, x: Tensor) -> Tensor:
        """Wrongly added."""
        table = self.get_buffer("table")
        if self.mistake == "scaled":
            x = x * x.shape[-1] ** 0.5
        return table[: x.shape[1]] + (0 if self.mistake == "alone" else x)


def _rotate(x: Tensor, start: int = 0, *, mistake: str) -> Tensor:
    """Turned, with a mistake."""
    length, width = x.shape[-2:]
    first = {"from one": start + 1, "no start": 0}.get(mistake, start)
    angles = _angles(first, length, width, mistake).float()
    if mistake == "direction":
        angles = -angles
    if mistake == "halves":
        left, right = x.chunk(2, dim=-1)
    else:
        left, right = x[..., 0::2], x[..., 1::2]
    turned = (
        left * angles.cos() - right * angles.sin(),
        left * angles.sin() + right * angles.cos(),
    )
    if mistake == "sign":
        turned = (left * angles.cos() + right * angles.sin(), turned[1])
    if mistake in {"halves", "not interleaved"}:
        return torch.cat(turned, dim=-1)
    return torch.stack(turned, dim=-1).flatten(-2)


def _wrong_sinusoids(mistake: str) -> Callable[..., nn.Module]:
    return lambda width, longest=256: _Sinusoids(width, longest, mistake)


def _wrong_rotation(mistake: str) -> Callable[..., Tensor]:
    return lambda x, start=0: _rotate(x, start, mistake=mistake)


_RANDOM = generator(9)
_X = torch.randn(B, T, D, generator=_RANDOM)
_HEADS = torch.randn(B, 2, T, D, generator=_RANDOM)

POSITIONS = {
    "Sinusoids": Entry(
        right=Sinusoids,
        trial=of_class(Sinusoids, (D, 32), {"forward": (_X,)}, required=1),
        mistakes={
            message: _wrong_sinusoids(mistake)
            for mistake, message in {
                "exchanged": "sine and cosine are exchanged: sines stand in the even "
                "features, cosines in the odd ones.",
                "halves": "all sines stand before all cosines. They alternate: sines "
                "in the even features, cosines in the odd ones.",
                "half": "the exponent is j/D. Pair j has the frequency 10000^(−2j/D).",
                "wrong half": "the exponent is j/(2D). Pair j has the frequency "
                "10000^(−2j/D).",
                "growing": "the frequencies grow. Pair j has 10000^(−2j/D): mind the "
                "minus.",
                "from one": "positions start at 1. The first is 0.",
                "alone": "the embeddings are missing: add the table to x.",
                "scaled": "x is multiplied by √D, which is the embedding's part.",
            }.items()
        },
        parts=("sum",),
    ),
    "rotate": Entry(
        right=rotate,
        trial=of_function(
            rotate, {"from 0 on": (_X,), "of heads": (_HEADS,), "from 3 on": (_X, 3)}
        ),
        mistakes={
            message: _wrong_rotation(mistake)
            for mistake, message in {
                "direction": "it turns in the wrong direction: the pair (a, b) becomes "
                "(a cos − b sin, a sin + b cos).",
                "sign": "a minus is missing: the pair (a, b) becomes "
                "(a cos − b sin, a sin + b cos).",
                "halves": "feature j is paired with feature j + K/2. Neighbours are a "
                "pair: 0 and 1, 2 and 3.",
                "not interleaved": "the pairs are right, but they come back in two "
                "halves. Put a and b next to each other again.",
                "half": "the exponent is j/K. Pair j turns by 10000^(−2j/K) per "
                "position.",
                "growing": "the frequencies grow. Pair j has 10000^(−2j/K): mind the "
                "minus.",
                "from one": "positions start at 1. The first is 0.",
                "no start": "start is not used: it is the position of the first.",
            }.items()
        },
        parts=("result",),
    ),
}
