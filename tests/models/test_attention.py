import math

import jaxtyping
import pytest
import torch
from torch import nn
from torch.nn import functional as F
from torch.testing import assert_close

from seq2seq_lib.models.attention import (
    AdditiveScores,
    BilinearScores,
    DotAttention,
    DotScores,
    LearnedDotScores,
    ScoreKind,
    dot_product_attention,
    make_scores,
    masked_softmax,
)

EXACT = {"rtol": 0, "atol": 1e-10}
MASK = torch.tensor([[[True] * 5], [[True] * 3 + [False] * 2]])  # B 1 S


@pytest.fixture
def query():
    return torch.randn(2, 4, 6, dtype=torch.double, requires_grad=True)


@pytest.fixture
def key():
    return torch.randn(2, 5, 6, dtype=torch.double, requires_grad=True)


def test_dot_product_attention_equals_pytorch(query, key):
    value = torch.randn(2, 5, 3, dtype=torch.double)
    output, weights = dot_product_attention(query, key, value, MASK)
    expected = F.scaled_dot_product_attention(query, key, value, attn_mask=MASK)
    assert_close(output, expected, **EXACT)
    assert_close(weights @ value, output, **EXACT)
    for tensor in (query, key):
        mine = torch.autograd.grad(output.sum(), tensor, retain_graph=True)
        theirs = torch.autograd.grad(expected.sum(), tensor, retain_graph=True)
        assert_close(mine, theirs, **EXACT)


def test_weights_are_shares_of_what_may_be_seen(query, key):
    _, weights = dot_product_attention(query, key, key, MASK)
    assert_close(weights.sum(dim=-1), torch.ones(2, 4, dtype=torch.double), **EXACT)
    assert (weights[1, :, 3:] == 0).all()
    assert (weights[1, :, :3] > 0).all()


def test_what_is_hidden_changes_nothing(query, key):
    other = key.detach().clone()
    other[1, 3:] = 1e3
    assert_close(
        dot_product_attention(query, key, key, MASK)[0][1],
        dot_product_attention(query, other, other, MASK)[0][1],
        **EXACT,
    )


def test_a_query_that_may_see_nothing_is_refused():
    mask = torch.tensor([[True, True], [False, False]])
    with pytest.raises(ValueError, match="mask hides every key from some query"):
        masked_softmax(torch.zeros(2, 2), mask)


@pytest.mark.parametrize("kind", ScoreKind)
def test_prepared_keys_give_the_same_scores(kind, query, key):
    scores = make_scores(kind, query_width=6, key_width=6).double()
    whole = scores(query, key)
    assert whole.shape == (2, 4, 5)
    prepared = scores.prepare(key)
    for t in range(4):
        step = scores.compare(query[:, t : t + 1], prepared)
        assert_close(step[:, 0], whole[:, t], **EXACT)


def test_additive_scores_are_a_network_on_the_concatenation(query, key):
    scores = AdditiveScores(6, 6, 7).double()
    network = nn.Sequential(nn.Linear(12, 7), nn.Tanh(), nn.Linear(7, 1, bias=False))
    network.double()
    with torch.no_grad():
        network[0].weight.copy_(torch.cat([scores.query.weight, scores.key.weight], 1))
        network[0].bias.copy_(scores.key.bias)
        network[2].weight.copy_(scores.output.weight)
    pairs = torch.cat(
        [query[:, :, None].expand(-1, -1, 5, -1), key[:, None].expand(-1, 4, -1, -1)],
        dim=-1,
    )
    assert_close(scores(query, key), network(pairs)[..., 0], **EXACT)


def test_dot_and_bilinear_scores_by_hand(query, key):
    dot = DotScores(6, 6, scaled=False)(query, key)
    assert_close(dot[1, 2, 3], (query[1, 2] * key[1, 3]).sum(), **EXACT)
    scaled = DotScores(6, 6, scaled=True)(query, key)
    assert_close(scaled * math.sqrt(6), dot, **EXACT)
    bilinear = BilinearScores(6, 6).double()
    expected = torch.einsum("btq,qd,bsd->bts", query, bilinear.matrix.weight, key)
    assert_close(bilinear(query, key), expected, **EXACT)


