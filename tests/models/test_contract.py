"""What search and training rely on, proved for every decoder there is."""

import dataclasses

import pytest
import torch
from tiny_models import CONFIGS, build, differentiable, example_batch
from torch.testing import assert_close

from seq2seq_lib.data.batch import Batch
from seq2seq_lib.data.examples import Pair
from seq2seq_lib.interface import ModelConfig
from seq2seq_lib.models.multi_head import MultiHeadAttention
from seq2seq_lib.training.loss import cross_entropy

EXACT = {"rtol": 0, "atol": 1e-10}


@pytest.fixture(params=CONFIGS)
def config(request):
    return CONFIGS[request.param]


@pytest.fixture
def model(config, device):
    # Apple's GPUs have no double precision
    return build(config, torch.float if device.type == "mps" else torch.double).to(
        device
    )


@pytest.fixture
def batch(device):
    return example_batch().to(device)


@pytest.fixture
def exact(device):
    return {"rtol": 1e-4, "atol": 1e-5} if device.type == "mps" else EXACT


def step_by_step(model, memory, tokens):
    state = model.decoder.init_state(memory)
    steps = []
    for token in tokens.unbind(1):
        log_probabilities, state = model.decoder.step(token, state)
        steps.append(log_probabilities)
    return torch.stack(steps, dim=1)


def test_outputs_are_log_probabilities(model, batch, exact):
    total = model(batch).logsumexp(dim=-1)
    assert_close(total, torch.zeros_like(total), **exact)


def test_steps_equal_the_full_pass(model, batch, exact):
    memory = model.encode(batch)
    steps = step_by_step(model, memory, batch.decoder_input)
    assert_close(steps, model(batch), **exact)


def test_steps_may_go_beyond_the_source(model, batch, exact):
    tokens = torch.randint(4, 9, (3, 15), device=batch.source.device)
    memory = model.encode(batch)
    assert_close(
        step_by_step(model, memory, tokens), model.decoder(memory, tokens), **exact
    )


def test_padding_changes_nothing(model, batch, exact):
    def longer(tensor, fill):
        return torch.nn.functional.pad(tensor, (0, 3), value=fill)

    padded = Batch(
        longer(batch.source, 0),
        longer(batch.source_mask, False),
        longer(batch.decoder_input, 0),
        longer(batch.target, 0),
        longer(batch.target_mask, False),
    )
    length = batch.target.shape[1]
    assert_close(model(padded)[:, :length], model(batch), **exact)


def test_what_stands_in_the_padding_changes_nothing(model, batch, exact):
    garbage = torch.where(batch.source_mask, batch.source, 7)
    assert (garbage != batch.source).any()
    changed = dataclasses.replace(batch, source=garbage)
    assert_close(model(changed), model(batch), **exact)


def test_one_row_alone_equals_that_row_in_a_batch(model, batch, exact):
    together = model(batch)
    pairs = [
        Pair(s[m].tolist()[:-1], t[n].tolist()[:-1])
        for s, m, t, n in zip(
            batch.source,
            batch.source_mask,
            batch.target,
            batch.target_mask,
            strict=True,
        )
    ]
    for row, pair in enumerate(pairs):
        alone = model(Batch.from_pairs([pair]).to(batch.source.device))
        assert_close(alone[0], together[row, : alone.shape[1]], **exact)


@pytest.mark.parametrize("t", range(5))
def test_the_future_cannot_change_the_past(model, batch, exact, t):
    tokens = batch.decoder_input.clone()
    tokens[:, t] = torch.where(tokens[:, t] == 8, 7, 8)
    memory = model.encode(batch)
    before = model.decoder(memory, batch.decoder_input)
    after = model.decoder(memory, tokens)
    assert_close(after[:, :t], before[:, :t], **exact)
    assert (after[:, t] - before[:, t]).abs().amax(dim=-1).min() > 1e-6


def test_every_source_symbol_is_felt(model, batch):
    tokens = batch.decoder_input[:, [0] * 7]  # as many steps as the longest source
    before = model.decoder(model.encode(batch), tokens)
    for position in range(5):
        source = batch.source.clone()
        source[0, position] = 9
        memory = model.encode(dataclasses.replace(batch, source=source))
        after = model.decoder(memory, tokens)
        assert (after[0] - before[0]).abs().max() > 1e-3
        assert_close(after[1:], before[1:])


