import json
import math
from functools import partial

import pytest
import torch
from torch.profiler import ProfilerActivity, profile
from torch.utils.flop_counter import FlopCounterMode

from seq2seq_lib.bench import growth
from seq2seq_lib.bench.growing_work import (
    GROWTHS,
    LENGTH,
    WIDTH,
    Axis,
    Growth,
    attention_work,
    beam_work,
    rnn_with_attention,
    training_work,
    transformer,
)
from seq2seq_lib.bench.growth import UPPER, main
from seq2seq_lib.bench.memory import peak_bytes
from seq2seq_lib.bench.power_law import exponent, fit_exponent
from seq2seq_lib.models import fast
from seq2seq_lib.models.transformer import CachedDecoder
from seq2seq_lib.pretrained import read_result, result_text


def flops(work):
    with FlopCounterMode(display=False) as counter:
        work()
    return counter.get_total_flops()


@pytest.mark.parametrize("b", [-0.5, 0.0, 1.0, 1.7, 3.0])
def test_the_fit_recovers_a_known_exponent(b):
    sizes = [3, 10, 40, 500]
    assert exponent(sizes, [0.02 * s**b for s in sizes]) == pytest.approx(b)


def test_the_interval_holds_the_exponent_and_widens_with_the_noise():
    sizes, draws = [16, 32, 64, 128], torch.Generator().manual_seed(0)
    widths = []
    for noise in (0.01, 0.1):
        rounds = [
            [s**1.5 * math.exp(noise * e) for e in torch.randn(15, generator=draws)]
            for s in sizes
        ]
        found = fit_exponent(sizes, rounds)
        assert found.low < found.value < found.high
        assert abs(found.value - 1.5) < 3 * noise
        widths.append(found.high - found.low)
    assert widths[1] > 4 * widths[0]


def test_a_slow_round_moves_the_interval_together():
    # every size is three times slower in the same rounds: the exponent does not care
    rounds = [[s * factor for factor in (1, 3, 1, 3, 1)] for s in (1, 2, 4)]
    assert fit_exponent([1, 2, 4], rounds) == pytest.approx((1.0, 1.0, 1.0))


@pytest.mark.parametrize(
    "sizes, costs, message",
    [
        ([4, 4], [1, 2], "two different sizes"),
        ([1, 2], [1, 2, 3], r"shape \(2,\) and costs of the shape \(3,\)"),
        ([1, 2], [0, 2], "the smallest cost 0"),
    ],
)
def test_a_fit_without_a_line_is_refused(sizes, costs, message):
    with pytest.raises(ValueError, match=message):
        exponent(sizes, costs)


def test_memory_is_what_is_alive_at_once():
    def chain():
        x = torch.zeros(1000)
        for _ in range(5):
            x = x + 1  # old and new together, never more
        view = x.view(10, 100)[2:]  # shares its storage
        return view.T

    assert peak_bytes(chain) == 2 * 4 * 1000


def test_memory_counts_what_the_backward_pass_needs():
    def sines():
        x = torch.zeros(1000, requires_grad=True)
        x.sin().sin().sum().backward()

    # x and its sine are saved, the second sine goes once it is summed. Backward adds
    # a cosine and its product with the gradient of the sum, one number seen as many.
    assert peak_bytes(sines) == 4 * 4 * 1000 + 4 + 4


def profiled_peak(work):
    """The same by another road: what PyTorch's allocator gave and took back."""
    with profile(activities=[ProfilerActivity.CPU], profile_memory=True) as profiler:
        work()
    events = profiler.profiler.kineto_results.events()
    memory = [event for event in events if event.name() == "[memory]"]
    alive = peak = 0
    for event in sorted(memory, key=lambda event: event.start_ns()):
        alive += event.nbytes()
        peak = max(peak, alive)
    return peak


@pytest.mark.parametrize("length", [16, 128])
def test_memory_agrees_with_the_allocator(length, monkeypatch):
    # what oneDNN takes for itself and gives back is not counted
    monkeypatch.setattr(fast, "onednn_is_faster", lambda: False)

    def work():
        attention_work(length, fused=False)()

    counted = peak_bytes(work)
    assert counted == peak_bytes(work)
    # the allocator also sees scalars that kernels use inside
    assert profiled_peak(work) == pytest.approx(counted, abs=64)


