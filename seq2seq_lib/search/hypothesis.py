"""Chapter 5: what every search returns.

Axes: T target, S source.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from jaxtyping import Float
from torch import Tensor

from seq2seq_lib.data.batch import pad
from seq2seq_lib.data.vocabulary import BOS, EOS
from seq2seq_lib.interface import Decoder, EncoderOutput


@dataclass(frozen=True)
class Hypothesis:
    """One output for one source.

    Attributes:
        tokens: the symbols, without ``BOS`` and ``EOS``.
        log_probability: the sum over its symbols, ``EOS`` included.
        score: what the search ranks by, log p / L^α.
        finished: whether it ended by itself; if not, it was cut at ``max_length``.
    """

    tokens: tuple[int, ...]
    log_probability: float
    score: float
    finished: bool


@dataclass(frozen=True)
class Node:
    """One symbol in the tree that a search has walked.

    Attributes:
        parent: index of the node before it; −1 at the first symbol.
        token: the symbol; ``EOS`` ends a hypothesis.
        log_probability: of everything from the beginning to here.
        score: log p / L^α.
        kept: whether the search went on from here or put it aside as finished.
    """

    parent: int
    token: int
    log_probability: float
    score: float
    kept: bool


@dataclass(frozen=True)
class Trace:
    """What a search considered for one source.

    Attributes:
        nodes: the tree, parents before children.
        candidates: how many scored continuations the search chose among.
        attention: for each hypothesis returned, the attention of each of its symbols,
            ``EOS`` last; ``None`` if the decoder does not attend.
    """

    nodes: list[Node]
    candidates: int
    attention: list[Float[Tensor, "_ S"]] | None


@dataclass(frozen=True)
class SearchResult:
    """The outcome of a search for one source.

    Attributes:
        hypotheses: best score first, at least one.
        trace: how the search got there, if it was asked for.
    """

    hypotheses: list[Hypothesis]
    trace: Trace | None = None

    @property
    def best(self) -> Hypothesis:
        """The hypothesis with the highest score."""
        return self.hypotheses[0]


Search = Callable[[Decoder, EncoderOutput], list[SearchResult]]
"""A search with its options filled in, as evaluation takes it."""


def length_score(log_probability: float, length: int, alpha: float) -> float:
    """The score log p / L^α.

    Log-probabilities are negative: dividing one by a larger number raises it. So a
    larger α favours longer outputs.

    >>> length_score(-6.0, 4, 0.5), length_score(-6.0, 9, 0.5)
    (-3.0, -2.0)
    """
    return log_probability / float(length**alpha)


def check_search(*, max_length: int, alpha: float, width: int = 1) -> None:
    """Refuse options that make no sense for any search."""
    if max_length < 1:
        raise ValueError(
            f"max_length={max_length} leaves no room for an output: use at least 1."
        )
    if width < 1:
        raise ValueError(f"width={width}: a beam needs to keep at least one prefix.")
    if not alpha >= 0:
        raise ValueError(
            f"alpha={alpha} must not be negative: 0 ranks by log-probability, 0.75 is "
            "the usual choice, larger values favour longer outputs."
        )


def attention_of(
    decoder: Decoder, encoded: EncoderOutput, found: list[list[Hypothesis]]
) -> list[list[Float[Tensor, "_ S"]] | None]:
    """The attention of every symbol, from one teacher-forced pass."""
    counts = torch.tensor([len(hypotheses) for hypotheses in found])
    rows = torch.arange(len(found)).repeat_interleave(counts).to(encoded.mask.device)
    flat = [hypothesis for hypotheses in found for hypothesis in hypotheses]
    tokens = pad([[BOS, *h.tokens] for h in flat]).to(encoded.mask.device)
    weights = decoder.attention(encoded.reorder(rows), tokens)
    if weights is None:
        return [None] * len(found)
    steps = (
        w[: len(h.tokens) + h.finished] for w, h in zip(weights, flat, strict=True)
    )
    return [[next(steps) for _ in hypotheses] for hypotheses in found]


def path_to(nodes: Sequence[Node], end: Node) -> list[int]:
    """The symbols from the root of a tree to a node, which is the last of them."""
    symbols = [end.token]
    while end.parent >= 0:
        end = nodes[end.parent]
        symbols.append(end.token)
    return symbols[::-1]


def cut_at_end(symbols: list[int], log_probability: float, alpha: float) -> Hypothesis:
    """A hypothesis of these symbols, up to ``EOS`` if there is one."""
    finished = symbols[-1] == EOS
    tokens = tuple(symbols[:-1] if finished else symbols)
    score = length_score(log_probability, len(symbols), alpha)
    return Hypothesis(tokens, log_probability, score, finished)
