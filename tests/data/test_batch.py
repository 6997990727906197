import math

import jaxtyping
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st

from seq2seq_lib.data.batch import Batch, Batches, pad, padding_share
from seq2seq_lib.data.examples import Example, Pair, encode_pairs
from seq2seq_lib.data.vocabulary import BOS, EOS, PAD, UNK, Vocabulary
from seq2seq_lib.seeds import generator

numbers = st.lists(st.integers(UNK, 20), min_size=1, max_size=9)
pairs = st.lists(st.builds(Pair, numbers, numbers), min_size=1, max_size=30)


def random_pairs(count, *, seed=0):
    """Pairs with lengths like those of spellings and their pronunciations."""
    random = generator(seed)
    source = torch.randint(3, 17, (count,), generator=random)
    shift = torch.randint(-2, 2, (count,), generator=random)
    return [
        Pair([4] * length, [5] * max(1, length + change))
        for length, change in zip(source.tolist(), shift.tolist(), strict=True)
    ]


def test_one_pair_for_every_reference():
    examples = [
        Example(("a", "b"), (("X",), ("X", "Y"))),
        Example(("b", "?"), (("Y",),)),
    ]
    assert encode_pairs(examples, Vocabulary("ab"), Vocabulary("XY")) == [
        ([4, 5], [4]),
        ([4, 5], [4, 5]),
        ([5, UNK], [5]),
    ]


@given(st.lists(st.lists(st.integers(1, 9), max_size=7), min_size=1, max_size=7))
def test_padding_stands_at_the_end_only(sequences):
    padded = pad(sequences)
    assert padded.shape == (len(sequences), max(map(len, sequences)))
    for row, sequence in zip(padded.tolist(), sequences, strict=True):
        assert row[: len(sequence)] == sequence
        assert set(row[len(sequence) :]) <= {PAD}


@given(pairs)
def test_a_batch_holds_its_pairs(these):
    batch = Batch.from_pairs(these)
    assert len(batch) == len(these)
    for row, (source, target) in enumerate(these):
        real = batch.source[row][batch.source_mask[row]]
        assert real.tolist() == [*source, EOS]
        real = batch.target[row][batch.target_mask[row]]
        assert real.tolist() == [*target, EOS]
    # what is hidden is padding, and padding is hidden
    assert batch.source.eq(PAD).equal(~batch.source_mask)
    assert batch.target.eq(PAD).equal(~batch.target_mask)


@given(pairs)
def test_the_decoder_reads_its_target_one_symbol_late(these):
    batch = Batch.from_pairs(these)
    assert batch.decoder_input[:, 0].eq(BOS).all()
    late = batch.target_mask[:, 1:]  # where the target has a symbol after this one
    assert batch.decoder_input[:, 1:][late].equal(batch.target[:, :-1][late])
    assert not batch.decoder_input.eq(EOS).any() or any(EOS in t for _, t in these)


@given(pairs)
def test_symbols_counts_the_longer_side(these):
    longest = max(max(len(source), len(target)) + 1 for source, target in these)
    assert Batch.from_pairs(these).symbols == len(these) * longest


def test_a_batch_moves_with_all_its_parts(device):
    batch = Batch.from_pairs([Pair([4], [5, 6])]).to(device)
    for part in (
        batch.source_mask,
        batch.decoder_input,
        batch.target,
        batch.target_mask,
    ):
        assert part.device == batch.source.device
    assert batch.source.device.type == device.type
    assert batch.to("cpu").source.tolist() == [[4, EOS]]


@given(pairs, st.integers(10, 60), st.integers(0, 9), st.integers(0, 9))
def test_an_epoch_has_every_pair_once_and_no_batch_above_budget(
    these, budget, seed, epoch
):
    batches = Batches(these, budget=budget, seed=seed)
    plan = batches.plan(epoch)
    assert sorted(row for rows in plan for row in rows) == list(range(len(these)))
    made = list(batches.epoch(epoch))
    assert [len(batch) for batch in made] == [len(rows) for rows in plan]
    assert all(batch.symbols <= budget for batch in made)


@pytest.mark.parametrize("budget, rows", [(5, 1), (9, 1), (10, 2), (50, 10), (999, 23)])
def test_a_batch_is_filled_as_far_as_the_budget_allows(budget, rows):
    plan = Batches([Pair([4, 4], [5] * 4)] * 23, budget=budget).plan(0)
    assert len(plan) == math.ceil(23 / rows)
    assert max(map(len, plan)) == rows


def test_a_long_batch_does_not_make_the_next_one_small():
    long, short = Pair([4] * 9, [5]), Pair([4], [5, 5])
    plan = Batches([long] * 2 + [short] * 6, budget=20).plan(0)
    assert sorted(map(len, plan)) == [2, 6]


