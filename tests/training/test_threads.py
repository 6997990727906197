"""Threads that divide the rows of a batch compute what one thread would."""

import gc
import threading

import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from tiny_models import CONFIGS, build
from torch import nn

from seq2seq_lib.data.batch import Batch
from seq2seq_lib.data.examples import Pair
from seq2seq_lib.models.dropout import Dropout
from seq2seq_lib.seeds import generator
from seq2seq_lib.training import Precision, TrainingConfig
from seq2seq_lib.training.objective import Objective
from seq2seq_lib.training.threads import (
    WORTH_A_THREAD,
    ThreadedGradients,
    real_symbols,
    split_rows,
    whole_batch_module,
)


def batch_of(lengths):
    """Rows with sources and targets of these lengths, all symbols different."""
    random = generator(len(lengths))
    pairs = [
        Pair(
            torch.randint(4, 9, (source,), generator=random).tolist(),
            torch.randint(4, 9, (target,), generator=random).tolist(),
        )
        for source, target in lengths
    ]
    return Batch.from_pairs(pairs)


LARGE = batch_of([(1 + n % 7, 1 + n // 16) for n in range(160)])


@pytest.fixture(autouse=True)
def threads():
    before = torch.get_num_threads()
    torch.set_num_threads(2)
    yield 2
    torch.set_num_threads(before)


def gradients(model, batches, *, whole=False, seed=(0, 0), **training):
    """The loss, the gradients, and whether the rows were divided."""
    model.train()
    model.zero_grad()
    config = TrainingConfig(steps=1, **training)
    engine = ThreadedGradients(Objective(model, config))
    if whole:
        engine.count = 1
        torch.set_num_threads(1)
    one = torch.ones((), dtype=next(model.parameters()).dtype)
    loss = engine.backward(batches, sampling=0.0, seed=seed, scale=one)
    torch.set_num_threads(2)
    found = {name: p.grad for name, p in model.named_parameters()}
    return loss, found, engine._pool is not None


lengths = st.lists(st.tuples(st.integers(1, 9), st.integers(1, 9)), min_size=1)


@given(lengths, st.integers(1, 5))
def test_parts_hold_every_row_once_without_needless_padding(lengths, parts):
    batch = batch_of(lengths)
    cut = split_rows(batch, parts)
    assert len(cut) == min(parts, len(batch))

    def rows(batch):
        return [
            (s[m].tolist(), d[k].tolist(), t[k].tolist())
            for s, m, d, t, k in zip(
                batch.source,
                batch.source_mask,
                batch.decoder_input,
                batch.target,
                batch.target_mask,
                strict=True,
            )
        ]

    assert [row for part in cut for row in rows(part)] == rows(batch)
    for part in cut:
        assert part.source_mask.any(dim=0).all()
        assert part.target_mask.any(dim=0).all()


@given(lengths, st.integers(2, 5))
def test_parts_are_balanced_to_within_a_row(lengths, parts):
    batch = batch_of(sorted(lengths, key=lambda pair: pair[1]))
    longest = int(batch.target_mask.sum(dim=1).max())
    counts = [real_symbols([part]) for part in split_rows(batch, parts)]
    fair = real_symbols([batch]) / len(counts)
    assert (
        all(abs(count - fair) <= longest for count in counts) or len(batch) < 2 * parts
    )


@pytest.mark.parametrize("name", CONFIGS)
def test_gradients_are_those_of_the_whole_batch(name):
    model = build(CONFIGS[name])
    for module in model.modules():
        if isinstance(module, Dropout):
            module.p = 0.0
        if hasattr(module, "dropout") and isinstance(module.dropout, float):
            module.dropout = 0.0
    options = {"label_smoothing": 0.1}
    expected = gradients(model, [LARGE], whole=True, **options)
    loss, found, divided = gradients(model, [LARGE], **options)
    assert divided == (whole_batch_module(model) is None)
    torch.testing.assert_close(loss, expected[0])
    torch.testing.assert_close(found, expected[1])


def test_several_batches_weigh_as_much_as_they_have_symbols():
    model = build(CONFIGS["rnn"])
    for module in model.modules():
        if isinstance(module, Dropout):
            module.p = 0.0
    small = batch_of([(2, 3), (5, 1)])  # is not divided
    pieces = [LARGE, small]
    loss, found, _ = gradients(model, pieces)
    symbols = real_symbols(pieces)
    apart = [gradients(model, [piece], whole=True) for piece in pieces]
    weights = [real_symbols([piece]) / symbols for piece in pieces]
    expected = sum(w * part[0] for w, part in zip(weights, apart, strict=True))
    torch.testing.assert_close(loss, expected)
    for name, gradient in found.items():
        summed = sum(w * part[1][name] for w, part in zip(weights, apart, strict=True))
        torch.testing.assert_close(gradient, summed)


@pytest.mark.parametrize("name", ["transformer", "attention"])
def test_dropout_can_be_repeated_and_differs_between_parts_and_steps(name):
    model = build(CONFIGS[name], torch.float)
    first, again, other = (
        gradients(model, [LARGE], seed=seed) for seed in ((1, 2), (1, 2), (1, 3))
    )
    assert first[2]
    assert first[0] == again[0] != other[0]
    assert all(torch.equal(g, again[1][n]) for n, g in first[1].items())
    # the same rows in both parts, but not the same masks
    rows = Batch.from_pairs([Pair([4, 5, 6], [4, 5, 6])] * WORTH_A_THREAD)
    seen = []
    model.decoder.register_forward_hook(lambda *call: seen.append(call[2].detach()))
    _, _, divided = gradients(model, [rows])
    assert divided
    seen = [outputs for outputs in seen if len(outputs) < len(rows)]
    assert len({outputs[0].sum().item() for outputs in seen}) == len(seen) > 1


class Noisy(nn.Module):
    """Draws from PyTorch's generator, which all threads share."""

    def forward(self, x):
        return nn.functional.dropout(x, 0.5, self.training)


def test_a_model_that_draws_from_the_shared_generator_is_not_divided():
    model = build(CONFIGS["gru"], torch.float)
    model.decoder.output = nn.Sequential(Noisy(), model.decoder.output)
    loss, _, divided = gradients(model, [LARGE])
    assert not divided
    assert loss == gradients(model, [LARGE])[0]
    assert loss == gradients(model, [LARGE], whole=True)[0]  # the probe left no trace


@pytest.mark.parametrize(
    "module, name",
    [(nn.BatchNorm1d(2), "BatchNorm1d"), (nn.LayerNorm(2), None)],
)
def test_modules_that_mix_rows_are_known(module, name):
    assert whole_batch_module(nn.Sequential(module)) == name
    assert whole_batch_module(build(CONFIGS["transformer-batch"])) == "MaskedBatchNorm"


def test_small_batches_are_not_divided():
    model = build(CONFIGS["rnn"])
    assert not gradients(model, [batch_of([(3, 3)] * 8)])[2]


def test_half_precision_reaches_the_threads():
    model = build(CONFIGS["transformer"], torch.float)
    seen = []

    def record(_, inputs, output):
        seen.append((threading.current_thread().name, output.dtype))

    layer = next(m for m in model.encoder.modules() if isinstance(m, nn.Linear))
    layer.register_forward_hook(record)
    gradients(model, [LARGE], precision=Precision.BFLOAT16)
    assert {dtype for _, dtype in seen} == {torch.bfloat16}
    assert sum(name.startswith("rows") for name, _ in seen) > 1


class UnluckyError(Exception):
    pass


def test_an_error_in_a_thread_is_raised():
    model = build(CONFIGS["rnn"])

    def fail(*_):
        if threading.current_thread().name.startswith("rows"):
            raise UnluckyError("out of luck")

    model.encoder.register_forward_hook(fail)
    with pytest.raises(UnluckyError, match="out of luck"):
        gradients(model, [LARGE])


def test_threads_use_one_thread_inside_give_it_back_and_end(threads):
    model = build(CONFIGS["rnn"])
    seen = []
    model.encoder.register_forward_hook(
        lambda *_: seen.append(
            (threading.current_thread().name, torch.get_num_threads())
        )
    )
    assert gradients(model, [LARGE])[2]
    inside = {count for name, count in seen if name.startswith("rows")}
    assert inside == {1}
    assert torch.get_num_threads() == threads
    later = []
    thread = threading.Thread(target=lambda: later.append(torch.get_num_threads()))
    thread.start()
    thread.join()
    assert later == [threads]
    gc.collect()
    for thread in threading.enumerate():
        if thread.name.startswith("rows"):
            thread.join(timeout=10)
            assert not thread.is_alive()


def test_gradients_have_the_layout_of_their_weights():
    # a fused optimizer walks through both as they lie in memory
    model = build(CONFIGS["transformer"], torch.float)
    layer = next(m for m in model.modules() if isinstance(m, nn.Linear))
    weight = layer.weight
    with torch.no_grad():
        weight.set_(weight.T.contiguous().T)
    _, found, divided = gradients(model, [LARGE])
    assert divided
    for name, parameter in model.named_parameters():
        assert found[name].stride() == parameter.stride()
