import importlib
import json
import math

import pytest
import torch
from tiny_models import CONFIGS, build

from seq2seq_lib.data.batch import Batches
from seq2seq_lib.data.examples import Pair
from seq2seq_lib.evaluation import encode_sources
from seq2seq_lib.models.attention import ScoreKind
from seq2seq_lib.models.normalization import NormKind, NormOrder
from seq2seq_lib.models.positional import PositionKind
from seq2seq_lib.models.recurrent import CellKind
from seq2seq_lib.models.rnn_attention import RNNAttentionConfig
from seq2seq_lib.models.rnn_seq2seq import EncoderKind, RNNSeq2SeqConfig
from seq2seq_lib.models.saved import read_tensors, weights_of, write_tensors
from seq2seq_lib.models.self_attention import SelfAttentionConfig
from seq2seq_lib.models.transformer import TransformerConfig
from seq2seq_lib.search import greedy_search
from seq2seq_lib.seeds import generator
from seq2seq_lib.training import History, Precision, TrainingConfig, fit
from seq2seq_lib.training.state import CHECKPOINT, RUN_FORMAT


def reversals(count=600, longest=3, symbols=5, seed=0):
    random = generator(seed)
    pairs = []
    for _ in range(count):
        length = int(torch.randint(1, longest + 1, (1,), generator=random))
        source = torch.randint(4, 4 + symbols, (length,), generator=random).tolist()
        pairs.append(Pair(source, source[::-1]))
    return pairs


def small_model(seed=0, **options):
    torch.manual_seed(seed)
    sizes = {"source_symbols": 9, "target_symbols": 9, "width": 16}
    return RNNSeq2SeqConfig(**(sizes | options)).build()


def small_batches(seed=0):
    return Batches(reversals(), budget=128, seed=seed)


SHORT = {"steps": 12, "evaluate_every": 5, "checkpoint_every": 4, "learning_rate": 5e-3}


def same_weights(one, other):
    ours, theirs = weights_of(one), weights_of(other)
    return all(torch.equal(ours[name], theirs[name]) for name in ours)


SIZES = {"source_symbols": 9, "target_symbols": 9, "width": 64, "dropout": 0.0}
BLOCKS = {"encoder_layers": 1, "decoder_layers": 1, "feed_forward": 128}
LEARNERS = {
    **{cell.value: RNNSeq2SeqConfig(**SIZES, cell=cell) for cell in CellKind},
    "convolutional": RNNSeq2SeqConfig(
        **SIZES, encoder=EncoderKind.CONVOLUTIONAL, layers=3
    ),
    **{
        f"attention {kind}": RNNAttentionConfig(**SIZES, scores=kind)
        for kind in ScoreKind
    },
    **{
        f"transformer {kind}": TransformerConfig(**SIZES, **BLOCKS, positions=kind)
        for kind in (PositionKind.SINUSOIDAL, PositionKind.LEARNED, PositionKind.ROTARY)
    },
    **{
        f"transformer {order} {norm}": TransformerConfig(
            **SIZES, **BLOCKS, order=order, norm=norm
        )
        for order in NormOrder
        # batch norm shows a decoder its future in training: chapter 8
        for norm in (NormKind.NONE, NormKind.LAYER)
    },
}


def shares_right(config, device):
    """How many unseen sequences a model says backwards, or with the right letters."""
    torch.manual_seed(0)
    model = config.build().to(device)
    training = TrainingConfig(
        steps=300, learning_rate=5e-3, evaluate_every=300, warmup=30
    )
    fit(model, Batches(reversals(3000), budget=512), training, progress=False)
    unseen = reversals(200, seed=1)
    found = greedy_search(
        model.decoder, encode_sources(model, [p.source for p in unseen]), max_length=9
    )
    said = [list(f.best.tokens) for f in found]
    right = [s == pair.target for s, pair in zip(said, unseen, strict=True)]
    letters = [
        sorted(s) == sorted(pair.target) for s, pair in zip(said, unseen, strict=True)
    ]
    return sum(right) / len(right), sum(letters) / len(letters)


@pytest.mark.parametrize("name", LEARNERS)
def test_every_model_learns_to_reverse(name, real_device):
    assert shares_right(LEARNERS[name], real_device)[0] > 0.9


