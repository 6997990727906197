"""Chapter 5: beam search, which keeps the best few prefixes at every step.

Axes: B sources still searched, W prefixes kept, V vocabulary, C candidates looked at
closely, R = B·W rows of the decoder's state.
"""

import math
from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

from seq2seq_lib.data.vocabulary import BOS, EOS
from seq2seq_lib.interface import Decoder, Memory, evaluating
from seq2seq_lib.search.hypothesis import (
    Found,
    Hypothesis,
    Node,
    Trace,
    attention_of,
    check_search,
    cut_at_end,
    length_score,
)


def beam_search(
    decoder: Decoder,
    memory: Memory,
    *,
    max_length: int,
    width: int = 5,
    alpha: float = 0.75,
    n_best: int = 1,
    trace: bool = False,
) -> list[Found]:
    """Keep the best W prefixes at every step, and return the best that ended.

    Of the W·V continuations of a step, those with ``EOS`` among the best W are put
    aside as finished, and the best W others go on. A source is done when no prefix
    that is still alive could overtake what it has finished; it then leaves the batch.

    Args:
        decoder: says what may come next.
        memory: the encoded sources.
        max_length: how many symbols an output may have, ``EOS`` included.
        width: W, how many prefixes are kept.
        alpha: exponent of the length in the score log p / L^α.
        n_best: how many hypotheses to return for each source, at most W.
        trace: also return the tree and where the symbols looked.

    Returns:
        for every source up to ``n_best`` finished hypotheses, best score first; if
        none ended within ``max_length``, the best prefix, marked as not finished.

    Raises:
        ValueError: an option is out of range.
    """
    check_search(max_length=max_length, alpha=alpha, width=width)
    if not 1 <= n_best <= width:
        raise ValueError(
            f"n_best={n_best} with width={width}: a beam finds between 1 and its width."
        )
    finished: list[list[Hypothesis]] = [[] for _ in range(len(memory))]
    steps: list[_Step] = []
    with evaluating(decoder):
        state = decoder.init_state(memory)
        sources = torch.arange(len(memory), device=memory.mask.device)
        prefixes = torch.full_like(sources, BOS)[:, None, None]  # B W length
        totals = torch.zeros_like(sources, dtype=torch.float)[:, None]  # B W
        for _ in range(max_length):
            scores, state = decoder.step(prefixes[..., -1].flatten(), state)  # R V
            step = _choose(sources, totals, scores, width)
            if trace:
                steps.append(step)
            rows, columns = step.done.nonzero(as_tuple=True)
            for source, tokens, total in zip(
                sources[rows].tolist(),
                prefixes[rows, step.parents[rows, columns], 1:].tolist(),
                step.totals[rows, columns].tolist(),
                strict=True,
            ):
                finished[source].append(cut_at_end([*tokens, EOS], total, alpha))

            parents = step.parents.gather(1, step.kept)  # B W
            totals = step.alive
            rows = torch.arange(len(sources), device=sources.device)[:, None]
            tokens = step.tokens.gather(1, step.kept)[..., None]
            state_rows = rows * prefixes.shape[1] + parents
            prefixes = torch.cat([prefixes[rows, parents], tokens], dim=-1)
            # nothing alive can score better than if all that follows were certain
            bounds = (totals[:, 0] / max_length**alpha).tolist()
            going = [
                bound > _nth_score(finished[source], n_best) or not finished[source]
                for bound, source in zip(bounds, sources.tolist(), strict=True)
            ]
            if not any(going):
                break
            if not all(going):
                stay = torch.tensor(going, device=sources.device)
                sources, state_rows = sources[stay], state_rows[stay]
                prefixes, totals = prefixes[stay], totals[stay]
            state = state.reorder(state_rows.flatten())
        for source, tokens, total in zip(
            sources.tolist(),
            prefixes[:, 0, 1:].tolist(),
            totals[:, 0].tolist(),
            strict=True,
        ):
            if not finished[source]:  # cut off at max_length
                finished[source].append(cut_at_end(tokens, total, alpha))
        best = [sorted(h, key=lambda h: -h.score)[:n_best] for h in finished]
        if not trace:
            return [Found(hypotheses) for hypotheses in best]
        attention = attention_of(decoder, memory, best)
    trees = _trees(steps, len(memory), alpha)
    return [
        Found(hypotheses, Trace(nodes, looked_at, weights))
        for hypotheses, (nodes, looked_at), weights in zip(
            best, trees, attention, strict=True
        )
    ]


@dataclass(frozen=True)
class _Step:
    """The best candidates of one step, for the sources still searched.

    Attributes:
        sources: which source each row belongs to.
        totals: log-probability of each candidate from the beginning, best first.
        parents: which prefix it continues.
        tokens: the symbol it adds.
        done: whether it is put aside as finished.
        kept: the columns that go on as prefixes, best first.
        alive: log-probability of those prefixes.
        looked_at: how many continuations were scored for each source.
    """

    sources: Int[Tensor, " B"]
    totals: Float[Tensor, "B C"]
    parents: Int[Tensor, "B C"]
    tokens: Int[Tensor, "B C"]
    done: Bool[Tensor, "B C"]
    kept: Int[Tensor, "B W"]
    alive: Float[Tensor, "B W"]
    looked_at: int


def _choose(
    sources: Int[Tensor, " B"],
    totals: Float[Tensor, "B W"],
    scores: Float[Tensor, "R V"],
    width: int,
) -> _Step:
    symbols = scores.shape[1]
    candidates = totals[..., None] + scores.view(*totals.shape, symbols)  # B W V
    candidates = candidates.flatten(1)
    looked_at = candidates.shape[1]
    # at most W candidates end, so of the best 2·W there are W that go on
    best, index = candidates.topk(min(2 * width, looked_at))  # B C
    tokens = index % symbols
    ends = tokens == EOS
    done = ends & best.isfinite()
    done[:, width:] = False
    # where fewer than W go on, the rest of the beam has probability 0
    alive, kept = best.masked_fill(ends, -torch.inf).topk(min(width, best.shape[1]))
    parents = index // symbols
    return _Step(sources, best, parents, tokens, done, kept, alive, looked_at)


def _nth_score(hypotheses: list[Hypothesis], n: int) -> float:
    scores = sorted((h.score for h in hypotheses), reverse=True)
    return scores[n - 1] if len(scores) >= n else -math.inf


def _trees(
    steps: list[_Step], sources: int, alpha: float
) -> list[tuple[list[Node], int]]:
    """For every source the tree of all candidates, and how many were scored."""
    trees: list[list[Node]] = [[] for _ in range(sources)]
    looked_at = [0] * sources
    prefixes = [[-1]] * sources  # the nodes that the prefixes of a source end in
    for length, step in enumerate(steps, start=1):
        for source, totals, parents, tokens, done, kept, alive in zip(
            *(
                getattr(step, field).tolist()
                for field in (
                    "sources",
                    "totals",
                    "parents",
                    "tokens",
                    "done",
                    "kept",
                    "alive",
                )
            ),
            strict=True,
        ):
            nodes = trees[source]
            first = len(nodes)
            looked_at[source] += step.looked_at
            go_on = {
                c for c, total in zip(kept, alive, strict=True) if total > -math.inf
            }
            nodes.extend(
                Node(
                    prefixes[source][parents[column]],
                    tokens[column],
                    total,
                    length_score(total, length, alpha),
                    kept=done[column] or column in go_on,
                )
                for column, total in enumerate(totals)
            )
            prefixes[source] = [first + column for column in kept]
    return [(nodes, count) for nodes, count in zip(trees, looked_at, strict=True)]
