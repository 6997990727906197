"""Chapter 2: a model on trial, what each test of the contract finds.

Axes: B batch, S source, T target, V vocabulary.
"""

import math
from dataclasses import dataclass
from typing import Any

import torch
from jaxtyping import Bool, Float
from torch import Tensor

from seq2seq_lib.data.batch import Batch
from seq2seq_lib.evaluation.changed_batches import (
    TOLERANCE,
    distance,
    felt,
    keep_rows,
    longer_source,
    longer_target,
)
from seq2seq_lib.interface import reorder

EXTRA = 3  # padded positions that are appended

STEPS = "steps = full pass"
PADDING = "padding changes nothing"
FUTURE = "the future cannot change the past"


@dataclass(frozen=True)
class Finding:
    """What one test measured.

    Attributes:
        name: of the test.
        apart: the largest difference where there should be none.
        message: what is wrong; empty if nothing is.
        rank: of several that are wrong, the lowest is named.
    """

    name: str
    apart: float
    message: str = ""
    rank: int = 0

    def line(self) -> str:
        """Whether the test is passed, without digits that differ between computers."""
        if not self.message:
            return f"{self.name}: yes (differences below {TOLERANCE})"
        if self.apart <= TOLERANCE or math.isinf(self.apart):
            return f"{self.name}: no"
        size = 10.0 ** math.floor(math.log10(self.apart))
        return f"{self.name}: no (differences above {size:g})"


