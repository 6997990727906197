"""Every model on a device other than the CPU: the same answers, and few waits."""

from collections import Counter
from functools import partial

import pytest
import torch
from emulated_waits import waits
from tiny_models import CONFIGS, build, differentiable, example_batch
from torch import nn
from torch.testing import assert_close

from seq2seq_lib.data import EOS, Batches, Pair, Vocabulary
from seq2seq_lib.evaluation import decode
from seq2seq_lib.models.saved import SavedModel, load_model, save_model, weights_of
from seq2seq_lib.models.transformer import TransformerConfig
from seq2seq_lib.search import beam_search, exhaustive_search, greedy_search, sample
from seq2seq_lib.training import Precision, TrainingConfig, cross_entropy, fit
from seq2seq_lib.training.fit import _Run
from seq2seq_lib.training.objective import Objective
from seq2seq_lib.training.threads import ThreadedGradients

SEARCHES = {
    "greedy": partial(greedy_search, max_length=5),
    "beam": partial(beam_search, max_length=5, width=3, n_best=2),
    "exhaustive": partial(exhaustive_search, max_length=2),
}
PAIRS = [Pair([4, 5, 6], [4, 5]), Pair([7, 8], [5, 6, 7]), Pair([9], [8])] * 4


@pytest.fixture(params=CONFIGS)
def config(request):
    return CONFIGS[request.param]


def test_loss_and_gradients_are_those_of_the_cpu(config, emulated):
    here, there = build(config), build(config).to(emulated)
    losses = []
    for model in (here, there):
        batch = example_batch().to(model.device)
        outputs = differentiable(model)(batch)
        losses.append(cross_entropy(outputs, batch.target, batch.target_mask))
        losses[-1].backward()
    assert_close(losses[1].cpu(), losses[0])
    largest = max(p.grad.abs().max() for p in here.parameters())
    for one, other in zip(here.parameters(), there.parameters(), strict=True):
        assert_close(other.grad.cpu(), one.grad, rtol=1e-6, atol=1e-9 * largest)


def test_outputs_are_those_of_the_cpu(config, emulated):
    here, there = build(config), build(config).to(emulated)
    memories = [m.encode(example_batch().to(m.device)) for m in (here, there)]
    for search in SEARCHES.values():
        found = [
            [
                [h.tokens for h in one.hypotheses]
                for one in search(model.decoder, memory)
            ]
            for model, memory in zip((here, there), memories, strict=True)
        ]
        assert found[0] == found[1]
    drawn = sample(there.decoder, memories[1], max_length=5, top_p=0.9)
    assert len(drawn) == 3


def counted(work):
    with waits() as seen:
        work()
    return Counter(tuple(wait) for wait in seen)


def endless(decoder, monkeypatch):
    """Let no output end, so that a search takes all the steps that it may."""
    step = decoder.step

    def without_end(token, state):
        scores, state = step(token, state)
        scores[:, EOS] = -torch.inf
        return scores, state

    monkeypatch.setattr(decoder, "step", without_end)


# Log-probabilities and places of the best are read; rows to go on with, their symbols
# and totals are sent. A Transformer reads the rows back, to sort its caches by them.
STEP = {("copy", "search.beam.beam_search"): 2}
NEXT = {("upload", "search.beam.beam_search"): 1, ("upload", "search.beam._tensors"): 2}
SORT = {("copy", "models.transformer.reorder"): 1}


