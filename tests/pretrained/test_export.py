"""Other engines say what our own search says, from the same weights."""

import dataclasses
import sys
from functools import partial

import needs
import pytest
import torch
from tiny_models import CONFIGS, SIZES, SMALL, build, example_batch
from torch.testing import assert_close

import seq2seq_lib
from seq2seq_lib.cli import main
from seq2seq_lib.data import Batches, CorpusName, ToyTask, encode_pairs, load_corpus
from seq2seq_lib.data.subwords import SubwordVocabulary
from seq2seq_lib.data.toy import toy_examples, toy_vocabulary
from seq2seq_lib.data.vocabulary import BOS, Vocabulary
from seq2seq_lib.evaluation import decode
from seq2seq_lib.metrics import word_error_rate
from seq2seq_lib.models.normalization import NormOrder
from seq2seq_lib.models.saved import SavedModel, save_model
from seq2seq_lib.models.transformer import TransformerConfig
from seq2seq_lib.pretrained import names, read_card
from seq2seq_lib.pretrained.export import (
    CTranslate2Model,
    Quantization,
    export_ctranslate2,
    export_onnx,
    load_onnx,
)
from seq2seq_lib.search import beam_search, greedy_search
from seq2seq_lib.training import TrainingConfig, fit

TRANSFORMERS = {
    **{name: c for name, c in CONFIGS.items() if name.startswith("transformer")},
    "no-final-norm": TransformerConfig(**SIZES, **SMALL, final_norm=False),
    "post-with-final-norm": TransformerConfig(**SIZES, **SMALL, order=NormOrder.POST),
    "deeper-decoder": TransformerConfig(**SIZES, **{**SMALL, "decoder_layers": 3}),
}
# what CTranslate2 does not support
REFUSED = {"transformer-batch", "transformer-bare", "post-with-final-norm"}
EXPORTS = {"ctranslate2": export_ctranslate2, "onnx": export_onnx}
WORDS = 500


def saved_model(config):
    """Random weights, so that a transposed or forgotten one is seen."""
    model = build(config, torch.float)
    with torch.no_grad():
        for parameter in model.parameters():
            parameter *= 0.5  # or sums explode where nothing is normalized
        for name, buffer in model.named_buffers():
            if "running" in name:
                buffer.uniform_(0.5, 2.0)
    return SavedModel(model, Vocabulary("abcdefg"), Vocabulary("ABCDE"), "toy-copy")


@pytest.fixture(scope="module")
def examples():
    return toy_examples(
        ToyTask.COPY, count=1000 + WORDS, lengths=(1, 4), symbols=8, seed=0
    )


@pytest.fixture(scope="module")
def trained(examples):
    """A model that has learned something, but not everything."""
    letters = toy_vocabulary(8)
    torch.manual_seed(0)
    config = TransformerConfig(
        source_symbols=len(letters),
        target_symbols=len(letters),
        width=32,
        heads=2,
        encoder_layers=1,
        decoder_layers=1,
        feed_forward=64,
        dropout=0.0,
    )
    model = config.build()
    batches = Batches(
        encode_pairs(examples[WORDS:], letters, letters), budget=512, seed=0
    )
    training = TrainingConfig(steps=150, learning_rate=1e-2, warmup=10)
    fit(model, batches, training, progress=False)
    return SavedModel(model.eval(), letters, letters, "toy-copy")


@pytest.fixture
def words(examples):
    return [example.source for example in examples[:WORDS]]


def assert_same_best(found, expected):
    """The same outputs, or others of the same score."""
    for one, other in zip(found, expected, strict=True):
        assert_close(one.best.score, other.best.score, rtol=1e-4, atol=1e-4)
        tie = len(other.hypotheses) > 1 and (
            other.hypotheses[0].score - other.hypotheses[1].score < 1e-3
        )
        assert one.best.tokens == other.best.tokens or tie
        assert one.best.finished == other.best.finished


