"""Cells of chapter 3."""

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from seq2seq_lib.evaluation.blank_page.entry import Entry, Outcome, of_class
from seq2seq_lib.models.recurrent import GRUCell
from seq2seq_lib.seeds import generator

E, D = 5, 3  # width of the input and of the state


class _Cell(nn.Module):
    """The gated cell, with a mistake."""

    def __init__(self, inputs: int, width: int, mistake: str = "") -> None:
        super().__init__()
        self.input = nn.Linear(inputs, 3 * width)
        self.recurrent = nn.Linear(width, 3 * width)
        self.mistake = mistake

    def forward(self, x: Tensor, h: Tensor) -> Tensor:
        """The next state, a wrong one."""
        mistake = self.mistake
        r_x, z_x, n_x = self.input(x).chunk(3, dim=-1)
        r_h, z_h, n_h = self.recurrent(h).chunk(3, dim=-1)
        reset, update = (r_x + r_h).sigmoid(), (z_x + z_h).sigmoid()
        if mistake == "no sigmoid":
            reset, update = r_x + r_h, z_x + z_h
        inner = n_x + reset * n_h
        if mistake == "before":
            size = self.recurrent.out_features // 3
            weight, bias = self.recurrent.weight, self.recurrent.bias
            inner = n_x + (reset * h) @ weight[2 * size :].mT + bias[2 * size :]
        elif mistake == "no reset":
            inner = n_x + n_h
        elif mistake == "whole":
            inner = reset * (n_x + n_h)
        candidate = inner if mistake == "no tanh" else inner.tanh()
        if mistake == "exchanged":
            update = 1 - update
        state: Tensor = (1 - update) * candidate + update * h
        return state


class _Separate(nn.Module):
    """The weights of a cell in one layer for each gate."""

    def __init__(self, cell: GRUCell) -> None:
        super().__init__()
        self.gates = nn.ModuleList()
        for layer in (cell.input, cell.recurrent):
            for weight, bias in zip(
                layer.weight.chunk(3), layer.bias.chunk(3), strict=True
            ):
                gate = nn.Linear(layer.in_features, D)
                gate.load_state_dict({"weight": weight, "bias": bias})
                self.gates.append(gate)


def _ordered(cell: GRUCell, order: str) -> GRUCell:
    """The same weights, with the gates in another order."""
    other = GRUCell(E, D)
    places = torch.tensor(["rzn".index(name) for name in order])
    rows = (places[:, None] * D + torch.arange(D)).flatten()
    for name, weight in cell.state_dict().items():
        other.state_dict()[name].copy_(weight[rows])
    return other


_RANDOM = generator(3)
_ORDERS = ("rzn", "zrn", "nrz", "nzr", "rnz", "znr")
_X, _H = (torch.randn(4, width, generator=_RANDOM) for width in (E, D))


def _layouts(cell: GRUCell) -> list[nn.Module]:
    """The gates in another order, or in layers of their own."""
    return [
        *(_ordered(cell, order) for order in _ORDERS[1:]),
        _Separate(cell),
    ]


def _trial(subject: Any) -> list[Outcome]:
    """Call a cell with a tensor as the state, or else with a tuple of one."""

    def outcomes(state: object) -> list[Outcome]:
        calls = {"a step": (_X, state)}
        return of_class(GRUCell, (E, D), calls, layouts=_layouts)(subject)

    found = outcomes(_H)
    if any(not isinstance(outcome["a step"], Tensor) for outcome in found):
        in_a_tuple = outcomes((_H,))
        if not any(isinstance(one["a step"], Exception) for one in in_a_tuple):
            return in_a_tuple
    return found


def _wrong(mistake: str) -> Callable[[int, int], nn.Module]:
    return lambda inputs, width: _Cell(inputs, width, mistake)


RECURRENT = {
    "GRUCell": Entry(
        right=GRUCell,
        trial=_trial,
        mistakes={
            message: _wrong(mistake)
            for mistake, message in {
                "exchanged": "the update gate is the wrong way round: the new state is "
                "(1 − z) · n + z · h, so that z keeps the old state.",
                "before": "the reset gate acts before the product with U, as in Cho et "
                "al. (2014). In PyTorch and in this course it acts after: "
                "tanh(W x + b + r · (U h + c)).",
                "no reset": "the reset gate is not used in the candidate.",
                "whole": "the reset gate multiplies the input's part too. It acts on "
                "U h + c only.",
                "no tanh": "the candidate has no tanh.",
                "no sigmoid": "the gates have no sigmoid.",
            }.items()
        },
        parts=("state",),
    ),
}
