"""Attention of chapters 6 and 7."""

import math
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from seq2seq_lib.evaluation.blank_page.entry import Entry, of_class
from seq2seq_lib.models.attention import DotAttention
from seq2seq_lib.models.multi_head import MultiHeadAttention
from seq2seq_lib.seeds import generator

B, T, S, D, H = 2, 3, 4, 8, 2  # all lengths differ, so that no axis passes for another


def masked_weights(scores: Tensor, mask: Tensor, mistake: str) -> Tensor:
    """Attention weights, with a mistake."""
    axis = -2 if mistake == "queries" else -1
    if mistake == "after":
        return scores.softmax(axis) * mask
    if mistake == "no mask":
        return scores.softmax(axis)
    if mistake == "zero":
        return scores.masked_fill(~mask, 0).softmax(axis)
    hidden = mask if mistake == "inverted" else ~mask
    weights = scores.masked_fill(hidden, -torch.inf)
    return weights if mistake == "no softmax" else weights.softmax(axis)


class _Dot(nn.Module):
    """Attention with a learned dot product and a mistake."""

    def __init__(self, width: int, mistake: str) -> None:
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.mistake = mistake

    def forward(
        self, query: Tensor, key: Tensor, value: Tensor, mask: Tensor
    ) -> tuple[Tensor, Tensor]:
        """A wrong context and wrong weights."""
        q, k, mistake = self.query(query), self.key(key), self.mistake
        if mistake == "raw":
            q, k = query, key
        elif mistake == "raw query":
            q = query
        elif mistake == "raw key":
            k = key
        elif mistake == "one layer":
            k = self.query(key)
        root = math.sqrt(q.shape[-1])
        factor = {"scale": 1, "width": 1 / q.shape[-1], "times": root}
        scores = q @ k.mT * factor.get(mistake, 1 / root)
        weights = masked_weights(scores, mask, mistake)
        if mistake == "keys":
            value = key
        elif mistake == "prepared keys":
            value = k
        context = weights @ value
        return (weights, context) if mistake == "exchanged" else (context, weights)


def reshaped(x: Tensor, heads: int) -> Tensor:
    """Heads cut from the memory in order, across positions: B H T K."""
    batch, length, width = x.shape
    return x.reshape(batch, heads, length, width // heads)


class _Heads(nn.Module):
    """Attention with several heads and a mistake."""

    def __init__(self, width: int, heads: int, mistake: str) -> None:
        super().__init__()
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        if mistake != "no output":
            self.output = nn.Linear(width, width)
        self.heads = heads
        self.mistake = mistake

    def forward(self, x: Tensor, source: Tensor, mask: Tensor) -> tuple[Tensor, Tensor]:
        """A wrong output and wrong weights."""
        mistake = self.mistake
        three = self.query(x), self.key(source), self.value(source)
        if mistake in {"split", "split and merge"}:
            query, key, value = (reshaped(one, self.heads) for one in three)
        else:
            query, key, value = (
                one.unflatten(-1, (self.heads, -1)).transpose(1, 2) for one in three
            )  # B H T K
        root = {"width": math.sqrt(x.shape[-1]), "scale": 1}
        scores = query @ key.mT / root.get(mistake, math.sqrt(query.shape[-1]))
        weights = masked_weights(scores, mask[:, None], mistake)
        mixed = weights @ value  # B H T K
        if mistake in {"merge", "split and merge"}:
            merged = mixed.reshape(x.shape)
        elif mistake == "mean":
            merged = mixed.mean(1).repeat(1, 1, self.heads)
        else:
            merged = mixed.transpose(1, 2).flatten(2)
        output = merged if mistake == "no output" else self.output(merged)
        return (weights, output) if mistake == "exchanged" else (output, weights)


class _WithWeights(MultiHeadAttention):
    """The library's, with the weights that a page's always returns."""

    def forward(self, *arguments: Any, **options: Any) -> Any:
        return super().forward(*arguments, **{**options, "weights": True})


def _wrong(kind: Callable[..., nn.Module], mistake: str) -> Callable[..., nn.Module]:
    return lambda *sizes: kind(*sizes, mistake)


_RANDOM = generator(6)
_PADDED = torch.tensor([[[True, True, False, True]], [[True, True, False, False]]])
_NONE = torch.ones(B, 1, S, dtype=torch.bool)
_CAUSAL = torch.ones(B, S, S, dtype=torch.bool).tril()
_QUERY = torch.randn(B, T, D, generator=_RANDOM)
_KEY = torch.randn(B, S, D, generator=_RANDOM)
_VALUE = torch.randn(B, S, D, generator=_RANDOM)

MASKS = {
    "inverted": "the mask is inverted: True means may look, so −∞ belongs where it is "
    "False.",
    "after": "the mask comes after the softmax, so the weights of a row no longer sum "
    "to one. Set hidden scores to −∞ before the softmax.",
    "zero": "hidden scores become 0, which is a score like any other. Set them to −∞.",
    "no mask": "the mask is not used.",
    "no softmax": "there is no softmax: the weights of a row do not sum to one.",
    "queries": "the softmax runs over the queries. Its axis is that of the keys, the "
    "last.",
    "exchanged": "the results are exchanged: first the mixed values, then the weights.",
}

ATTENTION = {
    "DotAttention": Entry(
        right=DotAttention,
        trial=of_class(
            DotAttention,
            (D,),
            {
                "nothing hidden": (_QUERY, _KEY, _VALUE, _NONE),
                "padding hidden": (_QUERY, _KEY, _VALUE, _PADDED),
                "a mask for every query": (_KEY, _KEY, _VALUE, _CAUSAL),
            },
        ),
        mistakes={
            message: _wrong(_Dot, mistake)
            for mistake, message in {
                "scale": "the scale is missing: divide the scores by √D.",
                "width": "the scores are divided by D. Divide them by its root, √D.",
                "times": "the scores are multiplied by √D. Divide them by it.",
                **MASKS,
                "raw": "query and key are compared as they are. Send them through "
                "their layers first.",
                "raw query": "the query does not go through its layer.",
                "raw key": "the key does not go through its layer.",
                "one layer": "query and key go through the same layer. Each has its "
                "own.",
                "keys": "the keys are averaged. The weights belong to the values.",
                "prepared keys": "the prepared keys are averaged. The weights belong "
                "to the values.",
            }.items()
        },
        parts=("context", "weights"),
    ),
    "MultiHeadAttention": Entry(
        right=_WithWeights,
        trial=of_class(
            MultiHeadAttention,
            (D, H),
            {
                "nothing hidden": (_QUERY, _KEY, _NONE),
                "padding hidden": (_QUERY, _KEY, _PADDED),
                "self-attention with a causal mask": (_KEY, _KEY, _CAUSAL),
            },
        ),
        mistakes={
            message: _wrong(_Heads, mistake)
            for mistake, message in {
                "split": "the heads are split by a view as B H T K at once, which "
                "mixes positions. View as B T H K, then transpose(1, 2).",
                "merge": "the heads are merged without transposing back, which mixes "
                "positions. First transpose(1, 2), then reshape to B T D.",
                "split and merge": "the heads are split and merged without a "
                "transpose, which mixes positions. View as B T H K, then "
                "transpose(1, 2), and back.",
                "scale": "the scale is missing: divide the scores by √K, K = D / H.",
                "width": "the scores are divided by √D. Divide them by √K, the root of "
                "the width of one head, K = D / H.",
                **MASKS,
                "no output": "the output layer is missing.",
                "mean": "the heads are averaged. Put them side by side.",
            }.items()
        },
        parts=("output", "weights"),
    ),
}
