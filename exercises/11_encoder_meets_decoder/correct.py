"""Other right answers: each of these scores full marks."""

import math

import torch
from torch.nn import functional as F

PAD = 0


# %% q1 by comparing positions
def four_masks(source_mask, target_mask):
    S, T = source_mask.shape[1], target_mask.shape[1]
    position = torch.arange(T)
    return (
        source_mask.unsqueeze(1).repeat(1, S, 1),
        position[None, :] <= position[:, None],
        target_mask.unsqueeze(1).repeat(1, T, 1),
        source_mask.unsqueeze(1).repeat(1, T, 1),
    )


# %% q1 with loops
def four_masks(source_mask, target_mask):
    (B, S), T = source_mask.shape, target_mask.shape[1]
    encoder, target = torch.zeros(B, S, S).bool(), torch.zeros(B, T, T).bool()
    causal, cross = torch.zeros(T, T).bool(), torch.zeros(B, T, S).bool()
    for b in range(B):
        for s in range(S):
            encoder[b, :, s] = source_mask[b, s]
            cross[b, :, s] = source_mask[b, s]
        for j in range(T):
            target[b, :, j] = target_mask[b, j]
            causal[j:, j] = True
    return encoder, causal, target, cross


# %% q2 one head after the other
def cross_attention(x, states, mask, W_Q, W_K, W_V, heads):
    K = x.shape[2] // heads
    seen = []
    for h in range(heads):
        part = slice(h * K, (h + 1) * K)
        query, key = x @ W_Q[part].T, states @ W_K[part].T
        scores = torch.einsum("btk,bsk->bts", query, key) / K**0.5
        weights = torch.where(mask[:, None], scores, -1e9).softmax(-1)
        seen.append(weights @ (states @ W_V[part].T))
    return torch.cat(seen, dim=-1)


# %% q2 with the library
def cross_attention(x, states, mask, W_Q, W_K, W_V, heads):
    projected = F.linear(x, W_Q), F.linear(states, W_K), F.linear(states, W_V)
    query, key, value = (
        y.view(y.shape[0], y.shape[1], heads, -1).transpose(1, 2) for y in projected
    )
    seen = F.scaled_dot_product_attention(
        query, key, value, attn_mask=mask[:, None, None, :]
    )
    return seen.transpose(1, 2).reshape(x.shape)


# %% q3 row by row
def cached_step(x, past, W_Q, W_K, W_V):
    new = torch.stack([x @ W_K.T, x @ W_V.T], dim=1).unsqueeze(0)
    cache = torch.cat([past, new], dim=0) if past is not None else new
    seen = []
    for r in range(len(x)):
        key, value = cache[:, r, 0], cache[:, r, 1]
        weights = (key @ (W_Q @ x[r]) / math.sqrt(len(x[r]))).softmax(dim=0)
        seen.append(weights @ value)
    return torch.stack(seen), cache


# %% q3 with the library
def cached_step(x, past, W_Q, W_K, W_V):
    if past is None:
        past = x.new_empty(0, len(x), 2, x.shape[1])
    cache = torch.cat([past, torch.stack([x @ W_K.T, x @ W_V.T], 1)[None]])
    key, value = cache.permute(2, 1, 0, 3)
    query = (x @ W_Q.T)[:, None]
    return F.scaled_dot_product_attention(query, key, value)[:, 0], cache


# %% q4 with lists
def reorder(past, memory, rows):
    width = past.shape[1] // memory.shape[0]
    sources = list(dict.fromkeys(row // width for row in rows.tolist()))
    return past.index_select(1, rows), torch.stack([memory[s] for s in sources])


# %% q4 with a view in groups
def reorder(past, memory, rows):
    width = past.shape[1] // len(memory)
    goes_on = torch.zeros(len(memory), dtype=torch.bool)
    goes_on[rows // width] = True
    return torch.stack([past[:, row] for row in rows], dim=1), memory[goes_on]


# %% q5 with the library
def sequence_loss(log_probabilities, tokens):
    return F.nll_loss(log_probabilities.mT, tokens[:, 1:], ignore_index=PAD)


# %% q5 with loops
def sequence_loss(log_probabilities, tokens):
    total, count = 0.0, 0
    for row, said in zip(log_probabilities, tokens, strict=True):
        for scores, symbol in zip(row, said[1:], strict=True):
            if symbol != PAD:
                total -= scores[symbol].item()
                count += 1
    return total / count
