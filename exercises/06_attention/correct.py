"""Other right answers: each of these scores full marks."""

import math

import torch
from torch.nn import functional as F


# %% q1 with exponentials
def masked_softmax(scores, mask):
    if not mask.any(-1).all():
        raise ValueError("nothing to look at")
    hidden = torch.where(mask, scores, torch.tensor(-math.inf))
    exponentials = (hidden - hidden.amax(dim=-1, keepdim=True)).exp()
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


# %% q1 with loops
def masked_softmax(scores, mask):
    B, T, S = scores.shape
    mask = mask.expand(B, T, S)
    weights = torch.zeros(B, T, S)
    for b in range(B):
        for t in range(T):
            seen = mask[b, t]
            if not seen.any():
                raise ValueError
            weights[b, t, seen] = F.softmax(scores[b, t, seen], dim=0)
    return weights


# %% q2 with einsum
def attention(query, key, value, mask):
    scores = torch.einsum("btk,bsk->bts", query, key) * query.size(-1) ** -0.5
    weights = torch.softmax(torch.where(mask, scores, -1e9), -1)
    return torch.einsum("bts,bsv->btv", weights, value), weights


# %% q2 with the library
def attention(query, key, value, mask):
    identity = torch.eye(key.shape[1]).expand(len(key), -1, -1)
    weights = F.scaled_dot_product_attention(query, key, identity, attn_mask=mask)
    averages = F.scaled_dot_product_attention(query, key, value, attn_mask=mask)
    return averages, weights


# %% q3 with loops
def additive_scores(query, key, W, U, v):
    rows = []
    for t in range(query.shape[1]):
        columns = []
        for s in range(key.shape[1]):
            columns.append(torch.tanh(query[:, t] @ W.T + key[:, s] @ U.T) @ v)
        rows.append(torch.stack(columns, dim=-1))
    return torch.stack(rows, dim=1)


# %% q3 as one layer on the concatenation
def additive_scores(query, key, W, U, v):
    T, S = query.shape[1], key.shape[1]
    both = torch.cat(
        [
            query[:, :, None].expand(-1, -1, S, -1),
            key[:, None].expand(-1, T, -1, -1),
        ],
        dim=-1,
    )
    return F.linear(F.linear(both, torch.cat([W, U], dim=1)).tanh(), v[None])[..., 0]


# %% q4 with cdist
def kernel_regression(query, key, value, width):
    distance = torch.cdist(query[:, None], key[:, None])
    return F.softmax(-0.5 * (distance / width).square(), dim=1).matmul(value)
