import warnings
from collections import Counter
from functools import partial

import pytest
import torch
from tiny_models import CONFIGS, SIZES, SMALL, build, example_batch
from torch import nn
from torch.testing import assert_close

from seq2seq_lib.data.vocabulary import PAD, Vocabulary
from seq2seq_lib.interface import EncoderDecoder
from seq2seq_lib.models.dropout import Dropout
from seq2seq_lib.models.fast import FoldedSource, lay_out_for_decoding
from seq2seq_lib.models.multi_head import causal_mask
from seq2seq_lib.models.normalization import NormKind, NormOrder
from seq2seq_lib.models.positional import PositionKind
from seq2seq_lib.models.rnn_seq2seq import RNNDecoder
from seq2seq_lib.models.saved import SavedModel, load_model, save_model
from seq2seq_lib.models.torch_transformer import from_torch, to_torch
from seq2seq_lib.models.transformer import TransformerConfig
from seq2seq_lib.models.transformer_blocks import FeedForward
from seq2seq_lib.models.transformer_stacks import (
    DropoutSites,
    TransformerDecoder,
    TransformerEncoder,
)
from seq2seq_lib.training.loss import cross_entropy

EXACT = {"rtol": 0, "atol": 1e-10}


def run_pytorchs(ours, theirs, batch):
    """nn.Transformer between our embeddings and our output layer."""
    states = theirs(
        ours.encoder.embedding(batch.source),
        ours.decoder.embedding(batch.decoder_input),
        tgt_mask=~causal_mask(batch.target.shape[1]),
        src_key_padding_mask=~batch.source_mask,
        memory_key_padding_mask=~batch.source_mask,
        tgt_key_padding_mask=None,
    )
    return ours.decoder.output(states).log_softmax(dim=-1)


@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("order", NormOrder)
def test_the_model_equals_pytorchs_transformer(order, padded):
    ours = build(TransformerConfig(**SIZES, **SMALL, order=order))
    theirs = to_torch(ours).train()  # the fast path of evaluation takes other kernels
    for module in theirs.modules():
        if isinstance(module, nn.Dropout):
            module.p = 0.0
    for layer in (*theirs.encoder.layers, *theirs.decoder.layers):
        layer.self_attn.dropout = 0.0
    for layer in theirs.decoder.layers:
        layer.multihead_attn.dropout = 0.0
    batch = example_batch()
    if not padded:
        batch = type(batch)(
            *(
                getattr(batch, name)[:1].clone()
                for name in (
                    "source",
                    "source_mask",
                    "decoder_input",
                    "target",
                    "target_mask",
                )
            )
        )
        assert batch.source_mask.all()
    mine, expected = ours(batch), run_pytorchs(ours, theirs, batch)
    assert_close(mine, expected, **EXACT)
    # and so are the gradients, carried over like the weights
    cross_entropy(mine, batch.target, batch.target_mask).backward()
    attention = ours.encoder.blocks[0].attention
    projections = (attention.query, attention.key, attention.value)
    ours_grad = torch.cat([layer.weight.grad for layer in projections])
    cross_entropy(expected, batch.target, batch.target_mask).backward()
    theirs_grad = theirs.encoder.layers[0].self_attn.in_proj_weight.grad
    assert_close(ours_grad, theirs_grad, **EXACT)


def test_weights_go_to_pytorch_and_back():
    config = TransformerConfig(**SIZES, **SMALL)
    first, second = build(config), config.build().double().eval()
    second.encoder.embedding.load_state_dict(first.encoder.embedding.state_dict())
    second.decoder.embedding.load_state_dict(first.decoder.embedding.state_dict())
    second.decoder.output.load_state_dict(first.decoder.output.state_dict())
    batch = example_batch()
    assert not torch.allclose(first(batch), second(batch))
    from_torch(to_torch(first), second)
    assert_close(first(batch), second(batch), **EXACT)


def test_every_weight_is_carried():
    ours = build(TransformerConfig(**SIZES, **SMALL))
    theirs = to_torch(ours)
    mine = sum(
        p.numel()
        for name, p in ours.named_parameters()
        if "embedding" not in name and "decoder.output" not in name
    )
    assert mine == sum(p.numel() for p in theirs.parameters())


@pytest.mark.parametrize(
    "options, message",
    [
        ({"norm": NormKind.BATCH}, "norm=batch"),
        ({"final_norm": False}, "final_norm=False"),
        ({"positions": PositionKind.ROTARY}, "rotary positions"),
    ],
)
def test_what_pytorch_does_not_offer_is_refused(options, message):
    model = TransformerConfig(**SIZES, **SMALL, **options).build()
    with pytest.raises(ValueError, match=f"does not offer {message}"):
        to_torch(model)