@pytest.mark.parametrize("rows", [[2, 0, 1], [1, 1, 0, 2, 0], [2]])
def test_reorder_then_step_equals_step_then_reorder(model, batch, exact, rows):
    rows = torch.tensor(rows, device=batch.source.device)
    token, following = batch.decoder_input[:, 0], batch.decoder_input[:, 1]
    _, state = model.decoder.step(token, model.decoder.init_state(model.encode(batch)))
    first, after_first = model.decoder.step(following, state)
    second, after_second = model.decoder.step(following[rows], state.reorder(rows))
    assert_close(first[rows], second, **exact)
    # and the states go on alike
    following = batch.decoder_input[:, 2]
    first, _ = model.decoder.step(following[rows], after_first.reorder(rows))
    second, _ = model.decoder.step(following[rows], after_second)
    assert_close(first, second, **exact)


def test_a_step_leaves_the_old_state_as_it_was(model, batch, exact):
    state = model.decoder.init_state(model.encode(batch))
    first, _ = model.decoder.step(batch.decoder_input[:, 0], state)
    model.decoder.step(batch.decoder_input[:, 1], state)
    again, _ = model.decoder.step(batch.decoder_input[:, 0], state)
    assert_close(again, first, **exact)


def without_effect(model):
    """Biases of keys: softmax takes no notice of q·b, the same for every key.

    Where positions are rotary, b is turned by another angle at every key.
    """
    return [
        layer.key.bias
        for layer in model.modules()
        if isinstance(layer, MultiHeadAttention) and layer.rotary is None
    ]


def test_gradients_reach_every_parameter(model, batch):
    differentiable(model)
    with torch.no_grad():  # so that no softmax is certain and no gradient rounding
        for parameter in model.parameters():
            parameter *= 0.3
    loss = cross_entropy(model(batch), batch.target, batch.target_mask)
    loss.backward()
    # an embedding's own rows of symbols that do not occur have no gradient
    idle = {id(bias) for bias in without_effect(model)}
    for name, parameter in model.named_parameters():
        assert parameter.grad is not None, name
        felt = bool(parameter.grad.abs().sum() > 1e-8)
        assert felt == (id(parameter) not in idle), name


def test_gradients_agree_with_finite_differences(config):
    model, batch = build(config), example_batch()
    parameters = dict(model.named_parameters())

    def loss():
        return cross_entropy(model(batch), batch.target, batch.target_mask)

    loss().backward()
    generator = torch.Generator().manual_seed(1)
    direction = {
        n: torch.randn(p.shape, generator=generator, dtype=p.dtype)
        for n, p in parameters.items()
    }
    slope = sum((p.grad * direction[n]).sum() for n, p in parameters.items())
    values = []
    with torch.no_grad():
        for distance in (1e-6, -2e-6):
            for name, parameter in parameters.items():
                parameter += distance * direction[name]
            values.append(loss().item())
    assert (values[0] - values[1]) / 2e-6 == pytest.approx(slope.item(), rel=1e-4)


def test_everything_runs_on_the_meta_device(config):
    model = build(config).to("meta")
    batch = example_batch().to("meta")
    outputs = model(batch)
    assert outputs.shape == (3, 6, 9)
    assert cross_entropy(outputs, batch.target, batch.target_mask).device.type == "meta"
    memory = model.encode(batch)
    state = model.decoder.init_state(memory)
    scores, state = model.decoder.step(batch.decoder_input[:, 0], state)
    rows = torch.zeros(5, dtype=torch.long, device="meta")
    state = state.reorder(rows)
    scores, _ = model.decoder.step(batch.decoder_input[rows, 1], state)
    assert scores.shape == (5, 9)
    assert memory.reorder(rows).states.shape[0] == 5


def test_a_configuration_rebuilds_its_model(config):
    assert ModelConfig.from_json(config.to_json()) == config
    first, second = build(config), build(ModelConfig.from_json(config.to_json()))
    assert [n for n, _ in first.named_parameters()] == [
        n for n, _ in second.named_parameters()
    ]
    assert_close(first(example_batch()), second(example_batch()))
