"""Chapter 5: beam search, which keeps the best few prefixes at every step.

Axes: B sources still searched, W prefixes kept, V vocabulary, C candidates examined
closely, R = B·W rows of the decoder's state.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2seq_lib.data.vocabulary import BOS, EOS
from seq2seq_lib.interface import Decoder, EncoderOutput, evaluating, reorder
from seq2seq_lib.search.hypothesis import (
    Hypothesis,
    Node,
    Search,
    SearchResult,
    Trace,
    attention_of,
    check_search,
    cut_at_end,
    length_score,
)


def beam_search(
    decoder: Decoder,
    encoded: EncoderOutput,
    *,
    max_length: int,
    width: int = 5,
    alpha: float = 0.75,
    n_best: int = 1,
    trace: bool = False,
) -> list[SearchResult]:
    """Keep the best W prefixes at every step, and return the best that ended.

    Of the W·V continuations of a step, those with ``EOS`` among the best W are put
    aside as finished, and the best W others go on. A source is done when no prefix
    that is still alive could overtake what it has finished; it then leaves the batch.

    Args:
        decoder: says what may come next.
        encoded: what the encoder made of the sources.
        max_length: how many symbols an output may have, ``EOS`` included.
        width: W, how many prefixes are kept.
        alpha: exponent of the length in the score log p / L^α.
        n_best: how many hypotheses to return for each source, at most W.
        trace: also return the tree and the attention of the symbols.

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
    beams = [_Beam() for _ in range(len(encoded))]
    searched = list(beams)
    device = encoded.mask.device
    with evaluating(decoder), torch.inference_mode():
        state = decoder.init_state(encoded)
        token, totals = _tensors(searched, device, torch.float)  # R, B W
        for length in range(1, max_length + 1):
            scores, state = decoder.step(token, state)  # R V
            symbols = scores.shape[1]
            candidates = totals[..., None] + scores.view(*totals.shape, symbols)
            candidates = candidates.flatten(1)  # B W·V
            # at most W candidates end, so of the best 2·W there are W that go on
            best, index = candidates.topk(min(2 * width, candidates.shape[1]))  # B C
            for beam, logs, places in zip(
                searched, best.tolist(), index.tolist(), strict=True
            ):
                beam.considered += candidates.shape[1]
                chosen = [
                    (log, *divmod(place, symbols))
                    for log, place in zip(logs, places, strict=True)
                ]
                beam.advance(chosen, width, alpha, trace=trace)

            # nothing alive can score better than if all that follows were certain
            going = [
                number
                for number, beam in enumerate(searched)
                if beam.totals[0] / max_length**alpha > beam.nth_score(n_best)
                or not beam.finished
            ]
            if not going or length == max_length:
                break
            rows = [
                number * totals.shape[1] + parent
                for number in going
                for parent in searched[number].parents
            ]
            searched = [searched[number] for number in going]
            state = reorder(state, torch.tensor(rows, device=device))
            token, totals = _tensors(searched, device, best.dtype)
    for beam in searched:
        if not beam.finished:  # cut off at max_length
            cut = cut_at_end(beam.prefixes[0], beam.totals[0], alpha)
            beam.finished.append(cut)
    found = [sorted(b.finished, key=lambda h: -h.score)[:n_best] for b in beams]
    if not trace:
        return [SearchResult(hypotheses) for hypotheses in found]
    with evaluating(decoder):
        attention = attention_of(decoder, encoded, found)
    return [
        SearchResult(hypotheses, Trace(beam.nodes, beam.considered, weights))
        for hypotheses, beam, weights in zip(found, beams, attention, strict=True)
    ]


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """How outputs are found when the model is evaluated.

    Attributes:
        width: of the beam.
        alpha: exponent of the length in the score.
        max_length: symbols in an output, ``EOS`` included.
    """

    width: int = 5
    alpha: float = 0.75
    max_length: int = 64

    def __post_init__(self) -> None:
        check_search(max_length=self.max_length, alpha=self.alpha, width=self.width)

    def search(self) -> Search:
        """The search with these options filled in."""
        return partial(
            beam_search,
            width=self.width,
            alpha=self.alpha,
            max_length=self.max_length,
        )


Candidate = tuple[float, int, int]
"""A total log-probability, the prefix that is continued, and the symbol it gains."""


@dataclass
class _Beam:
    """What the search of one source has found so far.

    Attributes:
        prefixes: what goes on, best first.
        totals: their log-probabilities; −∞ for one that only fills the beam.
        parents: which prefixes of the step before they continue.
        finished: what was put aside because it ended.
        considered: how many continuations were scored.
        nodes: the tree of all candidates, if it is traced.
        ends: the nodes that the prefixes end in.
    """

    prefixes: list[list[int]] = field(default_factory=lambda: [[]])
    totals: list[float] = field(default_factory=lambda: [0.0])
    parents: list[int] = field(default_factory=list)
    finished: list[Hypothesis] = field(default_factory=list)
    considered: int = 0
    nodes: list[Node] = field(default_factory=list)
    ends: list[int] = field(default_factory=lambda: [-1])

    def advance(
        self, chosen: list[Candidate], width: int, alpha: float, *, trace: bool
    ) -> None:
        """Put aside what ends, and go on with the best W others."""
        ended = [
            place
            for place, (log, _, token) in enumerate(chosen)
            if token == EOS and place < width and log > -math.inf
        ]
        for log, parent, token in (chosen[place] for place in ended):
            symbols = [*self.prefixes[parent], token]
            self.finished.append(cut_at_end(symbols, log, alpha))
        # where fewer than W go on, the rest of the beam has probability 0
        dead = [place for place, one in enumerate(chosen) if one[2] == EOS]
        kept = [place for place, one in enumerate(chosen) if one[2] != EOS]
        kept = [*kept, *dead][:width]
        totals = [-math.inf if place in dead else chosen[place][0] for place in kept]
        if trace:
            going = {
                p for p, total in zip(kept, totals, strict=True) if total > -math.inf
            }
            first, length = len(self.nodes), len(self.prefixes[0]) + 1
            self.nodes += [
                Node(
                    self.ends[parent],
                    token,
                    log,
                    length_score(log, length, alpha),
                    kept=place in going or place in ended,
                )
                for place, (log, parent, token) in enumerate(chosen)
            ]
            self.ends = [first + place for place in kept]
        self.totals = totals
        self.parents = [chosen[place][1] for place in kept]
        self.prefixes = [
            [*self.prefixes[chosen[place][1]], chosen[place][2]] for place in kept
        ]

    def nth_score(self, n: int) -> float:
        """The n-th best score of what has finished."""
        scores = sorted((h.score for h in self.finished), reverse=True)
        return scores[n - 1] if len(scores) >= n else -math.inf


def _tensors(
    beams: Sequence[_Beam], device: torch.device, dtype: torch.dtype
) -> tuple[Int[Tensor, " R"], Float[Tensor, "B W"]]:
    """What the next step reads: the last symbol of every prefix, and its total."""
    last = [prefix[-1] if prefix else BOS for one in beams for prefix in one.prefixes]
    totals = [beam.totals for beam in beams]
    return (
        torch.tensor(last, device=device),
        torch.tensor(totals, dtype=dtype, device=device),
    )
