"""Wrong answers: each must be told its mistake first, and lose its own question only."""

import math

import torch


# %% q1 split by view alone
# One position was cut into several
def split_heads(x, heads):
    B, T, D = x.shape
    if D % heads:
        raise ValueError
    return x.view(B, heads, T, D // heads)


# %% q1 split with every second feature
# A head got every H-th feature
def split_heads(x, heads):
    if x.shape[2] % heads:
        raise ValueError
    return x.unflatten(2, (-1, heads)).permute(0, 3, 1, 2)


# %% q1 split without transposing
# The heads stand behind the positions
def split_heads(x, heads):
    if x.shape[2] % heads:
        raise ValueError
    return x.unflatten(2, (heads, -1))


# %% q1 split loses features
# A width that the heads do not divide
def split_heads(x, heads):
    K = x.shape[2] // heads
    return x[:, :, : heads * K].unflatten(2, (heads, K)).transpose(1, 2)


# %% q1 merge by view
# view cannot join axes
def merge_heads(x):
    B, H, T, K = x.shape
    return x.transpose(1, 2).view(B, T, H * K)


# %% q1 merge without transposing
# Positions were merged with heads
def merge_heads(x):
    B, H, T, K = x.shape
    return x.reshape(B, T, H * K)


# %% q1 merge alternates
# The features of the heads alternate
def merge_heads(x):
    return x.permute(0, 2, 3, 1).flatten(2)


# %% q1 merge adds up
# The heads are added up
def merge_heads(x):
    return x.sum(dim=1)


# %% q1 merged into a shape that does not fit
# merge_heads stops at B H T K. PyTorch says
def merge_heads(x):
    B, H, T, K = x.shape
    return x.transpose(1, 2).reshape(B, T, H + K)


# %% q2 queries and keys swapped
# Queries and keys are swapped
def self_attention(x, W_Q, W_K, W_V, W_O):
    output = torch.zeros_like(x)
    for Q, K, V, out in zip(W_Q, W_K, W_V, W_O, strict=True):
        scores = (x @ K.T) @ (x @ Q.T).mT / math.sqrt(len(Q))
        output = output + scores.softmax(dim=-1) @ (x @ V.T) @ out.T
    return output


# %% q2 scaled by the whole width
# a score adds up K products
def self_attention(x, W_Q, W_K, W_V, W_O):
    output = torch.zeros_like(x)
    for Q, K, V, out in zip(W_Q, W_K, W_V, W_O, strict=True):
        scores = (x @ Q.T) @ (x @ K.T).mT / math.sqrt(x.shape[-1])
        output = output + scores.softmax(dim=-1) @ (x @ V.T) @ out.T
    return output


# %% q2 softmax over those who ask
# the softmax belongs over j
def self_attention(x, W_Q, W_K, W_V, W_O):
    output = torch.zeros_like(x)
    for Q, K, V, out in zip(W_Q, W_K, W_V, W_O, strict=True):
        scores = (x @ Q.T) @ (x @ K.T).mT / math.sqrt(len(Q))
        output = output + scores.softmax(dim=1) @ (x @ V.T) @ out.T
    return output


# %% q2 no output matrix
# W_O is missing
def self_attention(x, W_Q, W_K, W_V, W_O):
    heads = []
    for Q, K, V in zip(W_Q, W_K, W_V, strict=True):
        scores = (x @ Q.T) @ (x @ K.T).mT / math.sqrt(len(Q))
        heads.append(scores.softmax(dim=-1) @ (x @ V.T))
    return torch.cat(heads, dim=-1)


# %% q2 not scaled
# divide by the root of K
def self_attention(x, W_Q, W_K, W_V, W_O):
    output = torch.zeros_like(x)
    for Q, K, V, out in zip(W_Q, W_K, W_V, W_O, strict=True):
        scores = (x @ Q.T) @ (x @ K.T).mT
        output = output + scores.softmax(dim=-1) @ (x @ V.T) @ out.T
    return output


# %% q2 one wide head
# All heads share one softmax
def self_attention(x, W_Q, W_K, W_V, W_O):
    q, k, v = (x @ W.flatten(0, 1).T for W in (W_Q, W_K, W_V))
    seen = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1) @ v
    return seen @ W_O.transpose(0, 1).flatten(1).T


# %% q2 only the last head
# Only the last head is heard
def self_attention(x, W_Q, W_K, W_V, W_O):
    for Q, K, V, out in zip(W_Q, W_K, W_V, W_O, strict=True):
        scores = (x @ Q.T) @ (x @ K.T).mT / math.sqrt(len(Q))
        output = scores.softmax(dim=-1) @ (x @ V.T) @ out.T
    return output


# %% q2 heads averaged
# The contributions of the heads are averaged
def self_attention(x, W_Q, W_K, W_V, W_O):
    q, k, v = (x[:, None] @ W.mT for W in (W_Q, W_K, W_V))
    seen = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1) @ v
    return (seen @ W_O.mT).mean(dim=1)


