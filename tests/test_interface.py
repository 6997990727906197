import dataclasses

import pytest
import torch
from tiny_models import CONFIGS, build, example_batch
from torch import nn

from seq2seq_lib.configuration import from_mapping
from seq2seq_lib.interface import (
    Decoder,
    EncoderOutput,
    ModelConfig,
    evaluating,
    reorder,
)
from seq2seq_lib.models.recurrent import CellKind
from seq2seq_lib.models.rnn_seq2seq import RNNSeq2SeqConfig
from seq2seq_lib.search import beam_search


def test_a_memory_keeps_and_repeats_rows():
    states = torch.arange(6.0).view(3, 1, 2)
    memory = EncoderOutput(states, torch.ones(3, 1, dtype=torch.bool), states[:, 0])
    kept = memory.reorder(torch.tensor([2, 0, 0]))
    assert kept.summary.tolist() == [[4, 5], [0, 1], [0, 1]]
    assert len(kept) == 3


def test_evaluating_turns_dropout_off_and_back_on():
    dropout = nn.Dropout(0.5).train()
    with evaluating(dropout):
        assert dropout(torch.ones(1000)).sum() == 1000
    assert dropout.training
    dropout.eval()
    with pytest.raises(KeyError), evaluating(dropout):
        raise KeyError
    assert not dropout.training


def test_evaluating_restores_the_mode_of_every_part():
    model = nn.Sequential(nn.Dropout(0.5), nn.Dropout(0.5)).train()
    model[1].eval()  # a frozen part stays frozen
    with evaluating(model):
        assert not model[0].training
    assert model[0].training
    assert not model[1].training


def test_a_decoder_without_attention_says_so():
    model, batch = build(CONFIGS["gru"]), example_batch()
    assert model.decoder.attention(model.encode(batch), batch.decoder_input) is None


SIZES = {"source_symbols": 5, "target_symbols": 6}


def test_a_mapping_becomes_a_configuration():
    config = ModelConfig.from_mapping(
        {"model": "RNNSeq2Seq", **SIZES, "cell": "lstm", "dropout": 0}
    )
    assert config == RNNSeq2SeqConfig(**SIZES, cell=CellKind.LSTM, dropout=0.0)
    assert config.cell is CellKind.LSTM


@pytest.mark.parametrize(
    "values, message",
    [
        ({"model": "Transfomer"}, r"unknown model 'Transfomer': expected one of .*RNN"),
        ({}, r"unknown model None"),
        ({"model": "RNNSeq2Seq", "widht": 3, **SIZES}, r"unknown keys widht .* width"),
        ({"model": "RNNSeq2Seq", "source_symbols": 3}, r"needs target_symbols"),
        (
            {"model": "RNNSeq2Seq", **SIZES, "cell": "gur"},
            r"'gur': expected one of .*gru",
        ),
        (
            {"model": "RNNSeq2Seq", **SIZES, "width": "64"},
            r"'64': expected .* type int",
        ),
        ({"model": "RNNSeq2Seq", **SIZES, "width": True}, r"expected .* type int"),
        (
            {"model": "RNNSeq2Seq", **SIZES, "layers": 0},
            r"layers=0: expected at least 1",
        ),
        ({"model": "RNNSeq2Seq", **SIZES, "dropout": 1.0}, r"dropout=1.0: expected"),
        ({"model": "RNNSeq2Seq", **SIZES, "width": 7}, r"width=7 .* pick an even one"),
    ],
)
def test_a_wrong_configuration_says_what_is_wrong(values, message):
    with pytest.raises(ValueError, match=message):
        ModelConfig.from_mapping(values).build()


def test_plain_values_of_every_type_are_checked():
    @dataclasses.dataclass(frozen=True)
    class Options:
        name: str = ""
        share: float = 0.5

    assert from_mapping(Options, {"share": 1}) == Options(share=1.0)
    with pytest.raises(
        ValueError, match=r"Options.name is 3: expected .* str, got int"
    ):
        from_mapping(Options, {"name": 3})


def test_what_was_computed_while_evaluating_can_be_trained_on():
    model, batch = build(CONFIGS["attention"]), example_batch()
    with evaluating(model):
        memory = model.encode(batch)
    model.decoder(memory, batch.decoder_input).sum().backward()
    assert model.decoder.output.weight.grad is not None


class PlainDecoder(Decoder):
    """As a beginner writes it: its state is a tuple of tensors, without ``reorder``."""

    def __init__(self):
        super().__init__()
        self.embedding = torch.nn.Embedding(9, 8)
        self.cell = torch.nn.GRUCell(8, 8)
        self.output = torch.nn.Linear(8, 9)

    def init_state(self, encoded):
        return (encoded.summary, {"steps": [torch.zeros(len(encoded))]})

    def forward(self, encoded, tokens):
        raise NotImplementedError

    def step(self, token, state):
        hidden, counted = state
        hidden = self.cell(self.embedding(token), hidden)
        counted = {"steps": [counted["steps"][0] + 1]}
        return self.output(hidden).log_softmax(-1), (hidden, counted)


def test_a_search_reorders_a_state_that_is_a_tuple_of_tensors():
    torch.manual_seed(0)
    decoder = PlainDecoder()
    states = torch.randn(3, 2, 8)
    encoded = EncoderOutput(states, torch.ones(3, 2, dtype=torch.bool), states[:, 0])
    found = beam_search(decoder, encoded, width=4, max_length=5)
    rows = torch.tensor([2, 0])
    hidden, counted = reorder(decoder.init_state(encoded), rows)
    assert torch.equal(hidden, encoded.summary[rows])
    assert counted["steps"][0].shape == (2,)
    # each source alone: a state in the wrong order would change the scores
    for row, one in enumerate(found):
        alone = encoded.reorder(torch.tensor([row]))
        best = beam_search(decoder, alone, width=4, max_length=5)[0].best
        assert best.tokens == one.best.tokens
        assert best.score == pytest.approx(one.best.score, rel=1e-5)
