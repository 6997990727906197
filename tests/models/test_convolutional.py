import pytest
import torch
from torch.testing import assert_close

from seq2seq_lib.models.convolutional import ConvEncoder


def test_a_layer_by_hand():
    encoder = ConvEncoder(9, 4, layers=1).double()
    source = torch.randint(4, 9, (1, 6))
    states = encoder(source, torch.ones(1, 6, dtype=torch.bool)).states[0]
    embedded = encoder.embedding(source)[0]
    weight, bias = encoder.convolutions[0].weight, encoder.convolutions[0].bias
    framed = torch.cat([torch.zeros(1, 4), embedded, torch.zeros(1, 4)])
    for position in range(6):
        seen = framed[position : position + 3]  # the neighbour on either side
        expected = torch.einsum("oik,ki->o", weight, seen) + bias
        assert_close(states[position], embedded[position] + expected.relu())


@pytest.mark.parametrize("layers, kernel", [(1, 3), (2, 3), (3, 5)])
def test_a_state_sees_its_receptive_field_and_no_more(layers, kernel):
    torch.manual_seed(0)
    encoder = ConvEncoder(9, 16, layers=layers, kernel=kernel).double()
    for parameter in encoder.parameters():
        torch.nn.init.uniform_(parameter, -1, 1)
    source = torch.full((1, 31), 4)
    mask = torch.ones(1, 31, dtype=torch.bool)
    before = encoder(source, mask).states
    source[0, 15] = 5
    changed = (encoder(source, mask).states - before).abs().amax(dim=-1)[0] > 0
    reach = encoder.receptive_field // 2
    assert encoder.receptive_field == 1 + layers * (kernel - 1)
    assert changed.nonzero().flatten().tolist() == list(range(15 - reach, 16 + reach))


def test_an_even_kernel_has_no_middle():
    with pytest.raises(ValueError, match="kernel=4 has no middle: use an odd one"):
        ConvEncoder(9, 4, kernel=4)