BLIND = {
    "self-attention": SelfAttentionConfig(**SIZES, layers=2),
    "transformer without positions": TransformerConfig(
        **SIZES, **BLOCKS, positions=PositionKind.NONE
    ),
}


@pytest.mark.parametrize("name", BLIND)
def test_attention_without_positions_cannot_reverse(name, real_device):
    # it can only guess among the orders of the same letters: about half are of one
    # letter, or of two and three equal ones, and of two orders one is right
    backwards = [p.source == p.target for p in reversals(200, seed=1)]
    palindromes = sum(backwards) / len(backwards)
    right, letters = shares_right(BLIND[name], real_device)
    assert letters > 0.75  # it has learned which letters there are
    assert right < palindromes + (1 - palindromes) * 0.7  # but not their order


def test_a_run_can_be_repeated_and_leaves_global_randomness_alone():
    models = [small_model(), small_model()]
    histories = []
    for number, model in enumerate(models):
        torch.manual_seed(number)
        before = torch.get_rng_state()
        history = fit(model, small_batches(), TrainingConfig(**SHORT), progress=False)
        histories.append([row.loss for row in history.rows])
        assert torch.equal(torch.get_rng_state(), before)
    assert same_weights(*models)
    assert histories[0] == histories[1]
    other = small_model()
    fit(other, small_batches(), TrainingConfig(**SHORT, seed=1), progress=False)
    assert not same_weights(models[0], other)  # another seed, another dropout


def test_an_evaluation_that_draws_numbers_does_not_change_the_run():
    quiet, noisy = small_model(), small_model()

    def draw(_):
        return {"noise": torch.rand(()).item()}

    fit(quiet, small_batches(), TrainingConfig(**SHORT), progress=False)
    fit(noisy, small_batches(), TrainingConfig(**SHORT), evaluate=draw, progress=False)
    assert same_weights(quiet, noisy)


class StoppedError(Exception):
    pass


@pytest.mark.parametrize("precision", [Precision.FLOAT32, Precision.FLOAT16])
@pytest.mark.parametrize("stop_at", [3, 5, 9, 11])
def test_a_stopped_run_goes_on_as_if_nothing_had_happened(
    tmp_path, monkeypatch, stop_at, precision
):
    config = TrainingConfig(
        **SHORT, monitor="loss", scheduled_sampling=0.5, precision=precision
    )

    def evaluate(model):
        return {"loss": float(next(model.parameters()).detach().sum())}

    unbroken = small_model()
    expected = fit(unbroken, small_batches(), config, evaluate=evaluate, progress=False)

    calls = 0
    original = torch.optim.AdamW.step

    def step(self, *args, **kwargs):
        nonlocal calls
        calls += 1
        if calls == stop_at:
            raise StoppedError
        return original(self, *args, **kwargs)

    options = {"evaluate": evaluate, "directory": tmp_path, "progress": False}
    with monkeypatch.context() as patch:
        patch.setattr(torch.optim.AdamW, "step", step)
        with pytest.raises(StoppedError):
            fit(small_model(), small_batches(), config, **options)
    # a checkpoint brings its own weights; before the first one the run starts over
    model = small_model(seed=5 if stop_at > 4 else 0)
    history = fit(model, small_batches(), config, **options)
    assert same_weights(model, unbroken)
    assert history.best == expected.best
    seconds = [row.seconds for row in history.rows]
    assert seconds == sorted(seconds)  # time goes on where it stopped
    assert [(r.step, r.epoch, r.loss, r.metrics) for r in history.rows] == [
        (r.step, r.epoch, r.loss, r.metrics) for r in expected.rows
    ]
    again = small_model(seed=6)  # a finished run has nothing left to do
    assert len(fit(again, small_batches(), config, **options).rows) == len(history.rows)
    assert same_weights(again, unbroken)


def test_a_stopped_run_of_summed_up_batches_goes_on(tmp_path):
    # a checkpoint after every update, also where an epoch ends with an odd batch
    config = TrainingConfig(**(SHORT | {"checkpoint_every": 1}), accumulate=3)
    unbroken, model = small_model(), small_model()
    fit(unbroken, small_batches(), config, progress=False)
    calls = 0

    def stop(*_):
        nonlocal calls
        calls += 1
        if calls % 11 == 0:
            raise StoppedError

    model.encoder.register_forward_hook(stop)
    while True:
        try:
            fit(model, small_batches(), config, directory=tmp_path, progress=False)
            break
        except StoppedError:
            continue
    assert calls > 33
    assert same_weights(model, unbroken)


