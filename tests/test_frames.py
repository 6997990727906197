"""Sources that are no symbols: a reader's encoder of frames under existing decoders.

Only the encoder, its configuration and the data are written here. Training, resuming,
search, scores and files are the library's own.
"""

import json
from dataclasses import dataclass
from functools import partial

import pytest
import torch
from torch import nn

from seq2seq_lib.data import (
    Batch,
    Batches,
    Corpus,
    Example,
    Frames,
    Pair,
    TaskName,
    Vocabulary,
    encode_pairs,
    pad_sources,
)
from seq2seq_lib.evaluation import decode, held_out_loss, measure
from seq2seq_lib.interface import Encoder, EncoderDecoder, EncoderOutput, ModelConfig
from seq2seq_lib.models import (
    AttentionDecoder,
    RNNDecoder,
    SavedModel,
    load_model,
    save_model,
)
from seq2seq_lib.models.transformer import CachedDecoder
from seq2seq_lib.models.transformer_stacks import TransformerSizes
from seq2seq_lib.plotting import plot_batch
from seq2seq_lib.recipes.soft_targets import SoftTargets
from seq2seq_lib.search import beam_search
from seq2seq_lib.training import TrainingConfig, fit

FEATURES, SYMBOLS = 6, "abcde"


class FrameEncoder(Encoder):
    """Reads real-valued frames, and halves their number."""

    def __init__(self, features, width):
        super().__init__()
        self.width = width
        self.convolution = nn.Conv1d(
            features, width, kernel_size=4, stride=2, padding=1
        )

    def forward(self, source, mask):
        states = self.convolution((source * mask[..., None]).mT).mT.relu()  # B S/2 D
        mask = mask[:, : 2 * states.shape[1] : 2]
        return EncoderOutput.averaged(states, mask)


@dataclass(frozen=True, kw_only=True)
class FramesUnderConfig(ModelConfig):
    source_features: int
    width: int = 48
    decoder: str = "attention"

    def build(self):
        sizes = TransformerSizes(
            target_symbols=self.target_symbols, width=self.width, decoder_layers=1
        )
        decoder = {
            "attention": lambda: AttentionDecoder(self.target_symbols, self.width),
            "rnn": lambda: RNNDecoder(self.target_symbols, self.width),
            "transformer": lambda: CachedDecoder(sizes),
        }[self.decoder]()
        encoder = FrameEncoder(self.source_features, self.width)
        return EncoderDecoder(encoder, decoder, config=self)


def spoken(word, random):
    """Two noisy frames for each letter."""
    places = [SYMBOLS.index(letter) for letter in word for _ in range(2)]
    clean = nn.functional.one_hot(torch.tensor(places), FEATURES).float()
    return clean + 0.1 * torch.randn(clean.shape, generator=random)


@pytest.fixture(scope="module")
def corpus():
    random = torch.Generator().manual_seed(0)
    words = [
        "".join(SYMBOLS[i] for i in torch.randint(5, (n,), generator=random).tolist())
        for n in torch.randint(1, 4, (900,), generator=random).tolist()
    ]
    examples = [Example(spoken(word, random), (tuple(word),)) for word in words]
    parts = examples[:700], examples[700:800], examples[800:]
    return Corpus(
        "spoken-letters", *parts, Frames(FEATURES), Vocabulary(SYMBOLS), TaskName.TOY
    )


def trained(decoder, corpus, directory, steps=300, evaluate=lambda _: {}):
    torch.manual_seed(0)
    vocabularies = corpus.source_vocabulary, corpus.target_vocabulary
    sizes = {**vocabularies[0].sizes, "target_symbols": len(vocabularies[1])}
    values = {"model": "FramesUnder", "decoder": decoder, **sizes}
    model = ModelConfig.from_mapping(values).build()
    fit(
        model,
        Batches(encode_pairs(corpus.train, *vocabularies), budget=400),
        TrainingConfig(
            steps=steps, learning_rate=1e-2, evaluate_every=40, checkpoint_every=25
        ),
        evaluate=evaluate,
        directory=directory,
        progress=False,
    )
    return SavedModel(model, *vocabularies, corpus.name, task=corpus.task)


def interrupt(_):
    raise KeyboardInterrupt


@pytest.fixture(scope="module", params=["attention", "rnn", "transformer"])
def saved(request, corpus, tmp_path_factory):
    return trained(request.param, corpus, tmp_path_factory.mktemp("run"))