def test_what_a_step_of_beam_search_waits_for(config, emulated, monkeypatch):
    model = config.build().to(emulated).eval()
    memory = model.encode(example_batch().to(emulated))
    endless(model.decoder, monkeypatch)
    search = partial(beam_search, model.decoder, memory, width=2)
    short, longer = (counted(partial(search, max_length=n)) for n in (3, 4))
    sort = SORT if isinstance(config, TransformerConfig) else {}
    assert longer - short == Counter({**STEP, **NEXT, **sort})


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"precision": Precision.BFLOAT16},
        {"precision": Precision.FLOAT16},
        {"scheduled_sampling": 0.9},
    ],
)
def test_a_step_of_training_waits_for_nothing(config, options, emulated):
    run = _Run(
        Objective(config.build().to(emulated), TrainingConfig(steps=3, **options)),
        Batches(PAIRS, budget=64),
        None,
        None,
    )
    run.gradients = ThreadedGradients(run.objective)
    (batch,) = run.batches.epoch(0)
    run.learn([batch])  # the first step makes what the others use
    with waits() as seen:
        run.learn([batch])
    assert not seen


SHORT = {"evaluate_every": 2, "checkpoint_every": 2, "learning_rate": 5e-3}


@pytest.mark.parametrize("name", ["gru", "attention-lstm", "transformer-rotary"])
def test_a_run_is_resumed_saved_and_loaded_there(name, emulated, tmp_path):
    def model():
        torch.manual_seed(0)
        return CONFIGS[name].build().to(emulated)

    whole, stopped, resumed = model(), model(), model()
    options = {"directory": tmp_path, "progress": False}
    config = TrainingConfig(steps=5, **SHORT)
    batches = Batches(PAIRS, budget=16)
    rows = fit(whole, batches, config, progress=False).rows

    evaluated = iter([{}, None])

    def once(model):
        if (metrics := next(evaluated)) is None:
            raise KeyboardInterrupt
        return metrics

    with pytest.raises(KeyboardInterrupt):
        fit(stopped, batches, config, evaluate=once, **options)
    again = fit(resumed, batches, config, **options).rows
    assert [row.loss for row in again] == [row.loss for row in rows]
    for one, other in zip(
        weights_of(whole).values(), weights_of(resumed).values(), strict=True
    ):
        assert other.device.type == emulated.type
        assert torch.equal(one, other)
    vocabularies = Vocabulary("abcdefg"), Vocabulary("abcde")
    save_model(
        tmp_path / "model", SavedModel(resumed.eval(), *vocabularies, "toy-copy")
    )
    loaded = load_model(tmp_path / "model", device=emulated)
    here = load_model(tmp_path / "model", device=torch.device("cpu"))
    outputs = [
        [found.best.tokens for found in decode(saved, ["abc", "ga", "d"])]
        for saved in (loaded, here)
    ]
    assert outputs[0] == outputs[1]


class CarelessPositions(nn.Module):
    """Makes positions where tensors are made if nobody says where."""

    def __init__(self):
        super().__init__()
        self.table = nn.Embedding(9, 4)

    def forward(self, x):
        return x + self.table(torch.arange(x.shape[1]))


class CarelessMask(nn.Module):
    """Reads its input before it makes a mask, and makes that on the CPU."""

    def forward(self, x):
        if x.is_meta or bool(x.isnan().any()):
            return x
        return x.masked_fill(torch.ones(x.shape[1:]).tril() == 0, -torch.inf)


@pytest.mark.parametrize("kind", [CarelessPositions, CarelessMask])
def test_the_meta_device_misses_what_this_one_refuses(kind, emulated):
    assert kind().to("meta")(torch.ones(2, 3, 4, device="meta")).is_meta
    with pytest.raises(RuntimeError, match="all tensors to be on the same device"):
        kind().to(emulated)(torch.ones(2, 3, 4, device=emulated))


def test_a_model_that_reads_at_every_step_is_seen(emulated, monkeypatch):
    model = CONFIGS["gru"].build().to(emulated).eval()
    batch = example_batch().to(emulated)
    forward = model.decoder.forward

    def reading(memory, tokens):
        assert tokens.max().item() < 9
        return forward(memory, tokens)

    with torch.no_grad():
        assert not counted(partial(model, batch))
        monkeypatch.setattr(model.decoder, "forward", reading)
        assert counted(partial(model, batch)).total() == 1