def test_the_best_weights_are_kept_and_patience_ends_the_run():
    losses = iter([3.0, 1.0, 2.0, 2.0, 0.0])
    seen = []

    def evaluate(model):
        seen.append({n: t.clone() for n, t in weights_of(model).items()})
        return {"wer": next(losses)}

    model = small_model()
    config = TrainingConfig(steps=50, evaluate_every=5, monitor="wer", patience=2)
    history = fit(model, small_batches(), config, evaluate=evaluate, progress=False)
    assert [row.metrics["wer"] for row in history.rows] == [3.0, 1.0, 2.0, 2.0]
    assert history.best == 1
    assert history.metric("wer") == [3.0, 1.0, 2.0, 2.0]
    assert all(torch.equal(t, seen[1][n]) for n, t in weights_of(model).items())


def test_a_metric_may_be_better_when_higher():
    scores = iter([1.0, 3.0, 2.0])
    config = TrainingConfig(
        steps=6, evaluate_every=2, monitor="bleu", higher_is_better=True
    )
    history = fit(
        small_model(),
        small_batches(),
        config,
        evaluate=lambda _: {"bleu": next(scores)},
        progress=False,
    )
    assert history.best == 1


def test_label_smoothing_clipping_and_decay_reach_the_optimizer():
    plain = TrainingConfig(**SHORT)
    for changed in (
        {"label_smoothing": 0.2},
        {"clip": 0.01},
        {"weight_decay": 0.5},
        {"warmup": 10},
        {"scheduled_sampling": 1.0},
    ):
        one, other = small_model(), small_model()
        fit(one, small_batches(), plain, progress=False)
        fit(other, small_batches(), TrainingConfig(**(SHORT | changed)), progress=False)
        assert not same_weights(one, other), changed


@pytest.mark.parametrize("precision", Precision)
def test_mixed_precision_trains_and_keeps_float32_weights(precision, device):
    model = small_model().to(device)
    config = TrainingConfig(
        steps=60, learning_rate=1e-2, evaluate_every=20, precision=precision
    )
    history = fit(model, small_batches(), config, progress=False)
    assert history.rows[-1].loss < 0.9 * history.rows[0].loss
    assert all(p.dtype == torch.float32 for p in model.parameters())


def test_a_loss_that_is_no_number_stops_the_run_and_keeps_the_checkpoint(tmp_path):
    config = TrainingConfig(steps=40, evaluate_every=100, checkpoint_every=5)
    model = small_model()

    def poison(step):
        original = model.decoder.output.forward
        calls = 0

        def forward(x):
            nonlocal calls
            calls += 1
            return original(x) * (math.nan if calls > step else 1.0)

        model.decoder.output.forward = forward

    poison(step=12)
    with pytest.raises(
        FloatingPointError, match=r"loss is nan .* lower learning rate .*"
    ):
        fit(model, small_batches(), config, directory=tmp_path, progress=False)
    resumed = small_model()
    history = fit(resumed, small_batches(), config, directory=tmp_path, progress=False)
    assert math.isfinite(history.rows[-1].loss)


def test_a_checkpoint_of_another_run_is_refused(tmp_path):
    options = {"directory": tmp_path, "progress": False}
    fit(small_model(), small_batches(), TrainingConfig(**SHORT), **options)
    before = (tmp_path / CHECKPOINT).read_bytes()
    for model, batches, config in (
        (small_model(width=32), small_batches(), TrainingConfig(**SHORT)),
        (small_model(), small_batches(seed=1), TrainingConfig(**SHORT)),
        (small_model(), small_batches(), TrainingConfig(**SHORT, clip=2.0)),
        (
            small_model(),
            Batches(reversals(seed=9), budget=128),
            TrainingConfig(**SHORT),
        ),
    ):
        with pytest.raises(
            ValueError, match=r"checkpoint of another run\. .* but this run"
        ):
            fit(model, batches, config, **options)
    assert (tmp_path / CHECKPOINT).read_bytes() == before


