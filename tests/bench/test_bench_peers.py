"""Every contender does the same work, or the comparison says nothing."""

import importlib.metadata
import json
import math
import re
import sys
from dataclasses import replace
from pathlib import Path

import needs
import pytest
import torch
from torch.testing import assert_close

from seq2seq_lib.bench.__main__ import BENCHES, main
from seq2seq_lib.bench.baseline import TorchTransformer
from seq2seq_lib.bench.decoding import LENGTH, decoders, endless_model
from seq2seq_lib.bench.peers import PEERS
from seq2seq_lib.bench.peers.stubs import hashable_dataclasses, stubs
from seq2seq_lib.bench.recurrent import recurrent_steps
from seq2seq_lib.bench.report import Comparison, setting
from seq2seq_lib.bench.steps import (
    dictionary_batches,
    our_step,
    turns,
    usual_step,
    with_mkl,
)
from seq2seq_lib.bench.training import bench_config, transformer_steps
from seq2seq_lib.bench.tutorial import Tutorial
from seq2seq_lib.data.batch import Batch, padding_share
from seq2seq_lib.data.examples import Pair
from seq2seq_lib.data.vocabulary import EOS, PAD
from seq2seq_lib.models import fast
from seq2seq_lib.models.rnn_attention import RNNAttentionConfig
from seq2seq_lib.training.loss import cross_entropy

ROOT = Path(__file__).parents[2]
SMALL = replace(
    bench_config(),
    width=16,
    feed_forward=32,
    encoder_layers=1,
    decoder_layers=2,
    heads=2,
)
ADAPTERS = {"nn.Transformer": lambda c: TorchTransformer(c.build()), **PEERS}

# what peers regret about newer versions of PyTorch is not ours to mend
pytestmark = pytest.mark.filterwarnings("default")


def random_pairs(lengths=((3, 4), (7, 6), (5, 2)), seed=0):
    random = torch.Generator().manual_seed(seed)

    def numbers(length, symbols):
        return torch.randint(4, symbols, (length,), generator=random).tolist()

    return [Pair(numbers(s, 30), numbers(t, 43)) for s, t in lengths]


def random_batch(**options):
    return Batch.from_pairs(random_pairs(**options))


def changed(batch, **tensors):
    fields = ("source", "source_mask", "decoder_input", "target", "target_mask")
    return Batch(*(tensors.get(name, getattr(batch, name)) for name in fields))


def build(name, config):
    torch.manual_seed(0)
    try:
        return ADAPTERS[name](config)
    except ImportError as error:
        needs.lacking("another toolkit", f"{name}: {error}")


def build_sensitive(name):
    """Without dropout, and with weights large enough for every input to be felt."""
    peer = build(name, SMALL).train()  # in evaluation fairseq has other paths
    for parameter in peer.parameters():
        if parameter.dim() > 1:
            torch.nn.init.uniform_(parameter, -0.5, 0.5)
    return peer


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_peer_sees_the_same_symbols(name):
    peer = build_sensitive(name)
    batch = random_batch()
    with torch.no_grad():
        loss = peer(batch)
        for field in ("source", "target"):
            other = getattr(batch, field).clone()
            other[1, 2] = 4 + other[1, 2] % 20
            assert not torch.isclose(peer(changed(batch, **{field: other})), loss)


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_peer_gives_the_mean_over_real_symbols(name):
    """Rows alone have no padding, together they have: so padding changes nothing."""
    peer = build_sensitive(name)
    pairs = random_pairs()
    with torch.no_grad():
        together = float(peer(Batch.from_pairs(pairs)))
        alone = [float(peer(Batch.from_pairs([pair]))) for pair in pairs]
    symbols = [len(pair.target) + 1 for pair in pairs]
    weighted = sum(n * loss for n, loss in zip(symbols, alone, strict=True))
    assert together == pytest.approx(weighted / sum(symbols), rel=1e-4)


# OpenNMT-py makes its decoder input from the target itself.
@pytest.mark.parametrize("name", sorted(ADAPTERS.keys() - {"OpenNMT-py"}))
def test_a_peer_cannot_see_the_future(name):
    """The loss of the first symbol does not change with the ones after it."""
    peer = build_sensitive(name)
    batch = random_batch(lengths=((5, 6),))
    other = batch.decoder_input.clone()
    other[0, -1] = 4 + other[0, -1] % 20
    first = batch.target_mask.clone()
    first[:, 1:] = False
    hidden = batch.target.masked_fill(~first, PAD)

    def loss(tokens):
        with torch.no_grad():
            return peer(
                changed(batch, decoder_input=tokens, target=hidden, target_mask=first)
            )

    assert_close(loss(other), loss(batch.decoder_input))


@pytest.mark.parametrize("name", ADAPTERS)
def test_a_peer_learns(name):
    step = usual_step(build(name, SMALL))
    batch = random_batch()
    losses = [step(batch) for _ in range(20)]
    assert losses[-1] < losses[0]