def test_it_learns_and_is_searched_and_scored(saved, corpus):
    search = partial(beam_search, width=3, max_length=8)
    assert measure(saved, corpus.test, search=search)["wer"] < 0.3
    found = decode(saved, [e.source for e in corpus.test], search=search)
    right = [e.references[0] for e in corpus.test]
    outputs = [tuple(saved.target_vocabulary.decode(f.best.tokens)) for f in found]
    assert sum(a == b for a, b in zip(outputs, right, strict=True)) > 0.7 * len(right)
    # one source alone gives what it gives beside longer ones
    (alone,) = decode(saved, [corpus.test[0].source], search=search)
    assert alone.best.tokens == found[0].best.tokens
    pairs = encode_pairs(corpus.dev, saved.source_vocabulary, saved.target_vocabulary)
    batches = Batches(pairs, budget=200).epoch(0)
    assert held_out_loss(saved.model, batches)["perplexity"] < 2


def test_it_is_stored_and_rebuilt(saved, corpus, tmp_path):
    save_model(tmp_path / "model.safetensors", saved)
    loaded = load_model(tmp_path / "model.safetensors", device=torch.device("cpu"))
    assert loaded.source_vocabulary == Frames(FEATURES)
    batch = Batch.from_pairs(
        encode_pairs(corpus.dev[:5], Frames(FEATURES), Vocabulary(SYMBOLS))
    )
    saved.model.cpu().eval()
    torch.testing.assert_close(loaded.model(batch), saved.model(batch))


def test_a_stopped_run_goes_on_as_if_nothing_had_happened(corpus, tmp_path):
    whole = trained("attention", corpus, tmp_path / "whole", steps=60)
    with pytest.raises(KeyboardInterrupt):
        trained("attention", corpus, tmp_path / "stopped", 60, interrupt)
    resumed = trained("attention", corpus, tmp_path / "stopped", steps=60)
    for name, weight in whole.model.state_dict().items():
        assert torch.equal(weight, resumed.model.state_dict()[name]), name
    other = corpus.train[0]._replace(source=corpus.train[0].source + 1)
    changed = Corpus(**{**vars(corpus), "train": [other, *corpus.train[1:]]})
    with pytest.raises(ValueError, match=r"checkpoint of another run\. Its data is"):
        trained("attention", changed, tmp_path / "stopped", steps=60)


def test_a_teacher_can_be_looked_up(saved, corpus):
    pairs = encode_pairs(
        corpus.dev[:9], saved.source_vocabulary, saved.target_vocabulary
    )
    saved.model.cpu().eval()
    targets = SoftTargets.of(saved.model, pairs)
    batch = Batch.from_pairs(pairs[3:6])
    with torch.no_grad():
        expected = saved.model(batch).exp()
    mask = batch.target_mask
    torch.testing.assert_close(targets(batch)[mask], expected[mask], rtol=0, atol=1e-3)


def test_padding_of_frames_is_zero_and_marked():
    source, mask = pad_sources([torch.ones(3, 2), torch.ones(1, 2)])
    assert source.shape == (2, 3, 2)
    assert mask.tolist() == [[True] * 3, [True, False, False]]
    assert source[1, 1:].abs().sum() == 0
    batch = Batch.from_pairs(
        [Pair(torch.ones(3, 2), [4]), Pair(torch.ones(5, 2), [4, 5])]
    )
    assert batch.source.shape == (2, 5, 2)
    assert batch.symbols == 10  # frames have no <eos>


@pytest.mark.parametrize(
    "source, problem",
    [
        (torch.ones(3, 7), r"is \(3, 7\) of torch.float32: expected .* \(length, 6\)"),
        (torch.ones(3, 6, dtype=torch.long), "expected a floating-point tensor"),
        ("abc", "'abc': expected a floating-point tensor"),
    ],
)
def test_what_is_no_source_of_frames_is_refused(source, problem):
    with pytest.raises(ValueError, match=problem):
        encode_pairs([Example(source, (("a",),))], Frames(FEATURES), Vocabulary("a"))


def test_symbols_and_frames_are_not_mixed_up():
    letters = Vocabulary("ab")
    with pytest.raises(ValueError, match="this model reads symbols"):
        encode_pairs([Example(torch.ones(3, 6), (("a",),))], letters, letters)
    with pytest.raises(ValueError, match="sources of different kinds"):
        pad_sources([[4, 5], torch.ones(2, 3)])
    with pytest.raises(ValueError, match="sources of different kinds"):
        pad_sources([torch.ones(2, 3), torch.ones(2, 4)])
    with pytest.raises(ValueError, match="1 of them empty"):
        pad_sources([torch.ones(2, 3), torch.ones(0, 3)])
    batch = Batch.from_pairs([Pair(torch.ones(3, 2), [4])])
    with pytest.raises(ValueError, match="are frames"):
        plot_batch(batch, letters)
    values = {"model": "FramesUnder", "source_symbols": 3, "target_symbols": 6}
    with pytest.raises(ValueError, match="unknown keys source_symbols"):
        ModelConfig.from_mapping(values)
    assert "source_features" in json.loads(
        FramesUnderConfig(source_features=1, target_symbols=5).to_json()
    )
