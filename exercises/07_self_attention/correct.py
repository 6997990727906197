"""Other right answers: each of these scores full marks."""

import math

import torch
from torch.nn import functional as F


# %% q1 split with slices
def split_heads(x, heads):
    K, rest = divmod(x.shape[2], heads)
    if rest:
        raise ValueError("pick a divisor of the width")
    return torch.stack([x[:, :, h * K : (h + 1) * K] for h in range(heads)], dim=1)


# %% q1 merge with permute and reshape
def merge_heads(x):
    B, H, T, K = x.shape
    return x.permute(0, 2, 1, 3).reshape(B, T, H * K)


# %% q1 merge with cat
def merge_heads(x):
    return torch.cat([x[:, h] for h in range(x.shape[1])], dim=2)


# %% q2 with einsum
def self_attention(x, W_Q, W_K, W_V, W_O):
    q, k, v = (torch.einsum("btd,hkd->bhtk", x, W) for W in (W_Q, W_K, W_V))
    weights = torch.softmax(q @ k.transpose(-1, -2) * q.size(-1) ** -0.5, dim=-1)
    return torch.einsum("bhts,bhsk,hdk->btd", weights, v, W_O)


# %% q2 with big matrices and the fused form
def self_attention(x, W_Q, W_K, W_V, W_O):
    project = torch.cat([W_Q, W_K, W_V]).flatten(0, 1)
    parts = (x @ project.T).unflatten(2, (3, len(W_Q), -1)).permute(2, 0, 3, 1, 4)
    seen = F.scaled_dot_product_attention(*parts)
    return seen.transpose(1, 2).flatten(2) @ W_O.transpose(0, 1).flatten(1).T


# %% q3 with triu
def causal_weights(scores):
    T = scores.shape[-1]
    return F.softmax(scores + torch.full((T, T), -math.inf).triu(1), dim=-1)


# %% q3 with positions and a very low number
def causal_weights(scores):
    t = torch.arange(scores.shape[-1])
    hidden = torch.where(t[:, None] >= t, scores, -1e9)
    exponentials = (hidden - hidden.amax(dim=-1, keepdim=True)).exp()
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


# %% q4 all at once
def perturbed(x):
    return x + torch.eye(len(x), dtype=x.dtype)[:, :, None]


def felt(before, after):
    return ((after - before).abs().amax(dim=2) > 1e-9).T


# %% q4 with noise and loops
def perturbed(x):
    copies = x.repeat(len(x), 1, 1)
    for j in range(len(x)):
        copies[j, j] -= 0.2 + torch.rand(x.shape[1], dtype=x.dtype)
    return copies


def felt(before, after):
    T = len(before)
    answer = torch.zeros(T, T, dtype=torch.bool)
    for i in range(T):
        for j in range(T):
            far = torch.dist(after[j, i], before[i])
            answer[i, j] = bool(far > 1e-9)
    return answer