def test_a_checkpoint_from_before_an_option_existed_is_resumed(tmp_path):
    options = {"directory": tmp_path, "progress": False}
    config = TrainingConfig(**SHORT, clip=2.0)
    expected = fit(small_model(), small_batches(), config, **options)
    path = tmp_path / CHECKPOINT
    tensors, header = read_tensors(path, RUN_FORMAT)
    for name, option in (("training", "accumulate"), ("model", "dropout")):
        stored = json.loads(header[name])
        del stored[option]
        header[name] = json.dumps(stored)
    write_tensors(path, tensors, header)
    assert fit(small_model(), small_batches(), config, **options) == expected
    for changed in (
        {"config": TrainingConfig(**SHORT, clip=2.0, accumulate=2)},
        {"model": small_model(dropout=0.2)},
    ):
        run = {"model": small_model(), "batches": small_batches(), "config": config}
        with pytest.raises(ValueError, match="checkpoint of another run"):
            fit(**(run | changed), **options)


def test_a_damaged_checkpoint_is_refused(tmp_path):
    options = {"directory": tmp_path, "progress": False}
    fit(small_model(), small_batches(), TrainingConfig(**SHORT), **options)
    path = tmp_path / CHECKPOINT
    path.write_bytes(path.read_bytes()[:-9])
    with pytest.raises(ValueError, match="is damaged"):
        fit(small_model(), small_batches(), TrainingConfig(**SHORT), **options)


def test_an_unknown_metric_cannot_be_monitored():
    config = TrainingConfig(steps=4, evaluate_every=2, monitor="wer")
    with pytest.raises(ValueError, match=r"monitor='wer'.*\['per'\]"):
        fit(
            small_model(),
            small_batches(),
            config,
            evaluate=lambda _: {"per": 1.0},
            progress=False,
        )


@pytest.mark.parametrize(
    "options, message",
    [
        ({"steps": 0}, "steps=0: expected at least 1"),
        ({"accumulate": 0}, "accumulate=0: expected at least 1"),
        ({"evaluate_every": 0}, "evaluate_every=0"),
        ({"label_smoothing": 1.5}, "label_smoothing=1.5: expected 0 to 1"),
        ({"scheduled_sampling": -0.1}, "scheduled_sampling=-0.1"),
        ({"patience": 3}, "patience=3 needs monitor"),
        ({"clip": -1.0}, "clip=-1.0: expected 0 or more"),
        ({"warmup": -5}, "warmup=-5: expected 0 or more"),
        ({"seed": -1}, "seed=-1: expected 0 or more"),
        ({"learning_rate": 0.0}, "learning_rate=0.0: expected above 0"),
        (
            {"distillation": 0.5, "scheduled_sampling": 0.5},
            "belong to the prefixes of the targets",
        ),
    ],
)
def test_a_wrong_training_configuration_is_refused(options, message):
    with pytest.raises(ValueError, match=message):
        TrainingConfig(**({"steps": 1} | options))


def test_a_history_survives_json():
    history = fit(
        small_model(),
        small_batches(),
        TrainingConfig(**SHORT, monitor="x"),
        evaluate=lambda _: {"x": 1.0},
        progress=False,
    )
    assert History.from_json(history.to_json()) == history
    assert [row.step for row in history.rows] == [5, 10, 12]


def test_the_progress_bar_shows_the_loss_and_where_the_run_is_kept(capsys, tmp_path):
    fit(small_model(), small_batches(), TrainingConfig(**SHORT), directory=tmp_path)
    assert "12/12" in (shown := capsys.readouterr().err)
    assert "loss" in shown
    assert f"kept in {tmp_path}" in shown
    fit(small_model(), small_batches(), TrainingConfig(**SHORT))
    assert "kept in" not in capsys.readouterr().err


@pytest.mark.parametrize("name", CONFIGS)
def test_every_model_can_be_trained(name):
    model = build(CONFIGS[name], torch.float)
    config = TrainingConfig(steps=30, learning_rate=1e-2, evaluate_every=10)
    batches = Batches(reversals(symbols=4), budget=256)
    history = fit(model, batches, config, progress=False)
    assert history.rows[-1].loss < history.rows[0].loss


