"""Blocks of chapter 10."""

from collections.abc import Callable

import torch
from torch import Tensor, nn

from seq2seq_lib.evaluation.blank_page.entry import Entry, of_class
from seq2seq_lib.models.multi_head import MultiHeadAttention
from seq2seq_lib.models.normalization import LayerNorm
from seq2seq_lib.models.transformer_blocks import (
    DecoderBlock,
    EncoderBlock,
    FeedForward,
)
from seq2seq_lib.seeds import generator

B, T, S, D, H, F = 2, 5, 4, 8, 2, 12


class _Block(nn.Module):
    """A block of either side with a mistake."""

    def __init__(
        self, width: int, heads: int, hidden: int, *, cross: bool, mistake: str
    ) -> None:
        super().__init__()
        self.mistake = mistake
        self.attention = MultiHeadAttention(width, heads)
        if cross:
            self.cross = MultiHeadAttention(width, heads)
        self.feed_forward = FeedForward(width, hidden)
        self.norms = nn.ModuleList(LayerNorm(width) for _ in range(2 + cross))

    def forward(
        self, x: Tensor, source: Tensor, source_mask: Tensor | None = None
    ) -> Tensor:
        """Wrongly computed; of an encoder's block the source is the mask."""
        mistake = self.mistake

        def attend(x: Tensor) -> Tensor:
            hidden = source[:, None]
            if mistake == "no mask":
                hidden = torch.ones_like(hidden)
            elif mistake == "inverted":
                hidden = ~hidden
            mixed: Tensor = self.attention(x, x, hidden)[0]
            return mixed

        def attend_causally(x: Tensor) -> Tensor:
            mixed: Tensor = self.attention(x, x, causal=mistake != "no mask")[0]
            return mixed

        def attend_to_source(x: Tensor) -> Tensor:
            assert source_mask is not None
            hidden = source_mask[:, None]
            if mistake == "no source mask":
                hidden = torch.ones_like(hidden)
            elif mistake == "inverted":
                hidden = ~hidden
            if mistake == "itself":
                mixed: Tensor = self.cross(x, x, None)[0]
            elif mistake == "wrong side":
                mixed = self.cross(source, x, None)[0]
            else:
                mixed = self.cross(x, source, hidden)[0]
            return mixed

        layers: list[Callable[[Tensor], Tensor]] = [attend, self.feed_forward]
        if source_mask is not None:
            layers = [attend_causally, attend_to_source, self.feed_forward]
        if mistake == "feed-forward first":
            layers = [*layers[-1:], *layers[:-1]]
        elif mistake == "cross first":
            layers = [layers[1], layers[0], layers[2]]
        elif mistake == "no relu":
            layers[-1] = lambda x: self.feed_forward.second(self.feed_forward.first(x))
        elif mistake == "no feed-forward":
            layers = layers[:-1]
        for norm, layer in zip(self.norms, layers, strict=False):
            x = self.around(layer, norm, x)
        return x

    def around(
        self, layer: Callable[[Tensor], Tensor], norm: nn.Module, x: Tensor
    ) -> Tensor:
        """A sublayer with residual and normalization."""
        match self.mistake:
            case "no residual":
                output = layer(norm(x))
            case "post":
                output = norm(x + layer(x))
            case "no norm":
                output = x + layer(x)
            case "normed residual":
                normed = norm(x)
                output = normed + layer(normed)
            case "norm of output":
                output = x + norm(layer(x))
            case _:
                output = x + layer(norm(x))
        return output


def _wrong(mistake: str, *, cross: bool) -> Callable[[int, int, int], nn.Module]:
    return lambda *sizes: _Block(*sizes, cross=cross, mistake=mistake)


_RANDOM = generator(10)
_X = torch.randn(B, T, D, generator=_RANDOM)
_LONG = torch.randn(B, T, D, generator=_RANDOM)
_SHORT = torch.randn(B, S, D, generator=_RANDOM)
_REAL = torch.tensor([[True] * 4 + [False], [True, True, False, False, False]])
_ALL = torch.ones(B, T, dtype=torch.bool)
_COMMON = {
    "no residual": "the residual is missing: x + f(norm(x)).",
    "post": "it is post-norm, norm(x + f(x)). Pre-norm is x + f(norm(x)).",
    "no norm": "the normalization is missing: x + f(norm(x)).",
    "normed residual": "the residual adds the normalized x. Add x itself: "
    "x + f(norm(x)).",
    "norm of output": "the sublayer's output is normalized. Normalize its input: "
    "x + f(norm(x)).",
    "feed-forward first": "the feed-forward network comes first. It is the last "
    "sublayer.",
    "no feed-forward": "the feed-forward network is missing.",
    "no relu": "the feed-forward network has no ReLU between its layers.",
    "inverted": "the mask is inverted: True means may look.",
}

BLOCKS = {
    "EncoderBlock": Entry(
        right=EncoderBlock,
        trial=of_class(
            EncoderBlock,
            (D, H, F),
            {"nothing hidden": (_X, _ALL), "padding hidden": (_X, _REAL)},
        ),
        mistakes={
            message: _wrong(mistake, cross=False)
            for mistake, message in {
                **_COMMON,
                "no mask": "the mask is not used: attention reads the padding.",
            }.items()
        },
        parts=("output",),
    ),
    "DecoderBlock": Entry(
        right=DecoderBlock,
        trial=of_class(
            DecoderBlock,
            (D, H, F),
            {
                "source as long as the target": (_X, _LONG, _ALL),
                "padding in the source": (_X, _LONG, _REAL),
                "shorter source": (_X, _SHORT, _REAL[:, :S]),
            },
        ),
        mistakes={
            message: _wrong(mistake, cross=True)
            for mistake, message in {
                **_COMMON,
                "no mask": "the causal mask is missing: position t sees what comes "
                "later.",
                "no source mask": "the source's mask is not used: cross-attention "
                "reads the padding.",
                "itself": "cross-attention attends to the target. Keys and values come "
                "from the source.",
                "wrong side": "cross-attention has its sides exchanged: queries come "
                "from the target, keys and values from the source.",
                "cross first": "cross-attention comes before self-attention. It is the "
                "second sublayer.",
            }.items()
        },
        parts=("output",),
    ),
}