def test_other_sizes_and_other_models_are_refused():
    plain = partial(nn.Transformer, batch_first=True)
    model = TransformerConfig(**SIZES, **SMALL, order=NormOrder.POST).build()
    with pytest.raises(ValueError, match=r"2 \+ 2 layers, torch.nn.Transformer 1 \+ 1"):
        from_torch(plain(8, 2, 1, 1, 12), model)
    with pytest.raises(ValueError, match=r"shape \(16, 16\), ours \(8, 8\)"):
        from_torch(plain(16, 2, 2, 2, 12), model)
    with pytest.raises(ValueError, match=r"only a Transformer fits nn\.Transformer"):
        to_torch(build(CONFIGS["gru"]))


def test_the_feed_forward_network_is_two_one_by_one_convolutions():
    network = FeedForward(8, 12).double()
    first, second = nn.Conv1d(8, 12, 1).double(), nn.Conv1d(12, 8, 1).double()
    for convolution, linear in ((first, network.first), (second, network.second)):
        convolution.weight = nn.Parameter(linear.weight[..., None])
        convolution.bias = linear.bias
    x = torch.randn(2, 5, 8, dtype=torch.double)
    assert_close(network(x), second(first(x.mT).relu()).mT, **EXACT)


def test_the_embedding_is_scaled():
    model, batch = build(CONFIGS["transformer-bare"]), example_batch()
    embedding = model.encoder.embedding
    expected = embedding.embedding(batch.source) * 8**0.5
    assert_close(embedding(batch.source), expected, **EXACT)
    fresh = TransformerConfig(source_symbols=500, target_symbols=9).build()
    spread = fresh.encoder.embedding(torch.arange(500)[None]).std().item()
    assert spread == pytest.approx(1, abs=0.3)


def test_tied_weights_are_one_tensor():
    tied = TransformerConfig(**SIZES, **SMALL).build()
    free = TransformerConfig(**SIZES, **SMALL, tie_output=False).build()
    assert tied.decoder.output.weight is tied.decoder.embedding.embedding.weight
    count = {m: sum(p.numel() for p in m.parameters()) for m in (tied, free)}
    assert count[free] - count[tied] == 9 * 8


def test_one_vocabulary_may_have_one_embedding():
    sizes = {"source_symbols": 9, "target_symbols": 9}
    one = TransformerConfig(**sizes, **SMALL, tie_source=True).build()
    two = TransformerConfig(**sizes, **SMALL).build()
    shared = one.encoder.embedding.embedding.weight
    assert shared is one.decoder.embedding.embedding.weight is one.decoder.output.weight
    count = {m: sum(p.numel() for p in m.parameters()) for m in (one, two)}
    assert count[two] - count[one] == 9 * 8
    with pytest.raises(ValueError, match="needs one vocabulary"):
        TransformerConfig(source_symbols=9, target_symbols=8, tie_source=True)


def test_one_embedding_survives_a_file(tmp_path):
    sizes = {"source_symbols": 11, "target_symbols": 11}
    model = TransformerConfig(**sizes, **SMALL, tie_source=True).build().eval()
    symbols = Vocabulary("abcdefg")
    save_model(tmp_path / "m", SavedModel(model, symbols, symbols, "toy-copy"))
    again = load_model(tmp_path / "m", device=torch.device("cpu")).model
    assert again.encoder.embedding.embedding.weight is again.decoder.output.weight
    batch = example_batch()
    assert_close(again(batch), model(batch))


def sites(config):
    """How many dropouts act in each kind of place."""
    found = Counter()
    for name, module in config.build().named_modules():
        if isinstance(module, Dropout) and module.p > 0:
            part = name.split(".")
            found["embedding" if "embedding" in part else part[-2].split("_")[-1]] += 1
    return found


def test_dropout_stands_where_the_paper_or_pytorch_has_it():
    # two encoder blocks with two sublayers each, two decoder blocks with three
    paper = TransformerConfig(**SIZES, **SMALL)
    assert sites(paper) == {"embedding": 2, "residual": 10}
    torchs = TransformerConfig(**SIZES, **SMALL, dropout_sites=DropoutSites.TORCH)
    assert sites(torchs) == {"residual": 10, "forward": 4, "attention": 4, "cross": 2}
    theirs = to_torch(build(torchs))
    dropouts = [m for m in theirs.modules() if isinstance(m, nn.Dropout)]
    assert len(dropouts) == 10 + 4
    attentions = [m for m in theirs.modules() if isinstance(m, nn.MultiheadAttention)]
    assert [m.dropout for m in attentions] == [0.1] * 6