def test_a_weight_that_is_no_number_is_never_saved(tmp_path):
    config = TrainingConfig(steps=10, evaluate_every=100, checkpoint_every=2)
    model, calls = small_model(), []

    def poison(gradient):  # the loss of the sixth step is still fine
        calls.append(gradient)
        return gradient * (math.nan if len(calls) == 6 else 1.0)

    model.decoder.output.weight.register_hook(poison)
    with pytest.raises(FloatingPointError, match=r"weight is infinite or not a number"):
        fit(model, small_batches(), config, directory=tmp_path, progress=False)
    resumed = small_model()
    history = fit(resumed, small_batches(), config, directory=tmp_path, progress=False)
    assert math.isfinite(history.rows[-1].loss)


@pytest.mark.parametrize("number", [float, torch.tensor])
def test_a_metric_that_is_no_number_is_never_the_best(number, tmp_path):
    values = iter([math.nan, 3.0, math.nan, 1.0])
    history = fit(
        small_model(),
        small_batches(),
        TrainingConfig(steps=8, evaluate_every=2, monitor="wer"),
        evaluate=lambda _: {"wer": number(next(values))},
        directory=tmp_path,
        progress=False,
    )
    assert history.best == 3


def test_matrices_decay_and_biases_do_not():
    model = small_model(dropout=0.0)
    before = {n: t.clone() for n, t in weights_of(model).items()}
    # the learning rate moves a weight by at most 0.001, the decay halves it
    config = TrainingConfig(steps=1, learning_rate=1e-3, weight_decay=500.0)
    fit(model, small_batches(), config, progress=False)
    for name, tensor in weights_of(model).items():
        expected = before[name] / 2 if tensor.dim() > 1 else before[name]
        torch.testing.assert_close(tensor, expected, rtol=0, atol=2e-3)


@pytest.mark.parametrize("precision", Precision)
def test_gradients_are_clipped_at_their_true_size(precision, monkeypatch):
    norms = []
    original = torch.nn.utils.clip_grad_norm_

    def clip(*arguments):
        norms.append(float(original(*arguments)))

    monkeypatch.setattr(torch.nn.utils, "clip_grad_norm_", clip)
    config = TrainingConfig(steps=8, precision=precision)
    fit(small_model(), small_batches(), config, progress=False)
    assert len(norms) == 8
    # half precision finds its scale by overflowing now and then
    finite = [norm for norm in norms if math.isfinite(norm)]
    assert len(finite) >= 4
    assert all(0.01 < norm < 100 for norm in finite)  # not times a scale of thousands


def test_scheduled_sampling_grows_from_nothing(monkeypatch):
    shares = []

    def record(model, batch, share):
        shares.append(share)
        return model(batch)

    module = importlib.import_module("seq2seq_lib.training.objective")
    monkeypatch.setattr(module, "sampled_forward", record)
    config = TrainingConfig(steps=5, scheduled_sampling=0.5)
    fit(small_model(), small_batches(), config, progress=False)
    assert shares == pytest.approx([0.1, 0.2, 0.3, 0.4])  # the first step has none


def test_rows_tell_the_learning_rate():
    config = TrainingConfig(
        steps=10, learning_rate=1.0, warmup=10, evaluate_every=4, clip=1e-9
    )
    history = fit(small_model(), small_batches(), config, progress=False)
    assert [row.learning_rate for row in history.rows] == pytest.approx([0.4, 0.8, 1.0])


def test_a_model_keeps_its_mode_and_needs_weights():
    model = small_model().eval()
    fit(model, small_batches(), TrainingConfig(steps=1), progress=False)
    assert not model.training
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    with pytest.raises(ValueError, match="no weights to train"):
        fit(model, small_batches(), TrainingConfig(steps=1), progress=False)


def test_a_table_that_grew_while_evaluating_can_be_trained_on():
    config = TransformerConfig(**SIZES, **BLOCKS, positions=PositionKind.ROTARY)
    model = config.build()

    def evaluate(model):
        encode_sources(model, [[4] * 300])
        return {}

    training = TrainingConfig(steps=4, evaluate_every=2)
    fit(model, small_batches(), training, evaluate=evaluate, progress=False)
