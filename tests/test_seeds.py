import itertools

import torch
from hypothesis import given
from hypothesis import strategies as st

from seq2seq_lib.seeds import generator, mixed_seed

numbers = st.lists(st.integers(0, 2**32 - 1), min_size=1, max_size=3)


@given(numbers)
def test_a_seed_is_one_that_torch_accepts(these):
    assert 0 <= mixed_seed(*these) < 2**63
    torch.Generator().manual_seed(mixed_seed(*these))


def test_neighbours_and_their_order_give_different_seeds():
    seeds = {mixed_seed(*these) for these in itertools.product(range(30), repeat=2)}
    assert len(seeds) == 900


def test_a_seed_is_the_same_on_every_machine():
    assert mixed_seed(3, 1, 4) == 1798932345466327501


def test_generators_repeat_and_leave_the_global_one_alone():
    before = torch.get_rng_state()
    first, again, other = (
        torch.rand(20, generator=generator(*these))
        for these in ((1, 2), (1, 2), (1, 3))
    )
    assert first.equal(again)
    assert not first.equal(other)
    assert torch.get_rng_state().equal(before)
