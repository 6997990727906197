"""Beam search of chapter 5, on decoders whose scores hang on the whole past.

Axes: R rows, T target, V vocabulary.
"""

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Float, Int
from torch import Tensor

from seq2seq_lib.data.vocabulary import BOS, EOS
from seq2seq_lib.evaluation.blank_page.entry import Entry, Outcome
from seq2seq_lib.evaluation.blank_page.written import FailedError, attempt, kind
from seq2seq_lib.interface import Decoder, DecoderState, EncoderOutput, reorder
from seq2seq_lib.search import SearchResult, beam_search
from seq2seq_lib.seeds import generator

SYMBOLS, PASTS = 7, 11
WIDTH, LENGTH = 3, 5
# where beams of all right kinds agree, whatever the exponent of the length, and wrong
# ones do not: a test looks again
SEEDS = (769, 1546, 1811, 3120, 3517)


@dataclass(frozen=True)
class _Past(DecoderState):
    """A number that stands for all symbols read so far, for each row."""

    number: Int[Tensor, " R"]

    def reorder(self, rows: Int[Tensor, " R"]) -> "_Past":
        """Keep these rows."""
        return _Past(self.number[rows])

    def __getitem__(self, rows: Int[Tensor, " R"]) -> "_Past":
        return self.reorder(rows)


class ScriptedDecoder(Decoder):
    """Scores drawn once for every past, so that a state in the wrong row shows.

    Args:
        seed: of the scores.
    """

    def __init__(self, seed: int) -> None:
        super().__init__()
        scores = torch.randn(PASTS, SYMBOLS, generator=generator(seed))
        scores[:, :EOS] = -torch.inf  # neither padding nor a second beginning
        self.register_buffer("scores", (1.5 * scores).log_softmax(-1))

    def init_state(self, encoded: EncoderOutput) -> _Past:
        """Nothing read."""
        return _Past(torch.zeros(len(encoded.states), dtype=torch.long))

    def step(
        self, token: Int[Tensor, " R"], state: DecoderState
    ) -> tuple[Float[Tensor, "R V"], _Past]:
        """Look the scores up."""
        assert isinstance(state, _Past)
        past = (3 * state.number + 2 * token + 1) % PASTS
        return self.get_buffer("scores")[past], _Past(past)

    def forward(
        self, encoded: EncoderOutput, tokens: Int[Tensor, "R T"]
    ) -> Float[Tensor, "R T V"]:
        """Step by step."""
        state, steps = self.init_state(encoded), []
        for token in tokens.unbind(1):
            scores, state = self.step(token, state)
            steps.append(scores)
        return torch.stack(steps, dim=1)


def plain_beam_search(
    decoder: Decoder,
    encoded: EncoderOutput,
    width: int,
    max_length: int,
    *,
    alpha: float = 0.0,
    mistake: str = "",
) -> list[list[int]]:
    """A beam for one source, as a page has it, right or with a mistake."""
    prefixes: list[list[int]] = [[BOS]]
    totals = torch.zeros(1)
    if mistake == "equal rows":
        prefixes, totals = [[BOS]] * width, torch.zeros(width)
    finished: list[tuple[float, list[int]]] = []
    state = decoder.init_state(encoded)
    state = reorder(state, torch.zeros(len(prefixes), dtype=torch.long))
    for _ in range(max_length):
        scores, state = decoder.step(torch.tensor([p[-1] for p in prefixes]), state)
        sums = scores if mistake == "last" else totals[:, None] + scores
        best, places = sums.flatten().topk(2 * width)
        chosen = [
            (log, *divmod(place, scores.shape[1]))
            for log, place in zip(best.tolist(), places.tolist(), strict=True)
            if log > -torch.inf
        ]
        if mistake == "growing":
            going = chosen[:width]
        else:
            going = [one for one in chosen if one[2] != EOS][:width]
            finished += [
                (log / len(prefixes[0]) ** alpha, [*prefixes[row], EOS])
                for log, row, symbol in chosen[:width]
                if symbol == EOS
            ]
        own = range(len(going))
        rows = [row for _, row, _ in going]
        if mistake == "prefixes" and len(prefixes) == len(going):
            prefixes = [[*prefixes[i], going[i][2]] for i in own]
        else:
            prefixes = [[*prefixes[row], symbol] for _, row, symbol in going]
        totals = torch.tensor([log for log, _, _ in going])
        if mistake == "state" and len(scores) == len(going):
            rows = list(own)
        state = reorder(state, torch.tensor(rows))
    if mistake in {"growing", "unfinished"} or not finished:
        finished = list(zip(totals.tolist(), prefixes, strict=True))
    finished.sort(key=lambda one: one[0], reverse=mistake != "worst")
    return [tokens for _, tokens in finished]


