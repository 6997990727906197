import pytest
import torch

from seq2seq_lib.bench import Ratio, Timing, compare, ratios, table, threads
from seq2seq_lib.bench.variants import (
    attention_variants,
    recurrent_variants,
    transformer_variants,
)


def test_contenders_take_turns_and_the_first_round_does_not_count():
    order, now = [], 0.0

    def work(name, seconds):
        def run():
            nonlocal now
            # everything is slow at first
            now += seconds if order.count(name) else 100.0
            order.append(name)

        return run

    timings = compare(
        {"a": work("a", 1.0), "b": work("b", 3.0)}, rounds=5, clock=lambda: now
    )
    assert order == ["a", "b"] * 6
    assert timings == {"a": Timing(1.0, 1.0, 1.0), "b": Timing(3.0, 3.0, 3.0)}


def test_quartiles_show_the_spread():
    seconds = iter([9.0, 1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0])
    now = 0.0

    def work():
        nonlocal now
        now += next(seconds)

    timing = compare({"a": work}, rounds=7, clock=lambda: now)["a"]
    assert timing == Timing(median=4.0, low=2.0, high=6.0)


def test_ratios_are_to_the_baseline():
    timings = {"slow": Timing(0.3, 0.2, 0.4), "fast": Timing(0.1, 0.1, 0.1)}
    rows = table(timings, baseline="slow").splitlines()
    assert rows[1].endswith("1.00")
    assert rows[2].endswith("3.00")


def test_a_busy_round_does_not_change_the_ratios():
    seconds = {"slow": [2.0, 20.0, 2.0, 6.0], "fast": [1.0, 10.0, 1.0, 3.0]}
    found = ratios(seconds, baseline="slow")
    assert found == {"slow": Ratio(1.0, 1.0, 1.0), "fast": Ratio(2.0, 2.0, 2.0)}


def test_the_number_of_threads_is_put_back():
    before = torch.get_num_threads()
    with threads(before + 1):
        assert torch.get_num_threads() == before + 1
    assert torch.get_num_threads() == before


def test_too_few_rounds_are_refused():
    with pytest.raises(ValueError, match="rounds=2 of 1 contenders"):
        compare({"a": print}, rounds=2)
    with pytest.raises(ValueError, match="of 0 contenders"):
        compare({})


@pytest.mark.parametrize(
    "contenders",
    [
        attention_variants(rows=2, length=3, width=8),
        recurrent_variants(rows=2, length=3, width=8),
        transformer_variants(rows=2, length=3),
    ],
)
def test_every_contender_can_run(contenders):
    torch.manual_seed(0)
    for work in contenders.values():
        work()
