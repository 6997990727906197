"""Chapter 3: recurrent cells from their equations, and the encoder built on PyTorch's.

Axes: B batch, S source, E input width, D state width.
"""

import math
from abc import ABC, abstractmethod
from enum import StrEnum
from typing import ClassVar

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor, nn

from seq2seq_lib.interface import Encoder, EncoderOutput
from seq2seq_lib.models.dropout import Dropout

CellState = tuple[Tensor, ...]


class CellKind(StrEnum):
    """Which recurrence."""

    RNN = "rnn"
    LSTM = "lstm"
    GRU = "gru"


class Pooling(StrEnum):
    """How the states of a source become one vector."""

    LAST = "last"
    MEAN = "mean"
    MAXIMUM = "maximum"


class Cell(nn.Module, ABC):
    """One step of a recurrence; the first entry of its state is its output.

    Args:
        inputs: E, the width of the input.
        width: D, the width of the state.
    """

    gates: ClassVar[int]
    parts: ClassVar[int] = 1

    def __init__(self, inputs: int, width: int) -> None:
        super().__init__()
        self.width = width
        self.input = nn.Linear(inputs, self.gates * width)
        self.recurrent = nn.Linear(width, self.gates * width)
        for parameter in self.parameters():  # PyTorch's own initialisation
            nn.init.uniform_(parameter, -1 / math.sqrt(width), 1 / math.sqrt(width))

    @abstractmethod
    def forward(self, x: Float[Tensor, "B E"], state: CellState) -> CellState:
        """The next state."""

    def start(self, x: Float[Tensor, "B E"]) -> CellState:
        """The state before the first step: all zero."""
        return (x.new_zeros(len(x), self.width),) * self.parts

    def copy_from(self, cell: nn.RNNCellBase) -> None:
        """Take over the weights of PyTorch's cell of the same kind."""
        self.input.load_state_dict({"weight": cell.weight_ih, "bias": cell.bias_ih})
        self.recurrent.load_state_dict({"weight": cell.weight_hh, "bias": cell.bias_hh})


class RNNCell(Cell):
    """h' = tanh(W x + b + U h + c)."""

    gates = 1

    def forward(self, x: Float[Tensor, "B E"], state: CellState) -> CellState:
        """The next state."""
        (hidden,) = state
        return (torch.tanh(self.input(x) + self.recurrent(hidden)),)


class LSTMCell(Cell):
    """Gates decide what the cell forgets, takes in, and outputs.

    c' = f ∘ c + i ∘ g and h' = o ∘ tanh(c'), where the input, forget and output gates
    i, f, o are sigmoids and the candidate g a tanh of W x + b + U h + c.
    """

    gates = 4
    parts = 2

    def forward(self, x: Float[Tensor, "B E"], state: CellState) -> CellState:
        """The next state: the hidden state, which is the output, and the cell."""
        hidden, cell = state
        i, f, g, o = (self.input(x) + self.recurrent(hidden)).chunk(4, dim=-1)
        cell = f.sigmoid() * cell + i.sigmoid() * g.tanh()
        return o.sigmoid() * cell.tanh(), cell


class GRUCell(Cell):
    """An update gate mixes the old state with a candidate.

    h' = (1 − z) ∘ n + z ∘ h with n = tanh(W x + b + r ∘ (U h + c)). The reset gate r
    acts after the product with U, as in cuDNN and PyTorch; Cho et al. (2014) apply
    it before.
    """

    gates = 3

    def forward(self, x: Float[Tensor, "B E"], state: CellState) -> CellState:
        """The next state."""
        (hidden,) = state
        r_x, z_x, n_x = self.input(x).chunk(3, dim=-1)
        r_h, z_h, n_h = self.recurrent(hidden).chunk(3, dim=-1)
        reset, update = (r_x + r_h).sigmoid(), (z_x + z_h).sigmoid()
        candidate = torch.tanh(n_x + reset * n_h)
        return ((1 - update) * candidate + update * hidden,)


def unroll(
    cell: Cell, inputs: Float[Tensor, "B S E"], mask: Bool[Tensor, "B S"]
) -> tuple[Float[Tensor, "B S D"], CellState]:
    """Run a cell along a padded batch; at padding the state does not change.

    Returns:
        the cell's output at every position, and its last state.

    >>> cell = GRUCell(inputs=3, width=2)
    >>> mask = torch.tensor([[True, True, False]])
    >>> states, (last,) = unroll(cell, torch.randn(1, 3, 3), mask)
    >>> bool((last == states[:, 1]).all())
    True
    """
    state = cell.start(inputs[:, 0])
    outputs = []
    for x, real in zip(inputs.unbind(1), mask.unbind(1), strict=True):
        state = tuple(
            torch.where(real[:, None], new, old)
            for new, old in zip(cell(x, state), state, strict=True)
        )
        outputs.append(state[0])
    return torch.stack(outputs, dim=1), state


