"""Chapter 6: attention, and the ways to score a key.

Masks are boolean, ``True`` = may look, as in PyTorch's scaled_dot_product_attention.

Axes: B batch, T queries, S keys, Q width of queries, D width of keys, K width of both,
V width of values, A width of prepared keys. A leading ``*B`` stands for any batch axes.
"""

import math
from abc import ABC, abstractmethod
from enum import StrEnum

import torch
from jaxtyping import Bool, Float
from torch import Tensor, nn

from seq2seq_lib.interface import check_mask


def masked_softmax(
    scores: Float[Tensor, "*B T S"], mask: Bool[Tensor, "*#B #T S"]
) -> Float[Tensor, "*B T S"]:
    """Softmax over the keys that may be looked at; the others get weight 0.

    Raises:
        ValueError: the mask does not fit, or hides every key from some query, so that
            there is nothing to share the weight among.

    >>> masked_softmax(torch.zeros(1, 3), torch.tensor([[True, True, False]]))
    tensor([[0.5000, 0.5000, 0.0000]])
    """
    check_mask(mask, queries=scores.shape[-2], keys=scores.shape[-1])
    if not mask.any(dim=-1).all():
        raise ValueError("mask hides every key from some query; softmax needs one.")
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)


def dot_product_attention(
    query: Float[Tensor, "*B T K"],
    key: Float[Tensor, "*B S K"],
    value: Float[Tensor, "*B S V"],
    mask: Bool[Tensor, "*#B #T S"],
) -> tuple[Float[Tensor, "*B T V"], Float[Tensor, "*B T S"]]:
    """Average the values, weighted by how well each key answers the query.

    weights = softmax(Q Kᵀ / √K) and output = weights V, as in Vaswani et al. (2017),
    equation 1.

    Args:
        query: what each output position looks for.
        key: what each source position offers.
        value: what is taken from it.
        mask: ``True`` where a query may look.

    Returns:
        the averages and the weights.
    """
    scores = query @ key.mT / math.sqrt(query.shape[-1])  # *B T S
    weights = masked_softmax(scores, mask)
    return weights @ value, weights


class ScoreKind(StrEnum):
    """How a query is compared with a key."""

    ADDITIVE = "additive"
    DOT = "dot"
    SCALED_DOT = "scaled dot"
    LEARNED_DOT = "learned dot"
    BILINEAR = "bilinear"


class Scores(nn.Module, ABC):
    """Compares queries with keys; what depends on the keys alone is computed once."""

    @abstractmethod
    def prepare(self, key: Float[Tensor, "B S D"]) -> Float[Tensor, "B S A"]:
        """The part that every query shares."""

    @abstractmethod
    def compare(
        self, query: Float[Tensor, "B T Q"], prepared: Float[Tensor, "B S A"]
    ) -> Float[Tensor, "B T S"]:
        """Score every key for every query."""

    def forward(
        self, query: Float[Tensor, "B T Q"], key: Float[Tensor, "B S D"]
    ) -> Float[Tensor, "B T S"]:
        """Score every key for every query."""
        return self.compare(query, self.prepare(key))


class AdditiveScores(Scores):
    """Score = v · tanh(W q + U k + b), a small network (Bahdanau et al., 2015).

    Args:
        query_width: of the queries.
        key_width: of the keys.
        hidden: A, the width of the network's hidden layer.
    """

    def __init__(self, query_width: int, key_width: int, hidden: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_width, hidden, bias=False)
        self.key = nn.Linear(key_width, hidden)
        self.output = nn.Linear(hidden, 1, bias=False)

    def prepare(self, key: Float[Tensor, "B S D"]) -> Float[Tensor, "B S A"]:
        """U k + b."""
        prepared: Tensor = self.key(key)
        return prepared

    def compare(
        self, query: Float[Tensor, "B T Q"], prepared: Float[Tensor, "B S A"]
    ) -> Float[Tensor, "B T S"]:
        """Score every key for every query."""
        mixed = self.query(query)[:, :, None] + prepared[:, None]  # B T S A
        scores: Tensor = self.output(mixed.tanh())[..., 0]
        return scores