@pytest.mark.parametrize("alpha", [0.0, 0.75, 1.5])
def test_ctranslate2_finds_what_our_beam_finds(trained, words, tmp_path, alpha):
    export_ctranslate2(trained, tmp_path / "model")
    model = CTranslate2Model.load(tmp_path / "model", threads=1)
    search = partial(beam_search, width=5, alpha=alpha, max_length=10, n_best=2)
    expected = decode(trained, words, search=search)
    assert len({found.best.tokens for found in expected}) > WORDS / 2
    found = model.decode(words, width=5, alpha=alpha, max_length=10, patience=10)
    assert_same_best(found, expected)
    # already the patience that costs nothing more misses few
    found = model.decode(words, width=5, alpha=alpha, max_length=10)
    pairs = zip(found, expected, strict=True)
    assert sum(f.best.tokens == e.best.tokens for f, e in pairs) > 0.95 * WORDS


@pytest.mark.parametrize("name", sorted(set(TRANSFORMERS) - REFUSED))
def test_ctranslate2_can_say_every_choice_it_does_not_refuse(name, tmp_path):
    saved = saved_model(TRANSFORMERS[name])
    export_ctranslate2(saved, tmp_path / "model")
    model = CTranslate2Model.load(tmp_path / "model", threads=1)
    words = ["abc", "g", "fedcbag", "aaaa", "bd"]
    for width in (1, 4):
        search = partial(beam_search, width=width, max_length=12, n_best=width)
        found = model.decode(words, width=width, max_length=12, patience=12)
        assert_same_best(found, decode(saved, words, search=search))


def test_int8_costs_little_and_is_smaller(trained, examples, words, tmp_path):
    wrong = {}
    for kind in Quantization:
        export_ctranslate2(trained, tmp_path / kind, quantization=kind)
        model = CTranslate2Model.load(tmp_path / kind, threads=1)
        found = model.decode(words, max_length=10)
        outputs = [trained.target_vocabulary.decode(f.best.tokens) for f in found]
        references = [example.references for example in examples[:WORDS]]
        wrong[kind] = word_error_rate(outputs, references)
    assert wrong[Quantization.FLOAT32] < 0.5
    # rounding moves a small model more than a large one: see the shipped ones below
    assert wrong[Quantization.INT8] <= wrong[Quantization.FLOAT32] + 0.05
    sizes = {kind: (tmp_path / kind / "model.bin").stat().st_size for kind in wrong}
    table = 4 * 1024 * 32  # of positions, which are not rounded
    assert sizes["int8"] - table < 0.4 * (sizes["float32"] - table)


@pytest.mark.parametrize("name", TRANSFORMERS)
def test_onnx_computes_what_the_model_computes(name, tmp_path):
    saved = saved_model(TRANSFORMERS[name])
    export_onnx(saved, tmp_path / "model")
    exported = load_onnx(tmp_path / "model", threads=1)
    batch = example_batch()
    with torch.no_grad():
        expected = saved.model(batch)
    real = batch.target_mask
    assert_close(exported.model(batch)[real], expected[real], rtol=0, atol=1e-4)


def test_onnx_steps_follow_reordered_rows(tmp_path):
    saved = saved_model(TRANSFORMERS["transformer"])
    export_onnx(saved, tmp_path / "model")
    models = saved.model, load_onnx(tmp_path / "model", threads=1).model
    batch = example_batch()
    said = []
    with torch.no_grad():
        for model in models:
            state = model.decoder.init_state(model.encode(batch))
            _, state = model.decoder.step(torch.full((3,), BOS), state)
            state = state.reorder(torch.tensor([2, 0, 0, 1]))
            _, after = model.decoder.step(torch.tensor([4, 5, 6, 7]), state)
            again, _ = model.decoder.step(torch.tensor([8, 5, 6, 7]), state)
            then, _ = model.decoder.step(torch.tensor([4, 5, 6, 7]), after)
            said.append(torch.stack([again, then]))
    assert_close(said[1], said[0], rtol=0, atol=1e-4)


