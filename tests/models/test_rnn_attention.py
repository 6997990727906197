import pytest
import torch
from tiny_models import CONFIGS, build, example_batch
from torch.testing import assert_close

from seq2seq_lib.data.vocabulary import BOS
from seq2seq_lib.models.attention import DotAttention
from seq2seq_lib.models.recurrent import CellKind
from seq2seq_lib.models.rnn_attention import AttentionDecoder
from seq2seq_lib.search import beam_search

ATTENDING = [
    name for name in CONFIGS if name.startswith(("attention", "self", "trans"))
]


def test_one_step_by_hand():
    model, batch = build(CONFIGS["attention"]), example_batch()
    decoder, memory = model.decoder, model.encode(batch)
    row, length = 1, 3  # two letters and EOS
    hidden = decoder.bridge.linear(memory.summary[row]).tanh()
    states = memory.states[row, :length]
    scores = [
        decoder.scores.output(
            (decoder.scores.query(hidden) + decoder.scores.key(state)).tanh()
        )
        for state in states
    ]
    weights = torch.cat(scores).softmax(dim=0)
    context = sum(w * state for w, state in zip(weights, states, strict=True))
    inputs = torch.cat([decoder.embedding(torch.tensor(BOS)), context])
    output, _ = decoder.recurrence(inputs[None], hidden[None])
    expected = decoder.output(torch.cat([output[0], context])).log_softmax(dim=-1)
    assert_close(model(batch)[row, 0], expected, rtol=0, atol=1e-10)
    looked = decoder.attention(memory, batch.decoder_input)
    assert_close(looked[row, 0, :length], weights, rtol=0, atol=1e-10)


def test_learned_dot_products_attend_as_the_layer_of_the_page_does():
    model, batch = build(CONFIGS["attention-learned"]), example_batch()
    decoder, encoded = model.decoder, model.encode(batch)
    attention = DotAttention(8).double()
    attention.load_state_dict(decoder.scores.state_dict())
    hidden = decoder.bridge.linear(encoded.summary).tanh()  # B D
    outputs, looked = [], []
    for embedded in decoder.embedding(batch.decoder_input).unbind(1):
        context, weights = attention(
            hidden[:, None], encoded.states, encoded.states, encoded.mask[:, None]
        )
        inputs = torch.cat([embedded, context[:, 0]], dim=-1)[:, None]
        output, hidden = decoder.recurrence(inputs, hidden[None])
        hidden = hidden[0]
        features = torch.cat([output, context], dim=-1)
        outputs.append(decoder.output(features).log_softmax(dim=-1))
        looked.append(weights)
    assert_close(model(batch), torch.cat(outputs, dim=1), rtol=0, atol=1e-10)
    weights = decoder.attention(encoded, batch.decoder_input)
    assert_close(weights, torch.cat(looked, dim=1), rtol=0, atol=1e-10)


@pytest.mark.parametrize("name", ATTENDING)
def test_attention_is_a_share_of_the_real_positions(name):
    model, batch = build(CONFIGS[name]), example_batch()
    weights = model.decoder.attention(model.encode(batch), batch.decoder_input)
    assert weights.shape == (*batch.target.shape, batch.source.shape[1])
    assert_close(weights.sum(dim=-1), torch.ones_like(weights[..., 0]))
    hidden = ~batch.source_mask[:, None].expand_as(weights)
    assert (weights[hidden] == 0).all()


@pytest.mark.parametrize("name", ATTENDING)
def test_a_search_returns_where_its_outputs_looked(name):
    model, batch = build(CONFIGS[name]), example_batch()
    memory = model.encode(batch)
    for row, found in enumerate(
        beam_search(model.decoder, memory, max_length=6, n_best=2, trace=True)
    ):
        one = memory.reorder(torch.tensor([row]))
        for hypothesis, weights in zip(
            found.hypotheses, found.trace.attention, strict=True
        ):
            tokens = torch.tensor([[BOS, *hypothesis.tokens]])
            expected = model.decoder.attention(one, tokens)[0, : len(weights)]
            assert len(weights) == len(hypothesis.tokens) + hypothesis.finished
            assert_close(weights, expected, rtol=0, atol=1e-10)


def test_memory_and_decoder_may_differ_in_width():
    decoder = AttentionDecoder(9, 8, encoder_width=6, kind=CellKind.LSTM).double()
    model, batch = build(CONFIGS["gru"]), example_batch()
    memory = model.encode(batch)
    narrow = type(memory)(memory.states[..., :6], memory.mask, memory.summary[:, :6])
    assert decoder(narrow, batch.decoder_input).shape == (3, 6, 9)
