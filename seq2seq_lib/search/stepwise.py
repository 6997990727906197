"""Chapter 5: one path per source, chosen greedily or at random.

Axes: B batch (sources), V vocabulary, R rows still walking.
"""

from collections.abc import Callable
from itertools import accumulate

import torch
from jaxtyping import Float
from torch import Tensor

from seq2seq_lib.data.vocabulary import BOS, EOS
from seq2seq_lib.interface import Decoder, EncoderOutput, evaluating, reorder
from seq2seq_lib.search.hypothesis import (
    Node,
    SearchResult,
    Trace,
    attention_of,
    check_search,
    cut_at_end,
    length_score,
)


def greedy_search(
    decoder: Decoder,
    encoded: EncoderOutput,
    *,
    max_length: int,
    alpha: float = 0.75,
    trace: bool = False,
) -> list[SearchResult]:
    """Take the most probable symbol at every step.

    Args:
        decoder: says what may come next.
        encoded: what the encoder made of the sources.
        max_length: how many symbols an output may have, ``EOS`` included.
        alpha: only for the score; it does not change what greedy search finds.
        trace: also return the path and the attention of its symbols.

    Returns:
        for every source, one hypothesis.
    """

    def most_probable(log_probabilities: Tensor) -> tuple[Tensor, Tensor]:
        gained, token = log_probabilities.max(dim=-1)
        return gained, token

    return _walk(decoder, encoded, most_probable, max_length, alpha=alpha, trace=trace)


def sample(
    decoder: Decoder,
    encoded: EncoderOutput,
    *,
    max_length: int,
    temperature: float = 1.0,
    top_k: int | None = None,
    top_p: float | None = None,
    generator: torch.Generator | None = None,
    alpha: float = 0.75,
    trace: bool = False,
) -> list[SearchResult]:
    """Draw every symbol at random from the decoder's distribution.

    Args:
        decoder: says what may come next.
        encoded: what the encoder made of the sources.
        max_length: how many symbols an output may have, ``EOS`` included.
        temperature: below 1 sharpens the distribution, above 1 flattens it.
        top_k: draw only among the k most probable symbols.
        top_p: draw only among the fewest symbols whose probabilities reach p.
        generator: the source of randomness, on the device of the sources.
        alpha: only for the score.
        trace: also return the path and the attention of its symbols.

    Returns:
        for every source, one hypothesis; its log-probability is the decoder's own,
        before temperature and truncation.

    Raises:
        ValueError: temperature, top_k or top_p is out of range.
    """
    if not temperature > 0:
        raise ValueError(
            f"temperature={temperature} must be above 0: for the limit at 0, use "
            "greedy_search."
        )

    def draw(log_probabilities: Tensor) -> tuple[Tensor, Tensor]:
        kept = keep_probable(log_probabilities / temperature, top_k=top_k, top_p=top_p)
        token = kept.exp().multinomial(1, generator=generator)  # R 1
        return log_probabilities.gather(1, token)[:, 0], token[:, 0]

    return _walk(decoder, encoded, draw, max_length, alpha=alpha, trace=trace)


def keep_probable(
    scores: Float[Tensor, "R V"],
    *,
    top_k: int | None = None,
    top_p: float | None = None,
) -> Float[Tensor, "R V"]:
    """Log-probabilities with everything outside top k and top p set to −∞.

    Args:
        scores: unnormalised log-probabilities.
        top_k: keep the k most probable symbols.
        top_p: keep the fewest symbols whose probabilities together reach p.

    Raises:
        ValueError: top_k or top_p is out of range.

    >>> scores = torch.tensor([[0.5, 0.3, 0.15, 0.05]]).log()
    >>> keep_probable(scores, top_k=2).exp()
    tensor([[0.6250, 0.3750, 0.0000, 0.0000]])
    >>> keep_probable(scores, top_p=0.9).exp()
    tensor([[0.5263, 0.3158, 0.1579, 0.0000]])
    """
    if top_k is not None and top_k < 1:
        raise ValueError(f"top_k={top_k} leaves nothing to draw: use at least 1.")
    if top_p is not None and not 0 < top_p <= 1:
        raise ValueError(f"top_p={top_p} must be above 0 and at most 1.")
    ranked, order = scores.log_softmax(dim=-1).sort(descending=True, stable=True)
    keep = torch.ones_like(ranked, dtype=torch.bool)
    if top_k is not None:
        keep[:, top_k:] = False
    if top_p is not None and top_p < 1:
        before = ranked.exp().cumsum(dim=-1) - ranked.exp()
        keep &= before < top_p - 1e-6  # what adding up many shares may be off by
    ranked = ranked.masked_fill(~keep, -torch.inf).log_softmax(dim=-1)
    return torch.empty_like(ranked).scatter(1, order, ranked)


def _walk(
    decoder: Decoder,
    encoded: EncoderOutput,
    choose: Callable[[Tensor], tuple[Tensor, Tensor]],
    max_length: int,
    *,
    alpha: float,
    trace: bool,
) -> list[SearchResult]:
    check_search(max_length=max_length, alpha=alpha)
    paths: list[list[int]] = [[] for _ in range(len(encoded))]
    gains: list[list[float]] = [[] for _ in range(len(encoded))]
    rows = list(range(len(encoded)))  # the sources still walking
    token = torch.full((len(encoded),), BOS, device=encoded.mask.device)
    with evaluating(decoder), torch.inference_mode():
        state = decoder.init_state(encoded)
        for _ in range(max_length):
            scores, state = decoder.step(token, state)  # R V
            gained, token = choose(scores)
            symbols = token.tolist()
            for row, symbol, gain in zip(rows, symbols, gained.tolist(), strict=True):
                paths[row].append(symbol)
                gains[row].append(gain)
            if EOS not in symbols:
                continue
            going = [place for place, symbol in enumerate(symbols) if symbol != EOS]
            if not going:
                break
            rows = [rows[place] for place in going]
            kept = torch.tensor(going, device=token.device)
            token, state = token[kept], reorder(state, kept)
    # added up here, because sums in half precision would lose what a step adds
    totals = [list(accumulate(row)) for row in gains]
    hypotheses = [
        cut_at_end(path, total[-1], alpha)
        for path, total in zip(paths, totals, strict=True)
    ]
    if not trace:
        return [SearchResult([hypothesis]) for hypothesis in hypotheses]
    with evaluating(decoder):
        attention = attention_of(decoder, encoded, [[h] for h in hypotheses])
    size = scores.shape[-1]
    return [
        SearchResult([h], Trace(_chain(path, total, alpha), len(path) * size, weights))
        for h, path, total, weights in zip(
            hypotheses, paths, totals, attention, strict=True
        )
    ]


def _chain(path: list[int], totals: list[float], alpha: float) -> list[Node]:
    return [
        Node(step - 1, token, total, length_score(total, step + 1, alpha), kept=True)
        for step, (token, total) in enumerate(zip(path, totals, strict=True))
    ]