# %% q2 output matrix reshaped
# The slices of W_O are mixed up
def self_attention(x, W_Q, W_K, W_V, W_O):
    q, k, v = (x[:, None] @ W.mT for W in (W_Q, W_K, W_V))
    seen = (q @ k.mT / math.sqrt(q.shape[-1])).softmax(dim=-1) @ v
    return seen.transpose(1, 2).flatten(2) @ W_O.reshape(x.shape[-1], -1).T


# %% q3 nothing hidden
# Nothing is hidden
def causal_weights(scores):
    return scores.softmax(dim=-1)


# %% q3 off by one
# each position sees the next
def causal_weights(scores):
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(diagonal=1)
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)


# %% q3 not even itself
# A position may look at itself
def causal_weights(scores):
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril(diagonal=-1)
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)


# %% q3 upper triangle
# The past is hidden and the future is seen
def causal_weights(scores):
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).triu()
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)


# %% q3 mask after the softmax
# The mask comes after the softmax
def causal_weights(scores):
    return scores.softmax(dim=-1).tril()


# %% q3 filled with zero
# a score of 0 is a score like any other
def causal_weights(scores):
    return scores.tril().softmax(dim=-1)


# %% q3 softmax over those who look
# The weights add up over those who look
def causal_weights(scores):
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=-2)


# %% q3 repaired after the softmax
# A loud future leaves 0/0
def causal_weights(scores):
    weights = scores.softmax(dim=-1).tril()
    return weights / weights.sum(dim=-1, keepdim=True)


# %% q3 filled with minus ten thousand
# only minus infinity always is
def causal_weights(scores):
    mask = torch.ones(scores.shape[-2:], dtype=torch.bool).tril()
    return scores.masked_fill(~mask, -10_000).softmax(dim=-1)


# %% q4 not cloned
# was x itself changed? Clone it first
def perturbed(x):
    copies = []
    for j in range(len(x)):
        changed = x
        changed[j] += 1
        copies.append(changed)
    return torch.stack(copies)


# %% q4 the changes pile up
# The changes pile up
def perturbed(x):
    copies, changed = [], x.clone()
    for j in range(len(x)):
        changed = changed.clone()
        changed[j] += 1
        copies.append(changed)
    return torch.stack(copies)


# %% q4 doubled
# A position of zeros was not changed
def perturbed(x):
    copies = []
    for j in range(len(x)):
        changed = x.clone()
        changed[j] *= 2
        copies.append(changed)
    return torch.stack(copies)


# %% q4 all but one position changed
# Everything else was changed
def perturbed(x):
    copies = []
    for j in range(len(x)):
        changed = x + 1
        changed[j] = x[j]
        copies.append(changed)
    return torch.stack(copies)


# %% q4 one feature
# Only the first feature was changed
def perturbed(x):
    copies = []
    for j in range(len(x)):
        changed = x.clone()
        changed[j, 0] += 1
        copies.append(changed)
    return torch.stack(copies)


# %% q4 negated
# A feature of a changed position kept its value
def perturbed(x):
    copies = []
    for j in range(len(x)):
        changed = x.clone()
        changed[j] = -x[j] if x[j].any() else x[j] + 1
        copies.append(changed)
    return torch.stack(copies)


# %% q4 a tiny change
# A change is smaller than 0.1
def perturbed(x):
    copies = []
    for j in range(len(x)):
        changed = x.clone()
        changed[j] += 1e-6
        copies.append(changed)
    return torch.stack(copies)


# %% q4 a huge change
# A change is larger than 10
def perturbed(x):
    return x + 1e4 * torch.eye(len(x), dtype=x.dtype)[..., None]


# %% q4 always the same number
# Perturbed once more, a position stayed as it was
def perturbed(x):
    copies = []
    for j in range(len(x)):
        changed = x.clone()
        changed[j] = 7
        copies.append(changed)
    return torch.stack(copies)


# %% q4 another precision
# The copies have another precision than x
def perturbed(x):
    copies = torch.zeros(len(x), *x.shape)
    for j in range(len(x)):
        copies[j] = x
        copies[j, j] += 1
    return copies


# %% q4 a coarse threshold
# A small move is not seen
def felt(before, after):
    return (after - before).norm(dim=2).T > 1e-5


# %% q4 rows and columns swapped
# Rows and columns are swapped
def felt(before, after):
    return (after - before).norm(dim=2) > 1e-9


# %% q4 only upwards
# Only moves upwards are seen
def felt(before, after):
    return (after - before).amax(dim=2).T > 1e-9


# %% q4 the sum of the moves
# Only outputs are seen that move upwards on the whole
def felt(before, after):
    return (after - before).sum(dim=2).T > 1e-9


# %% q4 features cancel
# Features that move in opposite directions cancel
def felt(before, after):
    return (after - before).sum(dim=2).abs().T > 1e-9


# %% q4 all features must move
# An output counts only if all its features move
def felt(before, after):
    return ((after - before).abs() > 1e-9).all(dim=2).T


# %% q4 what stays
# Movement and rest are mixed up
def felt(before, after):
    return (after - before).norm(dim=2).T < 1e-9


# %% q4 compared with zero
# Rounding is taken for movement
def felt(before, after):
    return (after != before).any(dim=2).T
