import copy
import math

import pytest
import torch
from torch.testing import assert_close

from seq2seq_lib.models.positional import (
    LearnedPositions,
    PositionKind,
    Rotary,
    Sinusoids,
    make_positions,
    rotate,
    shift_matrix,
    sinusoids,
)


@pytest.fixture(autouse=True)
def double():
    torch.set_default_dtype(torch.double)
    yield
    torch.set_default_dtype(torch.float)


EXACT = {"rtol": 0, "atol": 1e-10}


def test_sinusoids_by_the_papers_formula():
    table = sinusoids(50, 8)
    for position in (0, 1, 7, 49):
        for pair in range(4):
            angle = position / 10000 ** (2 * pair / 8)
            assert table[position, 2 * pair].item() == pytest.approx(math.sin(angle))
            assert table[position, 2 * pair + 1].item() == pytest.approx(
                math.cos(angle)
            )


@pytest.mark.parametrize("distance", [-3, 0, 1, 5, 40])
def test_one_rotation_shifts_every_position(distance):
    table, matrix = sinusoids(100, 8), shift_matrix(distance, 8)
    start = range(max(0, -distance), 100 - max(0, distance))
    for position in start:
        assert_close(matrix @ table[position], table[position + distance], **EXACT)
    assert_close(matrix @ matrix.mT, torch.eye(8), **EXACT)


def test_rotary_scores_depend_on_the_distance_only():
    rotary = Rotary(6, 4)  # and it grows when it must
    query, key = torch.randn(6), torch.randn(6)
    queries = rotary(query.expand(1, 1, 30, 6))[0, 0]
    keys = rotary(key.expand(1, 1, 30, 6))[0, 0]
    scores = queries @ keys.mT
    for distance in range(-20, 21, 5):
        diagonal = scores.diagonal(distance)
        assert_close(diagonal, diagonal[0].expand_as(diagonal), **EXACT)
    assert_close(scores[3, 3], query @ key, **EXACT)
    assert (scores[0] - scores[0, 0]).abs().max() > 1e-3


@pytest.mark.parametrize("start", [0, 3, 290])
def test_rotary_positions_can_start_anywhere(start):
    rotary, x = Rotary(6), torch.randn(2, 3, start + 4, 6)
    assert_close(rotary(x)[:, :, start:], rotary(x[:, :, start:], start=start), **EXACT)


@pytest.mark.parametrize("kind", PositionKind)
def test_positions_can_start_anywhere(kind):
    positions, x = make_positions(kind, 8, 20), torch.randn(2, 9, 8)
    assert_close(positions(x)[:, 4:], positions(x[:, 4:], start=4), **EXACT)
    told = positions(torch.zeros(1, 9, 8))[0]
    if kind in (PositionKind.SINUSOIDAL, PositionKind.LEARNED):
        assert torch.pdist(told).min() > 0.1  # no two positions look alike
    else:
        assert not told.any()


def test_a_sinusoidal_table_grows_and_is_not_saved():
    positions = Sinusoids(8, 4)
    assert_close(positions(torch.zeros(1, 11, 8))[0], sinusoids(11, 8), **EXACT)
    assert not positions.state_dict()
    assert not list(positions.parameters())


def test_a_position_never_learned_is_refused():
    positions = LearnedPositions(8, 4)
    with pytest.raises(ValueError, match=r"position 4 was never learned: .* has 4"):
        positions(torch.zeros(1, 5, 8))
    with pytest.raises(ValueError, match=r"longest=6"):
        positions(torch.zeros(1, 1, 8), start=5)


def test_an_odd_width_has_no_pairs():
    with pytest.raises(ValueError, match="width=7: sines and cosines come in pairs"):
        sinusoids(3, 7)


def test_tables_follow_the_model_to_its_device():
    for module in (Sinusoids(8, 4), Rotary(8)):
        assert all(b.device.type == "meta" for b in module.to("meta").buffers())
        assert list(module.buffers())


@pytest.mark.parametrize("start", [0, 3])
def test_rotating_is_turning_complex_numbers(start):
    x = torch.randn(2, 3, 7, 6)
    steps = torch.arange(start, start + 7)[:, None]
    angles = steps / 10000 ** (torch.arange(0, 6, 2) / 6)
    pairs = torch.view_as_complex(x.view(2, 3, 7, 3, 2))
    turned = torch.view_as_real(pairs * torch.polar(torch.ones(7, 3), angles))
    assert_close(rotate(x, start), turned.flatten(-2), **EXACT)
    assert_close(Rotary(6, 4)(x, start=start), turned.flatten(-2), **EXACT)


@pytest.mark.parametrize("module, shape", [(Sinusoids(8, 4), ()), (Rotary(8, 4), (2,))])
@pytest.mark.parametrize("dtype", [torch.double, torch.float])
def test_a_table_that_grew_in_a_search_can_be_trained_with(module, shape, dtype):
    module = copy.deepcopy(module).to(dtype)
    x = torch.randn(1, *shape, 9, 8, dtype=dtype)
    with torch.inference_mode():
        module(x)
    assert not any(table.is_inference() for table in module.buffers())
    x.requires_grad_()
    module(x).square().sum().backward()
    assert x.grad.abs().sum() > 0