@pytest.mark.parametrize(
    "options, difference",
    [
        ({"nhead": 4}, "heads"),
        ({"activation": "gelu"}, "activation"),
        ({"layer_norm_eps": 1e-2}, "epsilon"),
        ({"bias": False}, "bias"),
        ({"norm_first": False}, "pre-norm"),
    ],
)
def test_other_choices_are_refused(options, difference):
    model = TransformerConfig(**SIZES, **SMALL).build()
    sizes = {"d_model": 8, "nhead": 2, "dim_feedforward": 12, "norm_first": True}
    layers = {"num_encoder_layers": 2, "num_decoder_layers": 2, "batch_first": True}
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="enable_nested_tensor")
        theirs = nn.Transformer(**(sizes | layers | options))
    with pytest.raises(ValueError, match=f"differs from our model in {difference}"):
        from_torch(theirs, model)


def test_heads_of_every_block_can_be_seen():
    model, batch = build(CONFIGS["transformer"]), example_batch()
    encoded = model.encode(batch)
    heads = model.decoder.heads(encoded, batch.decoder_input)
    assert [tuple(h.shape) for h in heads] == [(3, 2, 6, 6)] * 2
    assert_close(
        heads[-1].mean(dim=1), model.decoder.attention(encoded, batch.decoder_input)
    )
    encoder_heads = model.encoder.attention(batch.source, batch.source_mask)
    assert [tuple(h.shape) for h in encoder_heads] == [(3, 2, 6, 6)] * 2
    for weights in (*heads, *encoder_heads):
        assert_close(weights.sum(dim=-1), torch.ones_like(weights[..., 0]))
    # nothing of it stays behind
    assert not any(isinstance(v, torch.Tensor) for v in vars(model.decoder).values())


def test_the_cache_is_used():
    model, batch = build(CONFIGS["transformer"]), example_batch()
    state = model.decoder.init_state(model.encode(batch))
    for length in range(1, 4):
        _, state = model.decoder.step(batch.decoder_input[:, 0], state)
        assert [len(cache) for cache in state.caches] == [length] * 2


@pytest.mark.parametrize("padding", [0, 1])
def test_a_search_of_one_source_takes_a_shorter_way_to_the_same(padding):
    model, batch = build(CONFIGS["transformer"]), example_batch()
    source = torch.tensor([[4, 3] + [PAD] * padding])
    encoded = model.encoder(source, source != PAD)
    tokens = batch.decoder_input[:1]
    state = model.decoder.init_state(encoded)
    with torch.inference_mode():
        short = model.decoder.init_state(encoded)
        assert isinstance(short.fast[0].source, FoldedSource)
        for token in tokens[0]:
            rows = torch.zeros(3, dtype=torch.long)  # a beam of three
            state, short = state.reorder(rows), short.reorder(rows)
            scores, state = model.decoder.step(token.expand(3), state)
            same, short = model.decoder.step(token.expand(3), short)
            assert_close(same, scores, **EXACT)


def test_weights_are_dropped_on_the_shorter_way_too():
    model = build(CONFIGS["transformer-torch"]).train()
    for name, module in model.named_modules():
        if isinstance(module, Dropout):
            module.p = 0.5 if name.endswith("cross.dropout") else 0.0
    source = torch.tensor([[4, 3]])
    encoded, token = model.encoder(source, source != PAD), torch.tensor([5])
    with torch.inference_mode():
        state = model.decoder.init_state(encoded)
        found = [model.decoder.step(token, state)[0] for _ in range(9)]
    assert not all(torch.equal(one, found[0]) for one in found)


@pytest.mark.parametrize(
    "rows, sources, each",
    [
        ([0, 0, 1, 1, 2, 2], 3, 2),  # a beam of two: nothing of the sources is copied
        ([2, 2, 2, 0, 0, 0], 2, 3),  # a source has left, the others changed places
        ([0, 1, 1], 3, 1),  # not in groups: every row has its own copy
        ([1], 1, 1),
    ],
)
def test_rows_of_a_source_share_its_keys_and_values(rows, sources, each):
    model, batch = build(CONFIGS["transformer"]), example_batch()
    state = model.decoder.init_state(model.encode(batch))
    _, state = model.decoder.step(batch.decoder_input[:, 0], state)
    shared = state.reorder(torch.tensor(rows))
    assert (len(shared.sources[0].key), shared.rows) == (sources, each)
    assert (shared.sources is state.sources) == (rows == [0, 0, 1, 1, 2, 2])
    token = torch.arange(3, 3 + len(rows))
    scores, _ = model.decoder.step(token, shared)
    for number, row in enumerate(rows):
        alone, _ = model.decoder.step(
            token[number, None], state.reorder(torch.tensor([row]))
        )
        assert_close(scores[number, None], alone, **EXACT)


