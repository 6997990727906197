import pytest
import torch
from torch import nn
from torch.testing import assert_close

from seq2seq_lib.models.recurrent import (
    CellKind,
    GRUCell,
    LSTMCell,
    Pooling,
    Recurrent,
    RNNCell,
    RNNEncoder,
    pool,
    reverse_padded,
    unroll,
)

EXACT = {"rtol": 0, "atol": 1e-10}
CELLS = [(RNNCell, nn.RNNCell), (LSTMCell, nn.LSTMCell), (GRUCell, nn.GRUCell)]
LAYERS = {CellKind.RNN: nn.RNN, CellKind.LSTM: nn.LSTM, CellKind.GRU: nn.GRU}
LENGTHS = torch.tensor([5, 2, 3])
MASK = torch.arange(5) < LENGTHS[:, None]


@pytest.fixture
def inputs():
    return torch.randn(3, 5, 4, dtype=torch.double, requires_grad=True)


@pytest.mark.parametrize("ours, theirs", CELLS)
def test_a_cell_equals_pytorch(ours, theirs, inputs):
    expected = theirs(4, 6, dtype=torch.double)
    cell = ours(4, 6).double()
    cell.copy_from(expected)
    state = tuple(
        torch.randn(3, 6, dtype=torch.double) for _ in cell.start(inputs[:, 0])
    )
    one = expected(inputs[:, 0], state if len(state) > 1 else state[0])
    one = one if isinstance(one, tuple) else (one,)
    for mine, their in zip(cell(inputs[:, 0], state), one, strict=True):
        assert_close(mine, their, **EXACT)
    mine = torch.autograd.grad(cell(inputs[:, 0], state)[-1].sum(), inputs)
    their = torch.autograd.grad(one[-1].sum(), inputs)
    assert_close(mine, their, **EXACT)


@pytest.mark.parametrize("ours, theirs", CELLS)
def test_fresh_cells_are_drawn_as_pytorch_draws_them(ours, theirs):
    mine = torch.cat([p.flatten() for p in ours(200, 100).parameters()])
    their = torch.cat([p.flatten() for p in theirs(200, 100).parameters()])
    assert mine.abs().max() <= 0.1
    assert_close(mine.std(), their.std(), rtol=0.02, atol=0)


@pytest.mark.parametrize(
    "ours, kind",
    [(RNNCell, CellKind.RNN), (LSTMCell, CellKind.LSTM), (GRUCell, CellKind.GRU)],
)
def test_unrolling_equals_packed_pytorch(ours, kind, inputs):
    layer = LAYERS[kind](4, 6, batch_first=True, dtype=torch.double)
    cell = ours(4, 6).double()
    for linear, part in ((cell.input, "ih"), (cell.recurrent, "hh")):
        linear.weight = getattr(layer, f"weight_{part}_l0")
        linear.bias = getattr(layer, f"bias_{part}_l0")
    states, last = unroll(cell, inputs, MASK)
    packed = nn.utils.rnn.pack_padded_sequence(
        inputs, LENGTHS, batch_first=True, enforce_sorted=False
    )
    output, final = layer(packed)
    expected, _ = nn.utils.rnn.pad_packed_sequence(output, batch_first=True)
    assert_close(states[MASK], expected[MASK], **EXACT)
    final = final if isinstance(final, tuple) else (final,)
    for mine, their in zip(last, final, strict=True):
        assert_close(mine, their[0], **EXACT)


@pytest.mark.parametrize("kind", CellKind)
@pytest.mark.parametrize("layers", [1, 3])
@pytest.mark.parametrize("bidirectional", [False, True])
def test_layers_equal_packed_pytorch(kind, layers, bidirectional, inputs):
    expected = LAYERS[kind](
        4,
        3 if bidirectional else 6,
        num_layers=layers,
        bidirectional=bidirectional,
        batch_first=True,
        dtype=torch.double,
    )
    ours = Recurrent(
        kind, inputs=4, width=6, layers=layers, bidirectional=bidirectional
    ).double()
    for number, layer in enumerate(ours.layers):
        for direction, recurrence in zip(("", "_reverse"), layer, strict=False):
            recurrence.load_state_dict(
                {
                    f"{name}_l0": getattr(expected, f"{name}_l{number}{direction}")
                    for name in ("weight_ih", "weight_hh", "bias_ih", "bias_hh")
                }
            )
    packed = nn.utils.rnn.pack_padded_sequence(
        inputs, LENGTHS, batch_first=True, enforce_sorted=False
    )
    output, _ = nn.utils.rnn.pad_packed_sequence(expected(packed)[0], batch_first=True)
    mine = ours(inputs, MASK)
    assert_close(mine[MASK], output[MASK], **EXACT)
    assert_close(
        torch.autograd.grad(mine[MASK].sum(), inputs),
        torch.autograd.grad(output[MASK].sum(), inputs),
        **EXACT,
    )


def test_reversing_twice_changes_nothing(inputs):
    turned = reverse_padded(inputs, MASK)
    assert not torch.equal(turned, inputs)
    assert torch.equal(reverse_padded(turned, MASK), inputs)


def test_summaries_by_hand():
    states = torch.tensor([[[1.0, 8.0], [3.0, 2.0], [9.0, 9.0]]])
    mask = torch.tensor([[True, True, False]])
    assert pool(states, mask, Pooling.LAST).tolist() == [[3, 2]]
    assert pool(states, mask, Pooling.MEAN).tolist() == [[2, 5]]
    assert pool(states, mask, Pooling.MAXIMUM).tolist() == [[3, 8]]
    both = pool(states, mask, Pooling.LAST, bidirectional=True)
    assert both.tolist() == [[3, 8]]  # forward half at the end, backward half at 0


def test_the_last_summary_is_pytorchs_final_state():
    torch.manual_seed(0)
    encoder = RNNEncoder(9, 6).double()
    source = torch.randint(4, 9, (3, 5))
    summary = encoder(source, MASK).summary
    forwards, backwards = encoder.recurrent.layers[0]
    for row, length in enumerate(LENGTHS):
        x = encoder.embedding(source[row, :length])
        expected = torch.cat([forwards(x)[1][0], backwards(x.flip(0))[1][0]])
        assert_close(summary[row], expected, **EXACT)


def test_an_odd_width_cannot_be_shared_by_two_directions():
    with pytest.raises(ValueError, match=r"width=7 does not split .* even"):
        RNNEncoder(9, 7)