@pytest.mark.parametrize("name", PEERS)
def test_a_peer_has_as_many_weights_as_we_have(name):
    peer = build(name, bench_config())
    peer(random_batch()).backward()  # fairseq has copies that it does not train
    theirs = sum(p.numel() for p in peer.parameters() if p.grad is not None)
    ours = sum(p.numel() for p in bench_config().build().parameters())
    assert theirs == pytest.approx(ours, rel=0.01)


@pytest.mark.parametrize("dropout", [0.0, 0.1])
@pytest.mark.parametrize("name", PEERS)
def test_a_peer_drops_only_when_it_is_told_to(name, dropout):
    peer = build(name, replace(SMALL, dropout=dropout)).train()
    batch = random_batch()
    torch.manual_seed(1)
    first, second = peer(batch), peer(batch)
    assert torch.equal(first, second) == (dropout == 0)


def test_the_baseline_is_our_model():
    model = SMALL.build().double().eval()
    baseline = TorchTransformer(model).eval()
    batch = random_batch()
    ours = cross_entropy(model(batch), batch.target, batch.target_mask)
    assert_close(baseline(batch), ours)


def copy_into(tutorial, model):
    """Give the tutorial's loop the weights of our model."""
    encoder, decoder = tutorial.encoder, tutorial.decoder
    forward, backward = model.encoder.recurrent.layers[0]
    pairs = {
        encoder.embedding: model.encoder.embedding,
        encoder.bridge: model.decoder.bridge.linear,
        decoder.embedding: model.decoder.embedding,
        decoder.attention.query: model.decoder.scores.query,
        decoder.attention.key: model.decoder.scores.key,
        decoder.attention.energy: model.decoder.scores.output,
        decoder.gru: model.decoder.recurrence,
        decoder.output: model.decoder.output,
    }
    for theirs, ours in pairs.items():
        theirs.load_state_dict(ours.state_dict())
    weights = forward.state_dict()
    weights |= {f"{n}_reverse": w for n, w in backward.state_dict().items()}
    encoder.gru.load_state_dict(weights)


def test_the_tutorial_loop_is_our_architecture():
    torch.manual_seed(0)
    config = RNNAttentionConfig(source_symbols=30, target_symbols=43, width=16)
    model = config.build().double().eval()
    tutorial = Tutorial(30, 43, width=16, dropout=0.1).double().eval()
    copy_into(tutorial, model)
    batch = random_batch()
    ours = cross_entropy(model(batch), batch.target, batch.target_mask)
    assert_close(tutorial(batch), ours)
    assert sum(p.numel() for p in tutorial.parameters()) == sum(
        p.numel() for p in model.parameters()
    )


def test_our_step_and_the_usual_one_learn_alike_without_dropout():
    model, batch = SMALL.build(), random_batch()
    usual = usual_step(TorchTransformer(model))
    copy = SMALL.build()
    copy.load_state_dict(model.state_dict())
    ours = our_step(copy)
    for _ in range(3):
        assert ours(batch) == pytest.approx(usual(batch), rel=1e-4)


def test_products_can_be_mkls_for_a_while(monkeypatch):
    monkeypatch.setattr(fast, "onednn_is_faster", lambda: True)
    asked = with_mkl(
        lambda doubled, *, plus: (fast.onednn_is_faster(), 2 * doubled + plus)
    )
    assert asked(3, plus=1) == (False, 7)
    assert fast.onednn_is_faster()


def test_everybody_gets_the_same_batches():
    batches = [random_batch(seed=seed) for seed in range(3)]
    seen = {"a": [], "b": []}
    takers = {n: turns(lambda b, s=s: s.append(b), batches) for n, s in seen.items()}
    for _ in range(4):
        for take in takers.values():
            take()
    assert seen["a"] == seen["b"] == [*batches, batches[0]]


def test_every_step_of_the_benches_runs():
    steps, missing = transformer_steps(replace(SMALL, dropout=0.1))
    steps |= recurrent_steps(width=8)
    assert set(PEERS) <= set(steps) | set(missing)
    for step in steps.values():
        assert math.isfinite(step(random_batch()))


def test_the_batches_are_about_as_large_as_they_claim():
    batches = dictionary_batches(8)
    symbols = sum(int(batch.target_mask.sum()) for batch in batches) / len(batches)
    assert symbols == pytest.approx(4096, rel=0.05)
    assert padding_share(batches) < 0.05


