"""Chapter 2: the contract without a network, two tables looked up step by step.

The encoder keeps each letter as it is. The decoder moves along the source, one letter
per step, and adds two scores: how the letter sounds, and what tends to follow the
sound it generated last.

Axes: B batch, S source, T target, D source symbols, V target symbols, R rows kept.
"""

from dataclasses import dataclass

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn
from torch.nn import functional as F

from seq2seq_lib.interface import (
    Decoder,
    DecoderState,
    Encoder,
    EncoderDecoder,
    EncoderOutput,
    SymbolsConfig,
)


class OneHotEncoder(Encoder):
    """Writes every source symbol as a one in a row of zeros; nothing is learned.

    Args:
        symbols: D, the size of the source vocabulary.
    """

    def __init__(self, symbols: int) -> None:
        super().__init__()
        self.width = symbols

    def forward(
        self, source: Int[Tensor, "B S"], mask: Bool[Tensor, "B S"]
    ) -> EncoderOutput:
        """Encode the source; the summary counts how often each symbol occurs."""
        one_hot = F.one_hot(source, self.width) * mask[..., None]  # B S D
        states = one_hot.to(torch.get_default_dtype())
        return EncoderOutput(states, mask, states.sum(dim=1))


@dataclass(frozen=True)
class LookupState(DecoderState):
    """The encoded source, and how many symbols were generated so far."""

    encoded: EncoderOutput
    position: int

    def reorder(self, rows: Int[Tensor, " R"]) -> "LookupState":
        """Keep these batch rows, in this order."""
        return LookupState(self.encoded.reorder(rows), self.position)


class LookupDecoder(Decoder):
    """Scores the next sound by the current letter and by the sound before.

    log p(y_t | x, y_<t) = log softmax(letter[x_t] + previous[y_{t-1}]); after the
    last letter of the source it stays at that one.

    Args:
        source_symbols: D, the size of the source vocabulary.
        target_symbols: V, the size of the target vocabulary.
    """

    def __init__(self, source_symbols: int, target_symbols: int) -> None:
        super().__init__()
        self.encoder_width = source_symbols
        self.letter = nn.Parameter(torch.zeros(source_symbols, target_symbols))
        self.previous = nn.Parameter(torch.zeros(target_symbols, target_symbols))

    def init_state(self, encoded: EncoderOutput) -> LookupState:
        """The state before the first step: at the first letter."""
        return LookupState(encoded, position=0)

    def step(
        self, token: Int[Tensor, " B"], state: DecoderState
    ) -> tuple[Float[Tensor, "B V"], LookupState]:
        """Look up the current letter and the last sound."""
        assert isinstance(state, LookupState)
        positions = torch.full((1,), state.position, device=token.device)
        log_probabilities = self._look_up(state.encoded, token[:, None], positions)
        return log_probabilities[:, 0], LookupState(state.encoded, state.position + 1)

    def forward(
        self, encoded: EncoderOutput, tokens: Int[Tensor, "B T"]
    ) -> Float[Tensor, "B T V"]:
        """All steps at once."""
        positions = torch.arange(tokens.shape[1], device=tokens.device)
        return self._look_up(encoded, tokens, positions)

    def _look_up(
        self,
        encoded: EncoderOutput,
        tokens: Int[Tensor, "B T"],
        positions: Int[Tensor, " T"],
    ) -> Float[Tensor, "B T V"]:
        last = encoded.mask.sum(dim=1) - 1
        at = torch.minimum(positions, last[:, None])  # B T
        letters = encoded.states.gather(  # B T D
            1, at[..., None].expand(-1, -1, encoded.states.shape[2])
        )
        sounds = letters.to(self.letter.dtype) @ self.letter  # B T V
        return (sounds + self.previous[tokens]).log_softmax(dim=-1)


@dataclass(frozen=True, kw_only=True)
class LookupConfig(SymbolsConfig):
    """Sizes of the two tables."""

    def build(self) -> EncoderDecoder:
        """A model whose tables are all zero."""
        return EncoderDecoder(
            OneHotEncoder(self.source_symbols),
            LookupDecoder(self.source_symbols, self.target_symbols),
            config=self,
        )