@pytest.mark.parametrize(
    "options, message",
    [
        ({"heads": 3}, "width=8 does not split into heads=3: pick a divisor of 8"),
        ({"heads": 8, "positions": PositionKind.ROTARY}, "rotary positions turn pairs"),
        ({"feed_forward": 0}, "feed_forward=0: expected at least 1"),
    ],
)
def test_wrong_sizes_are_refused(options, message):
    with pytest.raises(ValueError, match=message):
        TransformerConfig(**(SIZES | SMALL | options))


def test_encoder_and_decoder_must_fit():
    encoder = TransformerEncoder(11, TransformerConfig(**SIZES, **SMALL))
    decoder = RNNDecoder(9, 8, encoder_width=6)
    with pytest.raises(ValueError, match=r"has width 8, but the decoder .* for 6"):
        EncoderDecoder(encoder, decoder)


def test_a_sequence_beyond_the_learned_table_is_refused():
    config = TransformerConfig(
        **SIZES, **SMALL, positions=PositionKind.LEARNED, longest=4
    )
    with pytest.raises(ValueError, match="position 5 was never learned"):
        config.build()(example_batch())


def test_batch_norm_in_a_decoder_leaks_the_future_in_training():
    model, batch = build(CONFIGS["transformer-batch"]).train(), example_batch()
    for module in model.modules():
        if isinstance(module, Dropout):
            module.p = 0.0
    encoded = model.encode(batch)
    before = model.decoder(encoded, batch.decoder_input)
    tokens = batch.decoder_input.clone()
    tokens[1, 5] = 8
    after = model.decoder(encoded, tokens)
    assert (after[1, :5] - before[1, :5]).abs().max() > 1e-4


@pytest.mark.parametrize("name", ["transformer", "transformer-rotary"])
def test_the_full_pass_alone_decodes_as_the_cached_decoder_does(name):
    model, batch = build(CONFIGS[name]), example_batch()
    plain = TransformerDecoder(model.config).double().eval()
    plain.load_state_dict(model.decoder.state_dict())
    encoded, rows = model.encode(batch), torch.tensor([2, 0, 0])
    states = [decoder.init_state(encoded) for decoder in (plain, model.decoder)]
    for token in batch.decoder_input.unbind(1):
        scores, states[0] = plain.step(token, states[0].reorder(rows))
        expected, states[1] = model.decoder.step(token, states[1].reorder(rows))
        assert_close(scores, expected, **EXACT)


@pytest.mark.parametrize("by_columns", [False, True])
@pytest.mark.parametrize("rows", [1, 3])
@pytest.mark.parametrize("name", ["transformer", "transformer-rotary"])
def test_a_search_multiplies_once_for_query_key_and_value(name, rows, by_columns):
    model, batch = build(CONFIGS[name]), example_batch()
    if by_columns:
        lay_out_for_decoding(model)
    encoded = model.encode(batch).reorder(torch.arange(rows))
    state = model.decoder.init_state(encoded)
    with torch.inference_mode():
        fast = model.decoder.init_state(encoded)
        assert all(block.weight.shape == (24, 8) for block in fast.fast)
        for token in batch.decoder_input[:rows].unbind(1):
            scores, state = model.decoder.step(token, state)
            same, fast = model.decoder.step(token, fast)
            assert_close(same, scores, **EXACT)


@pytest.mark.parametrize("positions", ["rotary", "sinusoidal"])
def test_a_long_search_may_be_followed_by_training(positions):
    config = TransformerConfig(
        **SIZES, **SMALL, positions=PositionKind(positions), longest=4
    )
    model = config.build()
    source = torch.full((1, 300), 5)
    with torch.inference_mode():
        state = model.decoder.init_state(model.encoder(source, source > 0))
        for _ in range(300):
            _, state = model.decoder.step(torch.tensor([5]), state)
    outputs = model.decoder(model.encoder(source, source > 0), source)
    outputs.sum().backward()


def test_query_key_and_value_are_drawn_as_pytorch_draws_its_one_matrix():
    config = TransformerConfig(**SIZES, width=64, heads=2, feed_forward=8)
    model = config.build()
    theirs = nn.Transformer(64, 2, 1, 1, 8, batch_first=True)
    for block, layer in (
        (model.encoder.blocks[0], theirs.encoder.layers[0]),
        (model.decoder.blocks[0], theirs.decoder.layers[0]),
    ):
        attention = block.attention
        for mine in (attention.query, attention.key, attention.value):
            expected = layer.self_attn.in_proj_weight.std()
            assert_close(mine.weight.std(), expected, rtol=0.05, atol=0)
        mine, expected = attention.output.weight, layer.self_attn.out_proj.weight
        assert_close(mine.std(), expected.std(), rtol=0.05, atol=0)
