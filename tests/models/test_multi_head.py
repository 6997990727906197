import jaxtyping
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from seq2seq_lib.models.fast import FEW_KEYS, FoldedSource, fold
from seq2seq_lib.models.multi_head import (
    MultiHeadAttention,
    SelfAttention,
    causal_mask,
    merge_heads,
    split_heads,
)
from seq2seq_lib.models.positional import Rotary
from seq2seq_lib.models.transformer import (
    KeyValue,
    attend_to_prefix,
    attend_to_source,
)

EXACT = {"rtol": 0, "atol": 1e-10}
MASK = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])


@pytest.fixture
def x():
    return torch.randn(2, 5, 8, dtype=torch.double, requires_grad=True)


def pytorchs(ours):
    """nn.MultiheadAttention with our weights; its mask means the opposite of ours."""
    theirs = nn.MultiheadAttention(8, ours.heads, batch_first=True, dtype=torch.double)
    projections = (ours.query, ours.key, ours.value)
    weight = torch.cat([layer.weight for layer in projections])
    bias = torch.cat([layer.bias for layer in projections])
    theirs.load_state_dict(
        {
            "in_proj_weight": weight,
            "in_proj_bias": bias,
            "out_proj.weight": ours.output.weight,
            "out_proj.bias": ours.output.bias,
        }
    )
    return theirs


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize("heads", [1, 2, 8])
def test_self_attention_equals_pytorch(x, heads, causal, weights):
    ours = MultiHeadAttention(8, heads).double()
    mask = None if causal else MASK[:, None]
    mine, shares = ours(x, x, mask, causal=causal, weights=weights)
    theirs, their_weights = pytorchs(ours)(
        x,
        x,
        x,
        key_padding_mask=None if causal else ~MASK,
        attn_mask=~causal_mask(5) if causal else None,
        average_attn_weights=False,
    )
    assert_close(mine, theirs, **EXACT)
    if weights:
        assert_close(shares, their_weights, **EXACT)
    else:
        assert shares is None
    assert_close(
        torch.autograd.grad(mine.sin().sum(), x),
        torch.autograd.grad(theirs.sin().sum(), x),
        **EXACT,
    )


@pytest.mark.parametrize("weights", [False, True])
def test_cross_attention_equals_pytorch(x, weights):
    ours = MultiHeadAttention(8, 2).double()
    query = torch.randn(2, 3, 8, dtype=torch.double)
    mine, shares = ours(query, x, MASK[:, None], weights=weights)
    theirs, their_weights = pytorchs(ours)(
        query, x, x, key_padding_mask=~MASK, average_attn_weights=False
    )
    assert_close(mine, theirs, **EXACT)
    if weights:
        assert_close(shares, their_weights, **EXACT)


def test_the_two_forms_agree_forward_and_backward(x):
    attention = MultiHeadAttention(8, 2).double()
    for options in ({"mask": MASK[:, None]}, {"causal": True}):
        fused, _ = attention(x, x, **options)
        readable, _ = attention(x, x, **options, weights=True)
        assert_close(fused, readable, **EXACT)
        parameters = (x, *attention.parameters())
        for mine, theirs in zip(
            torch.autograd.grad(fused.sin().sum(), parameters),
            torch.autograd.grad(readable.sin().sum(), parameters),
            strict=True,
        ):
            assert_close(mine, theirs, **EXACT)


def test_steps_with_a_cache_equal_the_causal_pass(x):
    attention = MultiHeadAttention(8, 2, rotary=Rotary(4)).double()
    whole, _ = attention(x, x, causal=True)
    cache = None
    for t in range(5):
        layers = (attention.query, attention.key, attention.value)
        three = torch.cat([layer(x[:, t]) for layer in layers], dim=-1)
        output, cache = attend_to_prefix(attention, three, cache)
        assert_close(output, whole[:, t], **EXACT)
        assert cache.shape == (t + 1, 2, 2, 2, 4)


def keys_and_values(cross, source):
    return KeyValue(
        split_heads(cross.key(source), cross.heads),
        split_heads(cross.value(source), cross.heads),
    )


@pytest.mark.parametrize("rows", [1, 3])
def test_rows_that_share_a_source_attend_to_it(x, rows):
    cross = MultiHeadAttention(16, 2, source_width=8).double()
    queries = torch.randn(2, rows, 16, dtype=torch.double)
    output = attend_to_source(
        cross, queries.flatten(0, 1), keys_and_values(cross, x), MASK[:, None, None]
    )
    expected, _ = cross(queries, x, MASK[:, None])
    assert_close(output.view(2, rows, 16), expected, **EXACT)


@pytest.mark.parametrize("row", [0, 1], ids=["whole", "padded"])
def test_a_source_alone_with_projections_multiplied_in_gives_the_same(x, row):
    cross, one = MultiHeadAttention(16, 2, source_width=8).double(), slice(row, row + 1)
    source = keys_and_values(cross, x[one])
    folded = fold(cross.query, cross.output, *source, MASK[one])
    query = torch.randn(3, 16, dtype=torch.double)  # three rows, as in a beam
    assert_close(
        folded.attend(query),
        cross(query[None], x[one], MASK[one, None])[0][0],
        **EXACT,
    )


