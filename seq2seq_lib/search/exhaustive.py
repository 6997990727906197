"""Chapter 5: every possible output, scored; only for small cases.

Axes: V vocabulary, R rows (prefixes of one source).
"""

import torch
from torch import Tensor

from seq2seq_lib.data.vocabulary import BOS, EOS
from seq2seq_lib.interface import Decoder, EncoderOutput, evaluating, reorder
from seq2seq_lib.search.hypothesis import (
    Hypothesis,
    Node,
    SearchResult,
    Trace,
    attention_of,
    check_search,
    cut_at_end,
    length_score,
    path_to,
)

MOST_PREFIXES = 200_000


def exhaustive_search(
    decoder: Decoder,
    encoded: EncoderOutput,
    *,
    max_length: int,
    alpha: float = 0.75,
    n_best: int = 1,
    trace: bool = False,
) -> list[SearchResult]:
    """Score every output that ends within ``max_length`` and return the best.

    There are about V^T of them: this is the yardstick for other searches on a small
    vocabulary, not a way to decode. Continuations of probability 0 are left out.

    Args:
        decoder: says what may come next.
        encoded: what the encoder made of the sources.
        max_length: how many symbols an output may have, ``EOS`` included.
        alpha: exponent of the length in the score log p / L^α.
        n_best: how many hypotheses to return for each source.
        trace: also return the whole tree and the attention of the symbols.

    Returns:
        for every source, the ``n_best`` finished hypotheses with the highest score.

    Raises:
        ValueError: an option is out of range, or there are too many outputs to try.
    """
    check_search(max_length=max_length, alpha=alpha)
    if n_best < 1:
        raise ValueError(f"n_best={n_best}: ask for at least one hypothesis.")
    with evaluating(decoder):
        trees = [
            _grow(decoder, encoded.reorder(row[None]), max_length, alpha)
            for row in torch.arange(len(encoded), device=encoded.mask.device)
        ]
        found = [_best_leaves(nodes, n_best, alpha) for nodes, _ in trees]
        if not trace:
            return [SearchResult(hypotheses) for hypotheses in found]
        attention = attention_of(decoder, encoded, found)
    return [
        SearchResult(hypotheses, Trace(nodes, candidates, weights))
        for hypotheses, (nodes, candidates), weights in zip(
            found, trees, attention, strict=True
        )
    ]


def _grow(
    decoder: Decoder, encoded: EncoderOutput, max_length: int, alpha: float
) -> tuple[list[Node], int]:
    """The tree of all outputs of one source, breadth first."""
    nodes: list[Node] = []
    candidates = 0
    parents = [-1]  # the node each row ends in
    token = torch.full((1,), BOS, device=encoded.mask.device)
    state = decoder.init_state(encoded)
    totals: Tensor | None = None
    for length in range(1, max_length + 1):
        scores, state = decoder.step(token, state)  # R V
        totals = scores if totals is None else totals[:, None] + scores
        candidates += totals.numel()
        rows, symbols = totals.isfinite().nonzero(as_tuple=True)
        totals = totals[rows, symbols]
        going = (symbols != EOS).nonzero()[:, 0]
        if len(going) > MOST_PREFIXES:
            raise ValueError(
                f"{len(going):,} prefixes of length {length} are too many to try them "
                f"all (limit {MOST_PREFIXES:,}): lower max_length={max_length} or use "
                "beam_search."
            )
        first = len(nodes)
        nodes.extend(
            Node(
                parents[row],
                symbol,
                total,
                length_score(total, length, alpha),
                kept=True,
            )
            for row, symbol, total in zip(
                rows.tolist(), symbols.tolist(), totals.tolist(), strict=True
            )
        )
        if not len(going):
            break
        parents = (going + first).tolist()
        token, totals = symbols[going], totals[going]
        state = reorder(state, rows[going])
    return nodes, candidates


def _best_leaves(nodes: list[Node], n_best: int, alpha: float) -> list[Hypothesis]:
    leaves = [node for node in nodes if node.token == EOS]
    if not leaves:
        raise ValueError(
            "no output ends within max_length: every EOS has probability 0 so far. "
            "Raise max_length."
        )
    leaves.sort(key=lambda node: -node.score)
    return [
        cut_at_end(path_to(nodes, leaf), leaf.log_probability, alpha)
        for leaf in leaves[:n_best]
    ]