def encoded_nothing() -> EncoderOutput:
    """One source, of which the decoders here take no notice."""
    return EncoderOutput(
        torch.zeros(1, 1, 1), torch.ones(1, 1, dtype=torch.bool), torch.zeros(1, 1)
    )


def symbols_of(answer: Any) -> list[int]:
    """The symbols of one answer, without its beginning and what follows its end."""
    if hasattr(answer, "tokens"):
        answer = answer.tokens
    if isinstance(answer, tuple | list) and len(answer) == 2:  # with a score
        lists = [one for one in answer if isinstance(one, tuple | list)]
        answer = lists[0] if len(lists) == 1 else answer
    numbers = answer.tolist() if isinstance(answer, Tensor) else answer
    if not isinstance(numbers, tuple | list) or not all(
        isinstance(one, int | Tensor) for one in numbers
    ):
        raise FailedError(
            "beam_search should return a list of answers, best first, each a list of "
            f"symbols; an answer is {kind(answer)}."
        )
    found = [int(one) for one in numbers]
    found = found[1:] if found[:1] == [BOS] else found
    return found[: found.index(EOS)] if EOS in found else found


def _trial(subject: Any) -> list[Outcome]:
    """The best answer of each decoder."""
    outcome: Outcome = {}
    for seed in SEEDS:
        call = "beam_search(decoder, encoded, width=3, max_length=5)"
        found = attempt(call, _called(subject), ScriptedDecoder(seed))
        if isinstance(found, list) and found and isinstance(found[0], SearchResult):
            found = found[0].hypotheses
        if not isinstance(found, tuple | list) or not found:
            raise FailedError(
                "beam_search should return a list of answers, best first, each a list "
                f"of symbols; it returned {kind(found)}."
            )
        outcome[f"decoder {seed}"] = symbols_of(found[0])
    return [outcome]


def _called(subject: Any) -> Callable[[Decoder], Any]:
    words = inspect.signature(subject).parameters
    if {"width", "max_length"} <= words.keys():
        return lambda decoder: subject(
            decoder, encoded_nothing(), width=WIDTH, max_length=LENGTH
        )
    return lambda decoder: subject(decoder, encoded_nothing(), WIDTH, LENGTH)


def _wrong(mistake: str) -> Callable[..., list[list[int]]]:
    def search(
        decoder: Decoder, encoded: EncoderOutput, width: int, max_length: int
    ) -> list[list[int]]:
        return plain_beam_search(decoder, encoded, width, max_length, mistake=mistake)

    return search


BEAM = {
    "beam_search": Entry(
        right=beam_search,
        trial=_trial,
        mistakes={
            message: _wrong(mistake)
            for mistake, message in {
                "state": "the state is not reordered: each prefix goes on with the "
                "state of another. Reorder it by the rows that the new prefixes "
                "continue.",
                "prefixes": "the prefixes are not reordered: a new symbol is appended "
                "to another prefix than the one it continues.",
                "growing": "finished answers go on growing. Put an answer aside when "
                "it ends with EOS.",
                "unfinished": "finished answers are lost: those that ended with EOS "
                "are the ones to return.",
                "equal rows": "it finds what greedy search finds. Do all rows begin "
                "with the same prefix? At the first step only one row may count.",
                "last": "only the last symbol's log-probability counts. Add it to the "
                "total of its prefix.",
                "worst": "the answers are sorted the wrong way round: the best comes "
                "first.",
            }.items()
        },
        parts=("best answer",),
    ),
}
