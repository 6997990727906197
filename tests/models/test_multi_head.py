import jaxtyping
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from seq2seq_lib.models.multi_head import (
    FEW_KEYS,
    CrossAttention,
    FoldedSource,
    KeyValue,
    SelfAttention,
    causal_mask,
    merge_heads,
    split_heads,
)

EXACT = {"rtol": 0, "atol": 1e-10}
MASK = torch.tensor([[True] * 5, [True] * 3 + [False] * 2])


@pytest.fixture
def x():
    return torch.randn(2, 5, 8, dtype=torch.double, requires_grad=True)


def pytorchs(ours):
    """nn.MultiheadAttention with our weights; its mask means the opposite of ours."""
    theirs = nn.MultiheadAttention(8, ours.heads, batch_first=True, dtype=torch.double)
    if isinstance(ours, SelfAttention):
        weight, bias = ours.project.weight, ours.project.bias
    else:
        weight = torch.cat([ours.query.weight, ours.memory.weight])
        bias = torch.cat([ours.query.bias, ours.memory.bias])
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
    ours = SelfAttention(8, heads).double()
    mask = None if causal else MASK[:, None]
    mine, looked = ours(x, mask, causal=causal, weights=weights)
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
        assert_close(looked, their_weights, **EXACT)
    else:
        assert looked is None
    assert_close(
        torch.autograd.grad(mine.sin().sum(), x),
        torch.autograd.grad(theirs.sin().sum(), x),
        **EXACT,
    )


@pytest.mark.parametrize("weights", [False, True])
def test_cross_attention_equals_pytorch(x, weights):
    ours = CrossAttention(8, 2, encoder_width=8).double()
    query = torch.randn(2, 3, 8, dtype=torch.double)
    mine, looked = ours(query, ours.prepare(x), MASK[:, None], weights=weights)
    theirs, their_weights = pytorchs(ours)(
        query, x, x, key_padding_mask=~MASK, average_attn_weights=False
    )
    assert_close(mine, theirs, **EXACT)
    if weights:
        assert_close(looked, their_weights, **EXACT)


def test_the_two_forms_agree_forward_and_backward(x):
    attention = SelfAttention(8, 2).double()
    for options in ({"mask": MASK[:, None]}, {"causal": True}):
        fused, _ = attention(x, **options)
        readable, _ = attention(x, **options, weights=True)
        assert_close(fused, readable, **EXACT)
        parameters = (x, *attention.parameters())
        for mine, theirs in zip(
            torch.autograd.grad(fused.sin().sum(), parameters),
            torch.autograd.grad(readable.sin().sum(), parameters),
            strict=True,
        ):
            assert_close(mine, theirs, **EXACT)


@pytest.mark.parametrize("keys", [FEW_KEYS, FEW_KEYS + 1])
def test_in_few_bits_either_form_gives_about_the_same(keys, device, monkeypatch):
    asked = []
    fused = F.scaled_dot_product_attention

    def count(*arguments, **options):
        asked.append(arguments)
        return fused(*arguments, **options)

    monkeypatch.setattr(F, "scaled_dot_product_attention", count)
    torch.manual_seed(0)
    attention = SelfAttention(8, 2).to(device)
    x = torch.randn(2, keys, 8, device=device)
    mask = torch.ones(2, 1, keys, dtype=torch.bool, device=device)
    mask[0, :, -5:] = False
    with torch.autocast(device.type, dtype=torch.bfloat16):
        few, _ = attention(x, mask, causal=True)
    assert bool(asked) is (keys > FEW_KEYS or device.type != "cpu")
    exact, _ = attention(x, mask, causal=True)
    assert_close(few.float(), exact, rtol=0, atol=0.03)


def test_steps_with_a_cache_equal_the_causal_pass(x):
    attention = SelfAttention(8, 2).double()
    whole, _ = attention(x, causal=True)
    past = None
    for t in range(5):
        seen, past = attention.step(x[:, t], past)
        assert_close(seen, whole[:, t], **EXACT)
        assert past.shape == (t + 1, 2, 2, 2, 4)


@pytest.mark.parametrize("row", [0, 1], ids=["whole", "padded"])
def test_a_source_alone_with_projections_multiplied_in_gives_the_same(x, row):
    cross, one = CrossAttention(16, 2, encoder_width=8).double(), slice(row, row + 1)
    memory = cross.prepare(x[one])
    folded = cross.fold(memory, MASK[one])
    assert isinstance(folded, FoldedSource)
    query = torch.randn(3, 16, dtype=torch.double)  # three rows, as in a beam
    assert_close(
        cross.step(query, folded, None),
        cross(query[None], memory, MASK[one, None])[0][0],
        **EXACT,
    )


def test_only_a_short_source_alone_is_multiplied_in(x):
    cross = CrossAttention(8, 2, encoder_width=8).double()
    both, long = cross.prepare(x), cross.prepare(x[:1])
    assert isinstance(cross.fold(both, MASK), KeyValue)
    assert isinstance(cross.fold(long, MASK[:1]), KeyValue)  # 2 · 5 > 8


def test_heads_are_slices_of_the_features(x):
    heads = split_heads(x, 2)
    assert torch.equal(heads[:, 1], x[..., 4:])
    assert torch.equal(merge_heads(heads), x)


def test_dropout_drops_weights_in_training_only(x):
    attention = SelfAttention(8, 2, dropout=0.5).double()
    first, _ = attention.train()(x)
    second, _ = attention(x)
    assert not torch.equal(first, second)
    first, _ = attention.eval()(x)
    second, _ = attention(x)
    assert torch.equal(first, second)


def test_self_attention_does_not_know_the_order(x):
    attention = SelfAttention(8, 2).double()
    order = torch.tensor([3, 0, 4, 1, 2])
    assert_close(attention(x[:, order])[0], attention(x)[0][:, order], **EXACT)


def test_a_memory_may_have_another_width(x):
    cross = CrossAttention(8, 2, encoder_width=6).double()
    memory = cross.prepare(torch.randn(2, 5, 6, dtype=torch.double))
    assert cross(x, memory, MASK[:, None])[0].shape == x.shape


def test_heads_must_divide_the_width():
    for kind in (SelfAttention, lambda w, h: CrossAttention(w, h, encoder_width=8)):
        with pytest.raises(ValueError, match="width=8 does not split into heads=3"):
            kind(8, 3)


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
        SelfAttention(8, 2).double()(x, mask, weights=weights)


@pytest.mark.parametrize("weights", [False, True])
def test_a_mask_without_batch_axis_is_refused(x, weights, monkeypatch):
    # as two axes it could be read as one mask for each head
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=r"expected three axes, the batch \(2 or 1\)"):
        SelfAttention(8, 2).double()(x, causal_mask(5), weights=weights)


@pytest.mark.parametrize("dropout", [0.0, 1e-9])
def test_a_mask_and_causality_go_together(x, dropout):
    attention = SelfAttention(8, 2, dropout=dropout).double().train()
    fused, _ = attention(x, MASK[:, None], causal=True)
    readable, weights = attention(x, MASK[:, None], causal=True, weights=True)
    assert_close(fused, readable, rtol=0, atol=1e-6)
    assert not weights[
        ~(causal_mask(5) & MASK[:, None])[:, None].expand_as(weights)
    ].any()