class Trial:
    """A model, a few rows to test it on, and the outputs of its full pass.

    Args:
        encoder: reads the sources.
        decoder: is tested.
        batch: the rows.
        rows: their numbers in the messages.

    Raises:
        AssertionError: the outputs are not such as can be compared.
    """

    def __init__(
        self, encoder: Any, decoder: Any, batch: Batch, rows: list[int]
    ) -> None:
        self.encoder, self.decoder = encoder, decoder
        self.batch, self.rows = batch, rows
        self.outputs = outputs = self.run(batch)
        length = tuple(batch.target.shape)
        fits = isinstance(outputs, Tensor) and outputs.dim() == 3
        _expect(
            fits and outputs.shape[:2] == length,
            f"the decoder's forward returns {_kind(outputs)}: expected a tensor of "
            f"log-probabilities with three axes, batch and target {length} and "
            "vocabulary.",
        )
        broken = outputs.isnan().any(dim=-1) & batch.target_mask
        _expect(
            not broken.any(),
            f"NaN in the decoder's output at {self.place(broken)}. A softmax over "
            "nothing but hidden positions gives NaN: does a mask hide all of them?",
        )
        _expect(
            not felt(distance(self.run(batch), outputs)),
            "the same input gives two different outputs, even in evaluation mode: "
            "something random is at work. Use nn.Dropout, which model.eval() turns "
            "off.",
        )

    def run(self, batch: Batch) -> Any:
        """The full pass, which should give log-probabilities B T V."""
        encoded = self.encoder(batch.source, batch.source_mask)
        return self.decoder(encoded, batch.decoder_input)

    def steps(self) -> Finding:
        """Step by step as in the full pass."""
        batch = self.batch
        encoded = self.encoder(batch.source, batch.source_mask)
        tokens = batch.decoder_input.unbind(1)
        state, parts = self.decoder.init_state(encoded), []
        for position, token in enumerate(tokens):
            answer = self.decoder.step(token, state)
            _expect(
                isinstance(answer, tuple) and len(answer) == 2,
                f"step returns {_kind(answer)}: expected two things, the "
                "log-probabilities of the next symbol and the state after this step.",
            )
            part, state = answer
            shape = tuple(self.outputs[:, 0].shape)
            _expect(
                isinstance(part, Tensor) and part.shape == shape,
                f"step returns {_kind(part)} at position {position}: expected a tensor "
                f"of shape {shape}, batch and vocabulary, as forward gives it.",
            )
            parts.append(part)
        steps = torch.stack(parts, dim=1)  # B T V
        apart = distance(steps, self.outputs).where(batch.target_mask, 0)
        worst = apart.amax().item()
        if not felt(apart):
            return Finding(STEPS, worst, self.reordered(), rank=3)

        fresh = [
            self.decoder.step(token, self.decoder.init_state(encoded))[0]
            for token in tokens
        ]
        logits = distance(steps.log_softmax(-1), self.outputs.log_softmax(-1))
        if not felt(distance(torch.stack(fresh, dim=1), steps)):
            why = (
                "Every step gives what a first step would give: does step return the "
                "new state, and does it read the state that it is given?"
            )
        elif not felt(logits.where(batch.target_mask, 0)):
            why = (
                "Both agree after log_softmax: one of them returns logits, the other "
                "log-probabilities."
            )
        elif felt(apart[:, 0]):
            why = "They differ from the first step on: compare init_state with forward."
        else:
            why = (
                "The first step is right: does the state hold all that forward knows "
                "of the symbols before, such as their position?"
            )
        message = (
            f"steps and full pass differ: at {self.place(apart > TOLERANCE)} step "
            f"gives another output than forward. {why}"
        )
        return Finding(STEPS, worst, message, rank=3)

    def reordered(self) -> str:
        """What is wrong when rows change places between two steps."""
        batch = self.batch
        if batch.target.shape[1] < 2:
            return ""
        rows = torch.arange(len(batch), device=batch.source.device).flip(0)
        rows = torch.cat([rows, rows[:1]])  # another order, and one row twice
        first, second = batch.decoder_input[:, 0], batch.decoder_input[rows, 1]
        encoded = self.encoder(batch.source, batch.source_mask)
        _, state = self.decoder.step(first, self.decoder.init_state(encoded))
        wanted, real = self.outputs[rows, 1], batch.target_mask[rows, 1]
        try:
            part, _ = self.decoder.step(second, reorder(state, rows))
            if not felt(distance(part, wanted).where(real, 0)):
                return ""
        except (IndexError, RuntimeError, ValueError):  # sizes that do not fit
            pass
        return (
            "the state does not follow its rows: when rows change places between two "
            "steps, as they do in a search, the next step goes wrong. Keep all that "
            "belongs to a row in the state, with the batch as the first axis of every "
            "tensor."
        )

    def padding(self) -> Finding:
        """Padding behind source or target changes nothing, nor do the other rows."""
        batch, length = self.batch, self.outputs.shape[1]
        found = []
        for side, change in (("source", longer_source), ("target", longer_target)):
            padded = change(batch, EXTRA)
            apart = distance(self.run(padded)[:, :length], self.outputs)
            apart = apart.where(batch.target_mask, 0)
            why = self.where_padding_enters(padded) if side == "source" else ""
            message = (
                f"padding felt: {EXTRA} padded positions behind the {side} change the "
                f"output at {self.place(apart > TOLERANCE)}.{why}"
            )
            found.append((apart, message, 1 if side == "source" else 2))
        found.append((*self.alone(), 2))
        worst = max(apart.amax().item() for apart, _, _ in found)
        for apart, message, rank in found:
            if felt(apart):
                return Finding(PADDING, worst, message, rank)
        return Finding(PADDING, worst)

    def where_padding_enters(self, padded: Batch) -> str:
        """Whether the encoder feels it, or only the decoder."""
        batch, length = self.batch, self.batch.source.shape[1]
        before = self.encoder(batch.source, batch.source_mask)
        after = self.encoder(padded.source, padded.source_mask)
        states = distance(after.states[:, :length], before.states)
        states = states.where(batch.source_mask, 0)
        summaries = distance(after.summary, before.summary)
        for name, apart in (("state", states), ("summary", summaries)):
            if felt(apart):
                row = self.rows[int((apart > TOLERANCE).nonzero()[0][0])]
                return (
                    f" The encoder's {name} of row {row} has changed already: does "
                    "the encoder use its mask everywhere?"
                )
        return (
            " The encoder's real states are the same, so it is the decoder that reads "
            "the padding: does it use the encoder's mask?"
        )

    def alone(self) -> tuple[Float[Tensor, "B T"], str]:
        """How far each row alone is from that row in its batch, and why."""
        apart = torch.zeros(self.outputs.shape[:2], device=self.outputs.device)
        message = ""
        for row in range(len(self.batch)):
            one = keep_rows(self.batch, [row])
            length = one.target.shape[1]
            wanted = self.outputs[row, :length]
            apart[row, :length] = distance(self.run(one)[0], wanted)
            if message or not felt(apart[row]):
                continue
            more = self.batch.source.shape[1] - one.source.shape[1]
            as_long = longer_source(one, more)
            because = (
                "it feels the other rows"
                if felt(distance(self.run(as_long)[0], wanted))
                else "padding felt, that behind its source"
            )
            message = (
                f"row {self.rows[row]} alone gives another output than in its batch, "
                f"first at {self.place(apart > TOLERANCE)}: {because}."
            )
        return apart, message

    def future(self) -> Finding:
        """Another symbol at a position changes later outputs, and no earlier one."""
        batch = self.batch
        encoded = self.encoder(batch.source, batch.source_mask)
        symbols = sorted(set(batch.target[batch.target_mask].tolist()))[:4]
        worst, leak, deaf = 0.0, "", ""
        for position in range(batch.target.shape[1]):
            real = batch.target_mask[:, position]
            noticed = False
            for symbol in symbols:
                changed = batch.decoder_input.clone()
                changed[real, position] = symbol
                apart = distance(self.decoder(encoded, changed), self.outputs)
                apart = apart.where(batch.target_mask, 0)
                noticed = noticed or felt(apart[:, position:])
                past = apart[:, :position]
                if not felt(past):
                    continue
                worst = max(worst, past.amax().item())
                leak = leak or (
                    f"causal leak: another symbol at position {position} of the "
                    "decoder's input changes the output at "
                    f"{self.place(past > TOLERANCE)}. What comes later must not change "
                    "an earlier output: hide it, for example with a causal mask."
                )
            if not noticed:
                deaf = deaf or (
                    f"the decoder ignores its input: another symbol at position "
                    f"{position} changes no output there or later. Does forward use "
                    "the symbols that it is given, with weights other than zero?"
                )
        if leak:
            return Finding(FUTURE, worst, leak, rank=0)
        return Finding(FUTURE, worst, deaf, rank=4)

    def place(self, wrong: Bool[Tensor, "B T"]) -> str:
        """The first position of the first row where something is wrong."""
        places = wrong.nonzero().tolist()
        if not places:
            return "no position"
        row, position = places[0]
        return f"position {position} (row {self.rows[row]})"


def _expect(condition: object, message: str) -> None:
    if not condition:
        raise AssertionError(message)


def _kind(value: object) -> str:
    if isinstance(value, Tensor):
        return f"a tensor of shape {tuple(value.shape)}"
    if isinstance(value, tuple):
        return f"a tuple of {len(value)}"
    return f"a {type(value).__name__}"