def test_the_order_depends_on_seed_and_epoch_only():
    these = random_pairs(200)
    plan = Batches(these, budget=64, seed=1).plan(3)
    assert Batches(these, budget=64, seed=1).plan(3) == plan
    assert Batches(these, budget=64, seed=2).plan(3) != plan
    later = Batches(these, budget=64, seed=1).plan(4)
    assert later != plan
    # not only the batches change places: the pairs do too
    assert {frozenset(rows) for rows in later} != {frozenset(rows) for rows in plan}


def test_the_order_does_not_touch_the_global_generator():
    before = torch.get_rng_state()
    Batches(random_pairs(50), budget=64).plan(0)
    assert torch.get_rng_state().equal(before)


def test_batches_come_in_no_order_of_length():
    these = random_pairs(2000)
    plan = Batches(these, budget=256).plan(0)
    lengths = [len(these[rows[0]].target) for rows in plan]
    assert lengths != sorted(lengths)
    assert lengths != sorted(lengths, reverse=True)


def test_buckets_waste_little_on_padding():
    these = random_pairs(20_000)
    bucketed = padding_share(Batches(these, budget=2048).epoch(0))
    unsorted = padding_share(
        Batch.from_pairs(these[start : start + 128]) for start in range(0, 20_000, 128)
    )
    assert bucketed < 0.05
    assert unsorted > 0.3


@given(pairs)
def test_the_padding_share_by_counting(these):
    batch = Batch.from_pairs(these)
    sources, targets = zip(*these, strict=True)
    real = sum(len(s) + 1 for s in sources) + sum(len(t) + 1 for t in targets)
    total = len(these) * (max(map(len, sources)) + 1 + max(map(len, targets)) + 1)
    assert padding_share([batch]) == pytest.approx(1 - real / total)
    assert padding_share([batch, batch]) == pytest.approx(1 - real / total)


def test_no_pairs():
    with pytest.raises(ValueError, match="at least one pair"):
        Batch.from_pairs([])
    with pytest.raises(ValueError, match="no pairs"):
        Batches([], budget=100)


@pytest.mark.parametrize("pair, side", [(([], [4]), "source"), (([4], []), "target")])
def test_an_empty_side(pair, side):
    with pytest.raises(ValueError, match=f"pair 1 has an empty {side}.*leave it out"):
        Batch.from_pairs([Pair([4], [4]), Pair(*pair)])


@pytest.mark.parametrize("pair", [([4, PAD, 5], [4]), ([4], [PAD])])
def test_padding_inside_a_pair_would_be_hidden(pair):
    with pytest.raises(ValueError, match=r"pair 0 .* holds 0.*<pad>"):
        Batch.from_pairs([Pair(*pair)])


@pytest.mark.parametrize("budget", [3, 0, -1])
def test_a_budget_too_small_for_one_pair(budget):
    with pytest.raises(
        ValueError, match=rf"budget={budget} .* length 4: use at least 4"
    ):
        Batches([Pair([4], [4, 4, 4])], budget=budget)


def parts(**changes):
    """The parts of a small batch, some of them changed."""
    batch = Batch.from_pairs([Pair([4, 5], [5]), Pair([4], [5, 6])])
    return {**vars(batch), **changes}


@pytest.mark.parametrize("mask", ["source_mask", "target_mask"])
def test_a_row_without_a_real_symbol(mask):
    hidden = parts()[mask].clone()
    hidden[1] = False
    with pytest.raises(ValueError, match=f"{mask} hides every symbol of row 1"):
        Batch(**parts(**{mask: hidden}))


@pytest.mark.parametrize(
    "changes, complaint",
    [
        (
            {"source_mask": torch.ones(2, 5, dtype=torch.bool)},
            r"source_mask is \(2, 5\)",
        ),
        (
            {"target_mask": torch.ones(2, 1, dtype=torch.bool)},
            r"target_mask is \(2, 1\)",
        ),
        (
            {"decoder_input": torch.ones(2, 7, dtype=torch.int64)},
            r"is \(2, 7\), target",
        ),
        (
            {
                "source": torch.ones(3, 3, dtype=torch.int64),
                "source_mask": torch.ones(3, 3, dtype=torch.bool),
            },
            "3 sources but 2 targets",
        ),
        (
            {
                "source": torch.ones(2, 0, dtype=torch.int64),
                "source_mask": torch.ones(2, 0, dtype=torch.bool),
            },
            "neither of them 0",
        ),
    ],
)
def test_shapes_that_disagree(changes, complaint, monkeypatch):
    # as readers have it, whose shapes are not checked by jaxtyping
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=complaint):
        Batch(**parts(**changes))


@pytest.mark.parametrize(
    "mask, message",
    [
        (torch.tensor([[True, False, True]]), "behind a hidden one in row 0: padding"),
        (torch.tensor([[False, True, True]]), "behind a hidden one in row 0"),
        (torch.tensor([[1, 1, 0]]), "source_mask has the type torch.int64: expected"),
    ],
)
def test_padding_belongs_at_the_end(mask, message, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    ids = torch.tensor([[4, 5, 6]])
    real = torch.ones(1, 3, dtype=torch.bool)
    with pytest.raises(ValueError, match=message):
        Batch(ids, mask, ids, ids, real)