def test_learned_dot_products_are_those_of_projections(query, key):
    scores = LearnedDotScores(6, 6).double()
    w, u = scores.query.weight, scores.key.weight
    expected = torch.einsum("btq,aq,ad,bsd->bts", query, w, u, key) / math.sqrt(6)
    assert_close(scores(query, key), expected, **EXACT)
    # (W q) · (U k) = qᵀ (Wᵀ U) k, so a bilinear score can be the same
    bilinear = BilinearScores(6, 6).double()
    with torch.no_grad():
        bilinear.matrix.weight.copy_(w.mT @ u / math.sqrt(6))
    assert_close(bilinear(query, key), expected, **EXACT)


MASK_PER_QUERY = torch.ones(2, 4, 5, dtype=torch.bool).tril(1)


@pytest.mark.parametrize("mask", [MASK, MASK[:1], MASK_PER_QUERY])
def test_dot_attention_equals_pytorch_with_the_same_weights(query, key, mask):
    attention = DotAttention(6).double()
    theirs = nn.MultiheadAttention(6, 1, bias=False, batch_first=True).double()
    with torch.no_grad():
        identity = torch.eye(6, dtype=torch.double)
        parts = [attention.query.weight, attention.key.weight, identity]
        theirs.in_proj_weight.copy_(torch.cat(parts))
        theirs.out_proj.weight.copy_(identity)
    value = torch.randn(2, 5, 6, dtype=torch.double)
    context, weights = attention(query, key, value, mask)
    hidden = ~mask.expand(2, 4, 5)  # True means hidden there
    expected = theirs(query, key, value, attn_mask=hidden)
    assert_close((context, weights), expected, **EXACT)
    assert (weights[hidden] == 0).all()


def test_dot_attention_has_the_weights_of_its_scores(query, key):
    attention = DotAttention(6).double()
    scores = LearnedDotScores(6, 6).double()
    scores.load_state_dict(attention.state_dict())
    value = torch.randn(2, 5, 3, dtype=torch.double)  # of any width
    context, weights = attention(query, key, value, MASK)
    assert_close(weights, masked_softmax(scores(query, key), MASK), **EXACT)
    assert_close(context, weights @ value, **EXACT)


def test_scores_between_different_widths():
    query, key = torch.randn(1, 2, 3), torch.randn(1, 4, 5)
    for kind in (ScoreKind.ADDITIVE, ScoreKind.BILINEAR, ScoreKind.LEARNED_DOT):
        assert make_scores(kind, query_width=3, key_width=5)(query, key).shape == (
            1,
            2,
            4,
        )
    with pytest.raises(ValueError, match=r"queries have 3 and keys 5: use bilinear"):
        make_scores(ScoreKind.DOT, query_width=3, key_width=5)


@pytest.mark.parametrize(
    "mask, message",
    [
        (MASK.double(), r"type torch.float64: expected torch.bool, True = may look"),
        (MASK.long(), r"type torch.int64: expected torch.bool"),
        (
            MASK[..., :4],
            r"shape \(2, 1, 4\): .* queries and keys, \(4, 5\) or \(1, 5\)",
        ),
        (MASK.mT, r"shape \(2, 5, 1\)"),
        (MASK[0, 0], r"shape \(5,\)"),
    ],
)
def test_a_mask_that_does_not_fit_is_refused(query, key, mask, message, monkeypatch):
    # readers have no checker of shapes to tell them
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)
    with pytest.raises(ValueError, match=message):
        dot_product_attention(query, key, key, mask)
    with pytest.raises(ValueError, match=message):
        DotAttention(6).double()(query, key, key, mask)