@pytest.mark.parametrize("name", ["training", "recurrent", "decoding"])
def test_a_whole_bench_runs(name, monkeypatch):
    lengths = ((6, 4), (4, 3), (6, 2))
    for module in ("training", "recurrent", "decoding"):
        place = f"seq2seq_lib.bench.{module}"
        monkeypatch.setattr(
            f"{place}.dictionary_batches",
            lambda number: [
                random_batch(lengths=lengths, seed=n) for n in range(number)
            ],
        )
        if module != "recurrent":
            monkeypatch.setattr(
                f"{place}.bench_config", lambda **options: replace(SMALL, **options)
            )
    before = torch.get_num_threads()
    bench, _ = BENCHES[name]
    comparisons = bench(rounds=3)
    assert torch.get_num_threads() == before
    assert len({comparison.name for comparison in comparisons}) == len(comparisons) > 1
    for comparison in comparisons:
        assert all(len(turns) == 3 for turns in comparison.seconds.values())
        assert comparison.ratios[comparison.baseline].median == 1


def test_every_contender_says_sixteen_symbols(tmp_path):
    ready, missing = decoders(SMALL, tmp_path)
    assert {"ours", "nn.Transformer, no cache"} <= set(ready)
    assert not set(ready) & set(missing)
    batch = random_batch(lengths=((6, 2), (4, 2)))
    for decode in ready.values():
        for width in (1, 5):
            said = decode(batch, width)
            assert [len(row) for row in said] == [LENGTH, LENGTH]
            assert not any(EOS in row for row in said)


def test_engines_with_our_weights_say_what_we_say(tmp_path):
    ready, _ = decoders(SMALL, tmp_path)
    batch = random_batch(lengths=((6, 2), (4, 2)))
    same = ("nn.Transformer, no cache", "ONNX Runtime", "CTranslate2 float32")
    for width in (1, 5):
        ours = ready["ours"](batch, width)
        for name in same:
            if name in ready:
                assert ready[name](batch, width) == ours


def test_the_endless_model_is_not_just_repeating_itself():
    saved = endless_model(SMALL)
    assert saved.model.decoder.output.bias[EOS] < -1e8


def test_stubs_go_away_again():
    with stubs("no_such_package"):
        import no_such_package.deep
        from no_such_package import Base

        class Derived(Base.inner):
            pass

    assert Derived
    assert no_such_package.deep
    assert not [name for name in sys.modules if name.startswith("no_such_package")]
    with pytest.raises(ModuleNotFoundError):
        import no_such_package


def test_stubs_leave_what_is_installed():
    with stubs("json"):
        import json as found
    assert found is json


def test_dataclasses_become_hashable_only_where_asked():
    import dataclasses

    with hashable_dataclasses(__name__.partition(".")[0]):

        @dataclasses.dataclass
        class Inner:
            x: int = 0

        @dataclasses.dataclass
        class Outer:
            inner: Inner = Inner()  # noqa: RUF009

    assert Outer().inner == Inner()

    @dataclasses.dataclass
    class Other:
        x: int = 0

    assert Other.__hash__ is None


def fake_bench(*, rounds):
    seconds = {"slow": [2.0] * rounds, "fast": [1.0] * rounds}
    return [Comparison("work", "slow", 1, seconds, {"absent": "No module"})]


def test_a_bench_writes_json_a_table_and_a_figure(tmp_path, monkeypatch, capsys):
    monkeypatch.setitem(BENCHES, "forms", (fake_bench, 5))
    monkeypatch.setattr("seq2seq_lib.bench.__main__.STORE", tmp_path / "store")
    main(["--only", "forms", "--output", str(tmp_path / "out"), "--store"])
    found = json.loads((tmp_path / "out" / "forms.json").read_text())
    (comparison,) = found["comparisons"]
    assert comparison["rounds"] == 5
    assert comparison["contenders"]["fast"]["ratio"]["median"] == 2.0
    assert comparison["missing"] == {"absent": "No module"}
    assert "missing: absent (No module)" in (tmp_path / "out/forms.txt").read_text()
    assert "2.00" in capsys.readouterr().out
    figure = (tmp_path / "out" / "forms-1.svg").read_text()
    assert "<svg" in figure
    stored = (tmp_path / "store" / "forms.json").read_text()
    assert json.loads(stored) == found


def test_the_setting_names_versions():
    versions = setting()["versions"]
    assert versions["torch"] == importlib.metadata.version("torch")


def pins(path):
    text = (ROOT / path).read_text()
    return dict(re.findall(r"(?m)^([\w.-]+)==([\w.]+)", text))


def test_peers_are_pinned_beside_the_same_versions_as_ours():
    ours, theirs = (
        pins("requirements.lock"),
        pins("seq2seq_lib/bench/peers/requirements.txt"),
    )
    both = {name.lower() for name in ours} & {name.lower() for name in theirs}
    assert {"torch", "numpy", "matplotlib"} <= both
    assert {n: theirs[n] for n in both if n in theirs} == {
        n: ours[n] for n in both if n in theirs
    }
    assert {"joeynmt", "d2l", "OpenNMT-py", "fairseq", "transformers"} <= set(theirs)
    assert "torchvision" not in theirs