@pytest.mark.parametrize(
    "search",
    [
        partial(greedy_search, max_length=10),
        partial(beam_search, width=5, max_length=10, n_best=2),
    ],
    ids=["greedy", "beam"],
)
def test_our_searches_drive_onnx(trained, words, tmp_path, search):
    export_onnx(trained, tmp_path / "model")
    exported = load_onnx(tmp_path / "model", threads=1)
    assert exported.split == trained.split
    assert exported.source_vocabulary == trained.source_vocabulary
    assert exported.target_vocabulary == trained.target_vocabulary
    expected = decode(trained, words, search=search)
    assert_same_best(decode(exported, words, search=search), expected)


def test_pieces_survive_the_way_through_both_engines(tmp_path):
    pieces = SubwordVocabulary.train(["low lower lowest", "new newer"] * 9, size=20)
    config = TransformerConfig(source_symbols=20, target_symbols=20, **SMALL)
    saved = SavedModel(build(config, torch.float), pieces, pieces, "multi30k-de-en")
    search = partial(beam_search, width=3, max_length=8, n_best=2)
    texts = ["low new", "newest", "löwe"]
    expected = decode(saved, texts, search=search)
    export_onnx(saved, tmp_path / "onnx")
    assert_same_best(
        decode(load_onnx(tmp_path / "onnx"), texts, search=search), expected
    )
    export_ctranslate2(saved, tmp_path / "ctranslate2")
    model = CTranslate2Model.load(tmp_path / "ctranslate2", threads=1)
    sources = [pieces.decode(pieces.encode(text)) for text in texts]
    assert_same_best(model.decode(sources, width=3, max_length=8, patience=8), expected)


@pytest.mark.parametrize("to", EXPORTS)
def test_an_export_does_not_change_the_model(to, tmp_path):
    saved = saved_model(TRANSFORMERS["transformer"])
    saved.model.train()
    before = {name: t.clone() for name, t in saved.model.state_dict().items()}
    options = {"quantization": Quantization.INT8} if to == "ctranslate2" else {}
    EXPORTS[to](saved, tmp_path / "model", **options)
    assert_close(dict(saved.model.state_dict()), before, rtol=0, atol=0)
    assert all(part.training for part in saved.model.modules())


@pytest.mark.parametrize("to", EXPORTS)
def test_half_and_double_precision_are_exported_as_single(to, tmp_path):
    saved = saved_model(TRANSFORMERS["transformer"])
    for kind in (torch.float, torch.double):
        saved.model.to(kind)
        EXPORTS[to](saved, tmp_path / str(kind))
    one, other = (
        {path.name: path.read_bytes() for path in (tmp_path / str(kind)).iterdir()}
        for kind in (torch.float, torch.double)
    )
    assert one == other