def reverse_padded(
    x: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"]
) -> Float[Tensor, "B S D"]:
    """Reverse the real part of every row and leave its padding at the end.

    >>> x = torch.tensor([[1.0, 2.0, 3.0, 0.0]])[..., None]
    >>> reverse_padded(x, x[..., 0] != 0).flatten().tolist()
    [3.0, 2.0, 1.0, 0.0]
    """
    positions = torch.arange(x.shape[1], device=x.device)
    mirrored = mask.sum(dim=1, keepdim=True) - 1 - positions  # B S
    index = torch.where(mask, mirrored, positions)
    return x.gather(1, index[..., None].expand_as(x))


class Recurrent(nn.Module):
    """Layers of PyTorch's recurrence whose states do not depend on padding.

    Padding is at the end, so a left-to-right pass reads it only after the real symbols.
    A right-to-left pass reads each row reversed, for the same reason. Nothing has to be
    packed, and no length has to leave the device.

    Args:
        kind: which recurrence.
        inputs: E, the width of the input.
        width: D, the width of the output, both directions together.
        layers: how many layers.
        bidirectional: read in both directions, each with half the width.
        dropout: the share of features dropped between layers.
    """

    def __init__(
        self,
        kind: CellKind,
        *,
        inputs: int,
        width: int,
        layers: int = 1,
        bidirectional: bool = False,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        if bidirectional and width % 2:
            raise ValueError(
                f"width={width} does not split into two directions: pick an even one."
            )
        directions = 2 if bidirectional else 1
        self.dropout = Dropout(dropout)
        self.layers = nn.ModuleList(
            nn.ModuleList(
                torch_recurrence(
                    kind, inputs=width if layer else inputs, width=width // directions
                )
                for _ in range(directions)
            )
            for layer in range(layers)
        )

    def forward(
        self, x: Float[Tensor, "B S E"], mask: Bool[Tensor, "B S"]
    ) -> Float[Tensor, "B S D"]:
        """The last layer's output at every position."""
        for number, layer in enumerate(self.layers):
            x = self.dropout(x) if number else x
            forwards, *backwards = layer.children()
            outputs = [forwards(x)[0]]
            for recurrence in backwards:
                reversed_outputs, _ = recurrence(reverse_padded(x, mask))
                outputs.append(reverse_padded(reversed_outputs, mask))
            x = torch.cat(outputs, dim=-1)  # B S D
        return x


def torch_recurrence(
    kind: CellKind, *, inputs: int, width: int, layers: int = 1, dropout: float = 0.0
) -> nn.RNNBase:
    """PyTorch's own recurrence of this kind, batch first, left to right."""
    recurrence = {CellKind.RNN: nn.RNN, CellKind.LSTM: nn.LSTM, CellKind.GRU: nn.GRU}
    module: nn.RNNBase = recurrence[kind](
        inputs, width, num_layers=layers, dropout=dropout, batch_first=True
    )
    return module


def pool(
    states: Float[Tensor, "B S D"],
    mask: Bool[Tensor, "B S"],
    how: Pooling,
    *,
    bidirectional: bool = False,
) -> Float[Tensor, "B D"]:
    """One vector for a whole source.

    ``LAST`` takes the state after reading everything: the last real position, and for
    the right-to-left half of a bidirectional encoder the first.
    """
    if how is Pooling.MEAN:
        return EncoderOutput.averaged(states, mask).summary
    if how is Pooling.MAXIMUM:
        return states.masked_fill(~mask[..., None], -torch.inf).amax(dim=1)
    last = (mask.sum(dim=1) - 1)[:, None, None].expand(-1, 1, states.shape[2])
    summary = states.gather(1, last)[:, 0]  # B D
    if bidirectional:
        half = states.shape[2] // 2
        summary = torch.cat([summary[:, :half], states[:, 0, half:]], dim=-1)
    return summary


class RNNEncoder(Encoder):
    """Embeds the source and reads it with a recurrence.

    Args:
        symbols: the size of the source vocabulary.
        width: D, the width of embedding and states.
        kind: which recurrence.
        layers: how many layers.
        bidirectional: read in both directions, each with half the width.
        pooling: how the states become one vector.
        dropout: the share of features dropped after the embedding and between layers.
    """

    def __init__(
        self,
        symbols: int,
        width: int,
        *,
        kind: CellKind = CellKind.GRU,
        layers: int = 1,
        bidirectional: bool = True,
        pooling: Pooling = Pooling.LAST,
        dropout: float = 0.0,
    ) -> None:
        super().__init__()
        self.width = width
        self.bidirectional = bidirectional
        self.pooling = pooling
        self.embedding = nn.Embedding(symbols, width)
        self.dropout = Dropout(dropout)
        self.recurrent = Recurrent(
            kind,
            inputs=width,
            width=width,
            layers=layers,
            bidirectional=bidirectional,
            dropout=dropout,
        )

    def forward(
        self, source: Int[Tensor, "B S"], mask: Bool[Tensor, "B S"]
    ) -> EncoderOutput:
        """Encode the source."""
        embedded = self.dropout(self.embedding(source))  # B S D
        states = self.recurrent(embedded, mask)
        summary = pool(states, mask, self.pooling, bidirectional=self.bidirectional)
        return EncoderOutput(states, mask, summary)
