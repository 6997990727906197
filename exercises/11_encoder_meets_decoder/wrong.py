"""Wrong answers: each must be told its mistake first, and lose its own question only."""

import math

import torch

PAD, EOS = 0, 2


def masks_of(source_mask, target_mask):
    S, T = source_mask.shape[1], target_mask.shape[1]
    return (
        source_mask[:, None].expand(-1, S, -1),
        torch.ones(T, T, dtype=torch.bool).tril(),
        target_mask[:, None].expand(-1, T, -1),
        source_mask[:, None].expand(-1, T, -1),
    )


def cut(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def weights_of(query, key, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return scores.masked_fill(~mask[:, None, None], -torch.inf).softmax(dim=-1)


def appended(x, past, W_K, W_V):
    new = torch.stack([x @ W_K.T, x @ W_V.T], dim=1)[None]
    return new if past is None else torch.cat([past, new])


def seen_by(query, cache, scale=None):
    key, value = cache.unbind(2)
    scores = torch.einsum("rd,urd->ru", query, key)
    scores = scores * (query.shape[1] ** -0.5 if scale is None else scale)
    return torch.einsum("ru,urd->rd", scores.softmax(dim=-1), value)


def chosen_of(log_probabilities, target):
    return -log_probabilities.gather(2, target[..., None])[..., 0]


# %% q1 inverted
# The masks look inverted
def four_masks(source_mask, target_mask):
    return tuple(~mask for mask in masks_of(source_mask, target_mask))


# %% q1 rows hidden
# The rows of padding are hidden, not the columns
def four_masks(source_mask, target_mask):
    encoder, causal, target, cross = masks_of(source_mask, target_mask)
    return encoder.mT, causal, target.mT, cross


# %% q1 rows and columns hidden
# a softmax of nothing
def four_masks(source_mask, target_mask):
    encoder, causal, target, cross = masks_of(source_mask, target_mask)
    return encoder & encoder.mT, causal, target & target.mT, cross


# %% q1 causal encoder
# an encoder may look both ways
def four_masks(source_mask, target_mask):
    encoder, causal, target, cross = masks_of(source_mask, target_mask)
    return encoder.tril(), causal, target, cross


# %% q1 triangle upside down
# The triangle is upside down
def four_masks(source_mask, target_mask):
    encoder, causal, target, cross = masks_of(source_mask, target_mask)
    return encoder, causal.T, target, cross


# %% q1 diagonal missing
# The diagonal is missing
def four_masks(source_mask, target_mask):
    encoder, causal, target, cross = masks_of(source_mask, target_mask)
    return encoder, causal.tril(-1), target, cross


# %% q1 target padding joined with the triangle
# they are joined where they are used
def four_masks(source_mask, target_mask):
    encoder, causal, target, cross = masks_of(source_mask, target_mask)
    return encoder, causal, target & causal, cross


# %% q1 cross mask of the target
# The cross mask hides padding of the target
def four_masks(source_mask, target_mask):
    encoder, causal, target, cross = masks_of(source_mask, target_mask)
    return encoder, causal, target, target_mask[:, :, None].expand_as(cross)


# %% q1 cross mask transposed
# The cross mask is transposed
def four_masks(source_mask, target_mask):
    encoder, causal, target, cross = masks_of(source_mask, target_mask)
    return encoder, causal, target, cross.mT


# %% q1 causal cross mask
# The cross mask is a triangle
def four_masks(source_mask, target_mask):
    encoder, causal, target, cross = masks_of(source_mask, target_mask)
    return encoder, causal, target, cross.tril()


# %% q2 memory and decoder swapped
# Shapes do not fit: W_Q takes the decoder's x
def cross_attention(x, states, mask, W_Q, W_K, W_V, heads):
    query, key, value = (cut(y, heads) for y in (states @ W_Q.T, x @ W_K.T, x @ W_V.T))
    return (weights_of(query, key, mask) @ value).transpose(1, 2).flatten(2)


# %% q2 no scale
# Scores look mis-scaled: divide by the square root of the head width
def cross_attention(x, states, mask, W_Q, W_K, W_V, heads):
    query, key = cut(x @ W_Q.T, heads), cut(states @ W_K.T, heads)
    scores = (query @ key.mT).masked_fill(~mask[:, None, None], -torch.inf)
    value = cut(states @ W_V.T, heads)
    return (scores.softmax(dim=-1) @ value).transpose(1, 2).flatten(2)


# %% q2 scale of the whole width
# Scores are divided by √D
def cross_attention(x, states, mask, W_Q, W_K, W_V, heads):
    query, key = cut(x @ W_Q.T, heads), cut(states @ W_K.T, heads)
    scores = query @ key.mT / math.sqrt(x.shape[-1])
    weights = scores.masked_fill(~mask[:, None, None], -torch.inf).softmax(dim=-1)
    return (weights @ cut(states @ W_V.T, heads)).transpose(1, 2).flatten(2)


# %% q2 mask forgotten
# padding of the source is seen
def cross_attention(x, states, mask, W_Q, W_K, W_V, heads):
    query, key, value = (
        cut(y, heads) for y in (x @ W_Q.T, states @ W_K.T, states @ W_V.T)
    )
    weights = weights_of(query, key, torch.ones_like(mask))
    return (weights @ value).transpose(1, 2).flatten(2)


# %% q2 mask inverted
# The mask hides real positions of the source
def cross_attention(x, states, mask, W_Q, W_K, W_V, heads):
    query, key, value = (
        cut(y, heads) for y in (x @ W_Q.T, states @ W_K.T, states @ W_V.T)
    )
    weights = weights_of(query, key, ~mask).nan_to_num()
    return (weights @ value).transpose(1, 2).flatten(2)


# %% q2 one head
# There is one head only
def cross_attention(x, states, mask, W_Q, W_K, W_V, heads):
    query, key, value = (cut(y, 1) for y in (x @ W_Q.T, states @ W_K.T, states @ W_V.T))
    return (weights_of(query, key, mask) @ value).transpose(1, 2).flatten(2)


# %% q2 every H-th feature
# A head takes every H-th feature
def cross_attention(x, states, mask, W_Q, W_K, W_V, heads):
    query, key, value = (
        y.unflatten(-1, (-1, heads)).permute(0, 3, 1, 2)
        for y in (x @ W_Q.T, states @ W_K.T, states @ W_V.T)
    )
    return (weights_of(query, key, mask) @ value).permute(0, 2, 3, 1).flatten(2)


# %% q2 a view that mixes positions
# A view straight to B H T K mixes them
def cross_attention(x, states, mask, W_Q, W_K, W_V, heads):
    query, key, value = (
        y.reshape(y.shape[0], heads, y.shape[1], -1)
        for y in (x @ W_Q.T, states @ W_K.T, states @ W_V.T)
    )
    return (weights_of(query, key, mask) @ value).transpose(1, 2).flatten(2)


# %% q2 heads not moved back
# The heads are right but come back mixed
def cross_attention(x, states, mask, W_Q, W_K, W_V, heads):
    query, key, value = (
        cut(y, heads) for y in (x @ W_Q.T, states @ W_K.T, states @ W_V.T)
    )
    return (weights_of(query, key, mask) @ value).reshape(x.shape)


# %% q2 keys averaged
# The keys are averaged
def cross_attention(x, states, mask, W_Q, W_K, W_V, heads):
    query, key = cut(x @ W_Q.T, heads), cut(states @ W_K.T, heads)
    return (weights_of(query, key, mask) @ key).transpose(1, 2).flatten(2)


# %% q2 keys and values swapped
# W_K and W_V are swapped
def cross_attention(x, states, mask, W_Q, W_K, W_V, heads):
    query, key, value = (
        cut(y, heads) for y in (x @ W_Q.T, states @ W_V.T, states @ W_K.T)
    )
    return (weights_of(query, key, mask) @ value).transpose(1, 2).flatten(2)


# %% q2 padding taken to stand at the end
# The order of the memory's states makes a difference
def cross_attention(x, states, mask, W_Q, W_K, W_V, heads):
    query, key, value = (
        cut(y, heads) for y in (x @ W_Q.T, states @ W_K.T, states @ W_V.T)
    )
    real = torch.arange(mask.shape[1]) < mask.sum(dim=1, keepdim=True)
    return (weights_of(query, key, real) @ value).transpose(1, 2).flatten(2)


# %% q3 no first step
# The first step fails
def cached_step(x, past, W_Q, W_K, W_V):
    cache = torch.cat([past, appended(x, None, W_K, W_V)])
    return seen_by(x @ W_Q.T, cache), cache


# %% q3 key and value swapped
# Key and value are swapped in the cache
def cached_step(x, past, W_Q, W_K, W_V):
    cache = appended(x, past, W_V, W_K)
    return seen_by(x @ W_Q.T, cache.flip(2)), cache


# %% q3 inputs cached
# The cache holds x
def cached_step(x, past, W_Q, W_K, W_V):
    new = torch.stack([x, x], dim=1)[None]
    cache = new if past is None else torch.cat([past, new])
    key, value = cache.unbind(2)
    projected = torch.stack([key @ W_K.T, value @ W_V.T], dim=2)
    return seen_by(x @ W_Q.T, projected), cache


# %% q3 cache does not grow
# The cache is as short as before
def cached_step(x, past, W_Q, W_K, W_V):
    cache = appended(x, past, W_K, W_V)
    return seen_by(x @ W_Q.T, cache), cache if past is None else past


# %% q3 past forgotten
# The cache forgets the past
def cached_step(x, past, W_Q, W_K, W_V):
    cache = appended(x, past, W_K, W_V)
    return seen_by(x @ W_Q.T, cache), cache[-1:]


# %% q3 newest first
# The new position stands in front
def cached_step(x, past, W_Q, W_K, W_V):
    new = appended(x, None, W_K, W_V)
    cache = new if past is None else torch.cat([new, past])
    return seen_by(x @ W_Q.T, cache), cache


# %% q3 does not look at itself
# The new position does not look at itself
def cached_step(x, past, W_Q, W_K, W_V):
    cache = appended(x, past, W_K, W_V)
    return seen_by(x @ W_Q.T, cache if past is None else past), cache


# %% q3 sees only itself
# The step sees only the new position
def cached_step(x, past, W_Q, W_K, W_V):
    return x @ W_V.T, appended(x, past, W_K, W_V)


# %% q3 no scale
# The scores of the step are not scaled
def cached_step(x, past, W_Q, W_K, W_V):
    cache = appended(x, past, W_K, W_V)
    return seen_by(x @ W_Q.T, cache, scale=1.0), cache


# %% q3 rows look at each other
# Rows look at each other's past
def cached_step(x, past, W_Q, W_K, W_V):
    cache = appended(x, past, W_K, W_V)
    if past is None:
        return x @ W_V.T, cache
    key, value = (y.flatten(0, 1) for y in cache.unbind(2))
    scores = x @ W_Q.T @ key.T / math.sqrt(x.shape[1])
    return scores.softmax(dim=-1) @ value, cache


# %% q3 softmax over the rows
# The weights add up over the rows
def cached_step(x, past, W_Q, W_K, W_V):
    cache = appended(x, past, W_K, W_V)
    if past is None:
        return x @ W_V.T, cache
    key, value = cache.unbind(2)
    scores = torch.einsum("rd,urd->ru", x @ W_Q.T, key) / math.sqrt(x.shape[1])
    return torch.einsum("ru,urd->rd", scores.softmax(dim=0), value), cache


# %% q4 past not reordered
# The past is not reordered
def reorder(past, memory, rows):
    width = past.shape[1] // len(memory)
    return past, memory[(rows // width).unique_consecutive()]


# %% q4 time reordered
# The time of the past is reordered
def reorder(past, memory, rows):
    width = past.shape[1] // len(memory)
    return past[rows], memory[(rows // width).unique_consecutive()]


# %% q4 sent where it should be fetched
# Rows are sent where they should be fetched
def reorder(past, memory, rows):
    width = past.shape[1] // len(memory)
    moved = torch.zeros_like(past[:, rows])
    moved[:, rows] = past[:, : len(rows)]
    return moved, memory[(rows // width).unique_consecutive()]


# %% q4 rows kept once
# Every row is kept once in the past
def reorder(past, memory, rows):
    width = past.shape[1] // len(memory)
    kept = torch.tensor(list(dict.fromkeys(rows.tolist())))
    return past[:, kept], memory[(rows // width).unique_consecutive()]


# %% q4 a copy for each row
# The memory has a copy for each row
def reorder(past, memory, rows):
    width = past.shape[1] // len(memory)
    return past[:, rows], memory[rows // width]


# %% q4 memory indexed by rows
# An index is too large
def reorder(past, memory, rows):
    return past[:, rows], memory[rows]


# %% q4 rows of each source afterwards
# not by how many it gets
def reorder(past, memory, rows):
    width = len(rows) // len(memory)
    return past[:, rows], memory[(rows // width).unique()]


# %% q4 divided by the sources
# divide by the rows of each source, R / B
def reorder(past, memory, rows):
    return past[:, rows], memory[(rows // len(memory)).unique()]


# %% q4 memory left alone
# Sources that are done are still in the memory
def reorder(past, memory, rows):
    return past[:, rows], memory


# %% q4 first sources kept
# The first sources are kept
def reorder(past, memory, rows):
    width = past.shape[1] // len(memory)
    return past[:, rows], memory[: len((rows // width).unique())]


# %% q4 remainder
# The source is the remainder
def reorder(past, memory, rows):
    return past[:, rows], memory[(rows % len(memory)).unique()]


# %% q5 not shifted
# The target is not shifted
def sequence_loss(log_probabilities, tokens):
    target = tokens[:, :-1]
    return chosen_of(log_probabilities, target)[target != PAD].mean()


# %% q5 padding scored
# the model is paid for saying PAD
def sequence_loss(log_probabilities, tokens):
    return chosen_of(log_probabilities, tokens[:, 1:]).mean()


# %% q5 divided by all positions
# it is divided by all positions
def sequence_loss(log_probabilities, tokens):
    target = tokens[:, 1:]
    chosen = chosen_of(log_probabilities, target)
    return chosen[target != PAD].sum() / target.numel()


# %% q5 mean of the rows' means
# Each row is averaged first
def sequence_loss(log_probabilities, tokens):
    target = tokens[:, 1:]
    mask = target != PAD
    chosen = chosen_of(log_probabilities, target).masked_fill(~mask, 0)
    return (chosen.sum(dim=1) / mask.sum(dim=1)).mean()


# %% q5 sign
# The sign is wrong
def sequence_loss(log_probabilities, tokens):
    target = tokens[:, 1:]
    return -chosen_of(log_probabilities, target)[target != PAD].mean()


# %% q5 sum
# This is the sum: divide it by the number of real symbols
def sequence_loss(log_probabilities, tokens):
    target = tokens[:, 1:]
    return chosen_of(log_probabilities, target)[target != PAD].sum()


# %% q5 divided by the rows
# This is the sum divided by the rows
def sequence_loss(log_probabilities, tokens):
    target = tokens[:, 1:]
    return chosen_of(log_probabilities, target)[target != PAD].sum() / len(tokens)


# %% q5 the end not scored
# EOS is not scored
def sequence_loss(log_probabilities, tokens):
    target = tokens[:, 1:]
    inside = (target != PAD) & (target != EOS)
    return chosen_of(log_probabilities, target)[inside].mean()


# %% q5 multiplied by the mask
# Select the real symbols, do not multiply by the mask
def sequence_loss(log_probabilities, tokens):
    target = tokens[:, 1:]
    mask = target != PAD
    return (chosen_of(log_probabilities, target) * mask).sum() / mask.sum()