@pytest.mark.parametrize("name", sorted(REFUSED))
def test_what_ctranslate2_cannot_say_is_refused(name, tmp_path):
    with pytest.raises(ValueError, match=r"norm=\w+ .*expected"):
        export_ctranslate2(saved_model(TRANSFORMERS[name]), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to", EXPORTS)
def test_other_models_are_refused(to, tmp_path):
    with pytest.raises(ValueError, match="RNNSeq2SeqConfig: only Transformers"):
        EXPORTS[to](saved_model(CONFIGS["gru"]), tmp_path / "model")


@pytest.mark.parametrize(
    "to, package",
    [("ctranslate2", "ctranslate2.specs.transformer_spec"), ("onnx", "onnx")],
)
def test_a_missing_engine_says_what_to_install(to, package, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(ValueError, match=r"pip install 'seq2seq_lib\[export\]'"):
        EXPORTS[to](saved_model(TRANSFORMERS["transformer"]), tmp_path / "model")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("to", EXPORTS)
def test_what_is_there_already_is_not_touched(to, tmp_path):
    (tmp_path / "file").write_text("mine")
    with pytest.raises(FileExistsError, match="exists already and is not touched"):
        EXPORTS[to](saved_model(TRANSFORMERS["transformer"]), tmp_path)
    assert [path.read_text() for path in tmp_path.iterdir()] == ["mine"]


@pytest.mark.parametrize(
    "load, message",
    [(CTranslate2Model.load, "no model of CTranslate2"), (load_onnx, "no model:")],
)
def test_another_directory_is_refused(load, message, tmp_path):
    with pytest.raises(ValueError, match=message):
        load(tmp_path)


def test_sequences_beyond_the_exported_positions_are_refused(tmp_path):
    saved = saved_model(TRANSFORMERS["transformer-learned"])  # of 20 positions
    export_ctranslate2(saved, tmp_path / "ctranslate2")
    model = CTranslate2Model.load(tmp_path / "ctranslate2", threads=1)
    with pytest.raises(ValueError, match=r"positions >= 20.*shorten the sources"):
        model.decode(["a" * 30], max_length=5)
    export_onnx(saved, tmp_path / "onnx")
    exported = load_onnx(tmp_path / "onnx", threads=1)
    with pytest.raises(ValueError, match="31 symbols, but only 20 positions"):
        decode(exported, ["a" * 30])
    state = exported.model.decoder.init_state(exported.model.encode(example_batch()))
    state = dataclasses.replace(state, past=[torch.zeros(3, 2, 20, 4)] * 4)
    with pytest.raises(ValueError, match="21 symbols, but only 20 positions"):
        exported.model.decoder.step(torch.full((3,), BOS), state)


def test_ctranslate2_checks_what_it_is_asked(tmp_path):
    export_ctranslate2(saved_model(TRANSFORMERS["transformer"]), tmp_path / "model")
    model = CTranslate2Model.load(tmp_path / "model", threads=1)
    with pytest.raises(ValueError, match="1 of 2 sources are empty"):
        model.decode(["ab", ""], max_length=5)
    with pytest.raises(ValueError, match="width=0: a beam needs"):
        model.decode(["ab"], max_length=5, width=0)


@pytest.mark.parametrize("to", EXPORTS)
def test_the_command_line_exports(to, tmp_path, capsys):
    saved = saved_model(TRANSFORMERS["transformer"])
    save_model(tmp_path / "model.safetensors", saved)
    arguments = ["export", str(tmp_path / "model.safetensors"), "--to", to]
    assert main([*arguments, str(tmp_path / "out")]) == 0
    assert str(tmp_path / "out") in capsys.readouterr().err
    search = partial(beam_search, width=2, max_length=9, n_best=2)
    expected = decode(saved, ["abc"], search=search)
    if to == "onnx":
        found = decode(load_onnx(tmp_path / "out"), ["abc"], search=search)
    else:
        model = CTranslate2Model.load(tmp_path / "out", threads=1)
        found = model.decode(["abc"], width=2, max_length=9, patience=9)
    assert_same_best(found, expected)
    assert main([*arguments, str(tmp_path / "out")]) == 2  # again
    assert "exists already" in capsys.readouterr().err
    status = main([*arguments, "--quantization", "int8", str(tmp_path / "small")])
    assert status == (2 if to == "onnx" else 0)
    assert ("float32 only" in capsys.readouterr().err) == (to == "onnx")


SHIPPED = [name for name in names() if read_card(name).task.startswith("pronunciation")]


@pytest.mark.parametrize("name", [n for n in SHIPPED if "transformer" in n])
def test_shipped_models_say_the_same_in_other_engines(name, tmp_path):
    saved = seq2seq_lib.load(name)
    needs.corpus(saved.split)
    examples = load_corpus(CorpusName(saved.split)).dev
    sources = [example.source for example in examples]
    search = partial(beam_search, width=5, max_length=64, n_best=2)
    expected = decode(saved, sources[:WORDS], search=search)
    export_onnx(saved, tmp_path / "onnx")
    exported = load_onnx(tmp_path / "onnx")
    assert_same_best(decode(exported, sources[:WORDS], search=search), expected)

    rates = {}
    for kind in Quantization:
        export_ctranslate2(saved, tmp_path / kind, quantization=kind)
        model = CTranslate2Model.load(tmp_path / kind)
        found = model.decode(sources, max_length=64, patience=2)
        if kind is Quantization.FLOAT32:
            assert_same_best(found[:WORDS], expected)
        outputs = [saved.target_vocabulary.decode(f.best.tokens) for f in found]
        references = [example.references for example in examples]
        rates[kind] = word_error_rate(outputs, references)
    assert rates[Quantization.INT8] <= rates[Quantization.FLOAT32] + 0.003