def test_only_a_short_source_alone_is_multiplied_in(x):
    cross = MultiHeadAttention(8, 2).double()
    both, long, short = (keys_and_values(cross, s) for s in (x, x[:1], x[:1, :4]))
    assert fold(cross.query, cross.output, *both, MASK) is None
    assert fold(cross.query, cross.output, *long, MASK[:1]) is None  # 2 · 5 > 8
    folded = fold(cross.query, cross.output, *short, MASK[:1, :4])
    assert isinstance(folded, FoldedSource)


def test_one_head_by_hand(x):
    attention = SelfAttention(8).double()
    mixed, weights = attention(x, MASK[:, None])
    row, query = 1, attention.query(x)[1, 0]  # the second row has three positions
    scores = torch.stack([query @ attention.key(x)[row, s] / 8**0.5 for s in range(3)])
    expected = scores.softmax(dim=0)
    assert_close(weights[row, 0, :3], expected, **EXACT)
    assert not weights[row, :, 3:].any()
    values = attention.value(x)[row, :3]
    assert_close(mixed[row, 0], expected @ values, **EXACT)


def test_many_heads_are_several_attentions_side_by_side(x):
    many = MultiHeadAttention(8, 2).double()
    for layer in (many.query, many.key, many.value):
        nn.init.zeros_(layer.bias)
    mixed = []
    for head in range(2):
        part = slice(4 * head, 4 * head + 4)
        one = SelfAttention(8).double()
        for name in ("query", "key", "value"):
            weight = torch.zeros(8, 8, dtype=torch.double)
            weight[part] = getattr(many, name).weight[part].detach()
            getattr(one, name).weight.data = weight
        one.query.weight.data *= 2**0.5  # scores are divided by √8, not by √4
        mixed.append(one(x, MASK[:, None])[0][..., part])
    expected = many.output(torch.cat(mixed, dim=-1))
    assert_close(many(x, x, MASK[:, None])[0], expected, **EXACT)


def test_heads_are_slices_of_the_features(x):
    heads = split_heads(x, 2)
    assert torch.equal(heads[:, 1], x[..., 4:])
    assert torch.equal(merge_heads(heads), x)


def test_dropout_drops_weights_in_training_only(x):
    attention = MultiHeadAttention(8, 2, dropout=0.5).double()
    first, _ = attention.train()(x, x)
    second, _ = attention(x, x)
    assert not torch.equal(first, second)
    first, _ = attention.eval()(x, x)
    second, _ = attention(x, x)
    assert torch.equal(first, second)


def test_self_attention_does_not_know_the_order(x):
    attention = MultiHeadAttention(8, 2).double()
    order = torch.tensor([3, 0, 4, 1, 2])
    shuffled = x[:, order]
    assert_close(
        attention(shuffled, shuffled)[0], attention(x, x)[0][:, order], **EXACT
    )


def test_a_source_may_have_another_width(x):
    cross = MultiHeadAttention(8, 2, source_width=6).double()
    source = torch.randn(2, 5, 6, dtype=torch.double)
    assert cross(x, source, MASK[:, None])[0].shape == x.shape


def test_heads_must_divide_the_width():
    with pytest.raises(ValueError, match="width=8 does not split into heads=3"):
        MultiHeadAttention(8, 3)


@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize(
    "mask, message",
    [
        (MASK[:, None].double(), "expected torch.bool"),
        (MASK[:, None, :4], r"queries and keys, \(5, 5\) or \(1, 5\)"),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(x, mask, message, weights, monkeypatch):
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=message):
        MultiHeadAttention(8, 2).double()(x, x, mask, weights=weights)


@pytest.mark.parametrize("weights", [False, True])
def test_a_mask_without_batch_axis_is_refused(x, weights, monkeypatch):
    # as two axes it could be read as one mask for each head
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=r"expected three axes, the batch \(2 or 1\)"):
        MultiHeadAttention(8, 2).double()(x, x, causal_mask(5), weights=weights)


@pytest.mark.parametrize("dropout", [0.0, 1e-9])
def test_a_mask_and_causality_go_together(x, dropout):
    attention = MultiHeadAttention(8, 2, dropout=dropout).double().train()
    fused, _ = attention(x, x, MASK[:, None], causal=True)
    readable, weights = attention(x, x, MASK[:, None], causal=True, weights=True)
    assert_close(fused, readable, rtol=0, atol=1e-6)
    assert not weights[
        ~(causal_mask(5) & MASK[:, None])[:, None].expand_as(weights)
    ].any()


@pytest.mark.parametrize("keys", [FEW_KEYS, FEW_KEYS + 1])
def test_in_few_bits_either_way_gives_about_the_same(keys, device, monkeypatch):
    calls = []
    fused = F.scaled_dot_product_attention

    def count(*arguments, **options):
        calls.append(arguments)
        return fused(*arguments, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", count)
    torch.manual_seed(0)
    attention = MultiHeadAttention(8, 2).to(device)
    x = torch.randn(2, keys, 8, device=device)
    mask = torch.ones(2, 1, keys, dtype=torch.bool, device=device)
    mask[0, :, -5:] = False
    with torch.autocast(device.type, dtype=torch.bfloat16):
        few, _ = attention(x, x, mask, causal=True)
    assert bool(calls) is (keys > FEW_KEYS or device.type != "cpu")
    exact, _ = attention(x, x, mask, causal=True)
    torch.testing.assert_close(few.float(), exact, rtol=0, atol=0.03)