class DotScores(Scores):
    """Score = q · k, divided by √D if scaled; the widths must agree.

    Args:
        query_width: of the queries.
        key_width: of the keys.
        scaled: divide by the square root of the width.

    Raises:
        ValueError: the widths differ.
    """

    def __init__(self, query_width: int, key_width: int, *, scaled: bool) -> None:
        super().__init__()
        if query_width != key_width:
            raise ValueError(
                f"a dot product needs equal widths, but queries have {query_width} and "
                f"keys {key_width}: use bilinear or additive scores."
            )
        self.scale = 1 / math.sqrt(key_width) if scaled else 1.0

    def prepare(self, key: Float[Tensor, "B S D"]) -> Float[Tensor, "B S D"]:
        """The keys, scaled."""
        return key * self.scale

    def compare(
        self, query: Float[Tensor, "B T Q"], prepared: Float[Tensor, "B S A"]
    ) -> Float[Tensor, "B T S"]:
        """Score every key for every query."""
        return query @ prepared.mT


class LearnedDotScores(Scores):
    """Score = (W q) · (U k) / √Q: both sides are learned before they are compared.

    Args:
        query_width: Q, of the queries and of what is compared.
        key_width: of the keys.
    """

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__()
        self.query = nn.Linear(query_width, query_width, bias=False)
        self.key = nn.Linear(key_width, query_width, bias=False)

    def prepare(self, key: Float[Tensor, "B S D"]) -> Float[Tensor, "B S Q"]:
        """U k, scaled."""
        prepared: Tensor = self.key(key)
        return prepared / math.sqrt(self.query.out_features)

    def compare(
        self, query: Float[Tensor, "B T Q"], prepared: Float[Tensor, "B S A"]
    ) -> Float[Tensor, "B T S"]:
        """Score every key for every query."""
        scores: Tensor = self.query(query) @ prepared.mT
        return scores


class DotAttention(nn.Module):
    """Attention with a learned dot product: softmax((W q) · (U k) / √D) over the keys.

    The weights W and U have the names that they have in ``LearnedDotScores``.

    Args:
        width: D.
    """

    def __init__(self, width: int) -> None:
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)

    def forward(
        self,
        query: Float[Tensor, "B T D"],
        key: Float[Tensor, "B S D"],
        value: Float[Tensor, "B S V"],
        mask: Bool[Tensor, "#B #T S"],
    ) -> tuple[Float[Tensor, "B T V"], Float[Tensor, "B T S"]]:
        """Average the values, weighted by how well each key answers the query.

        Args:
            query: what each output position looks for, such as a decoder's state.
            key: what each source position offers.
            value: what is taken from it.
            mask: ``True`` where a query may look; every row needs one.

        Returns:
            the averages and the weights.

        Raises:
            ValueError: the mask is not boolean or does not fit.
        """
        check_mask(mask, queries=query.shape[1], keys=key.shape[1])
        q, k = self.query(query), self.key(key)  # B T D, B S D
        scores = q @ k.mT / math.sqrt(q.shape[-1])  # B T S
        weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
        return weights @ value, weights


class BilinearScores(Scores):
    """Score = qᵀ M k with a learned matrix M (Luong et al., 2015, "general").

    Args:
        query_width: of the queries.
        key_width: of the keys.
    """

    def __init__(self, query_width: int, key_width: int) -> None:
        super().__init__()
        self.matrix = nn.Linear(key_width, query_width, bias=False)

    def prepare(self, key: Float[Tensor, "B S D"]) -> Float[Tensor, "B S Q"]:
        """M k."""
        prepared: Tensor = self.matrix(key)
        return prepared

    def compare(
        self, query: Float[Tensor, "B T Q"], prepared: Float[Tensor, "B S A"]
    ) -> Float[Tensor, "B T S"]:
        """Score every key for every query."""
        return query @ prepared.mT


def make_scores(kind: ScoreKind, *, query_width: int, key_width: int) -> Scores:
    """Scores of this kind; additive ones are as wide inside as the queries."""
    match kind:
        case ScoreKind.ADDITIVE:
            return AdditiveScores(query_width, key_width, query_width)
        case ScoreKind.BILINEAR:
            return BilinearScores(query_width, key_width)
        case ScoreKind.LEARNED_DOT:
            return LearnedDotScores(query_width, key_width)
        case ScoreKind.DOT | ScoreKind.SCALED_DOT:
            scaled = kind is ScoreKind.SCALED_DOT
            return DotScores(query_width, key_width, scaled=scaled)