@pytest.mark.parametrize("growth", GROWTHS[:2], ids=lambda growth: growth.name)
def test_reading_costs_the_same_for_every_symbol(growth):
    short, middle, long = (flops(growth.make(16 * 2**i)) for i in range(3))
    # in differences: before a GRU's first symbol nothing needs a gradient
    assert long - middle == 2 * (middle - short) > short


def test_attention_costs_every_pair():
    for length in (32, 64):
        # four projections and two products of pairs, each twice again backwards
        forward = 2 * length * 4 * WIDTH**2 + 2 * 2 * length**2 * WIDTH
        assert flops(attention_work(length, fused=False)) == 3 * forward


@pytest.mark.parametrize("fused, power", [(False, 2), (True, 1)])
def test_only_plain_attention_stores_every_pair(fused, power):
    def work(length):
        attention_work(length, fused=fused)()

    few, some, many = (peak_bytes(partial(work, 256 * 2**i)) for i in range(3))
    # weights cancel in the differences
    assert math.log2((many - some) / (some - few)) == pytest.approx(power, abs=0.1)
    assert (many > 4 * 4 * 1024**2) is not fused


@pytest.mark.parametrize("config", [transformer(), rnn_with_attention()])
def test_a_training_step_costs_the_same_for_every_row(config):
    one, three = (flops(training_work(config, rows=rows)) for rows in (1, 3))
    assert one > 0
    assert three == 3 * one


def test_every_symbol_of_the_vocabulary_is_scored_at_every_position():
    rows = 2
    few, some = (
        flops(training_work(transformer(symbols), rows=rows)) for symbols in (50, 150)
    )
    assert some - few == 3 * 2 * rows * LENGTH * WIDTH * 100


@pytest.mark.parametrize("sources, width", [(1, 1), (1, 5), (3, 1), (3, 50)])
def test_a_beam_is_as_many_rows(monkeypatch, sources, width):
    rows = []
    step = CachedDecoder.step

    def counted(self, token, state):
        rows.append(len(token))
        return step(self, token, state)

    monkeypatch.setattr(CachedDecoder, "step", counted)
    (found, *_) = beam_work(width, sources=sources)()
    # first one prefix each, then the whole beam to the last step
    assert rows[0] == sources
    assert len(rows) == LENGTH
    assert rows[2:] == [sources * width] * (LENGTH - 2)
    assert not found.best.finished


def tiny(size):
    x = torch.zeros(size, 100)
    return lambda: x + 1


def test_what_is_measured_is_complete(monkeypatch, tmp_path, capsys):
    monkeypatch.setattr(
        growth,
        "GROWTHS",
        [Growth(axis, "addition", (1, 2, 4, 8), tiny) for axis in Axis],
    )
    threads = torch.get_num_threads()
    path = tmp_path / "new" / "growth.json"
    try:
        main(["--rounds", "3", "--output", str(path)])
    finally:
        torch.set_num_threads(threads)
    found = json.loads(path.read_text(encoding="utf-8"))
    assert [curve["axis"] for curve in found["curves"]] == [axis.value for axis in Axis]
    for curve in found["curves"]:
        assert curve["bytes"] == [800, 1600, 3200, 6400]
        assert curve["memory"] == pytest.approx(1.0)
        assert [len(seconds) for seconds in curve["seconds"]] == [3, 3, 3, 3]
        assert curve["time"]["low"] <= curve["time"]["value"] <= curve["time"]["high"]
    assert f"kept in {path}" in capsys.readouterr().out


def test_names_tell_the_curves_of_an_axis_apart():
    assert len({(growth.axis, growth.name) for growth in GROWTHS}) == len(GROWTHS)
    assert {growth.axis for growth in GROWTHS} == set(Axis)
    assert all(len(growth.sizes) > UPPER for growth in GROWTHS)


def test_the_stored_file_fits_the_code():
    stored = read_result("bench/growth.json")
    assert len(result_text("bench/growth.json")) < 60_000
    assert [(c["axis"], c["name"], tuple(c["sizes"])) for c in stored["curves"]] == [
        (growth.axis.value, growth.name, growth.sizes) for growth in GROWTHS
    ]
    for curve in stored["curves"]:
        upper, seconds = curve["sizes"][-UPPER:], curve["seconds"][-UPPER:]
        assert curve["time"] == pytest.approx(fit_exponent(upper, seconds)._asdict())
        assert {len(rounds) for rounds in curve["seconds"]} == {stored["rounds"]}


def test_an_unknown_result_is_refused():
    with pytest.raises(ValueError, match=r"no result 'bench/gone\.json'"):
        read_result("bench/gone.json")
