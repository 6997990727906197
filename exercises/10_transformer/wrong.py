"""Wrong answers: each must be told its mistake first, and lose its own question only."""

import math

import torch
from torch.nn import functional as F


def chosen(log_p, target):
    return log_p.gather(-1, target[..., None])[..., 0]


def entropy(*shares):
    return -sum(q * math.log(q) for q in shares if q > 0)


def added(x, sublayer, gain):
    return x + sublayer(F.layer_norm(x, gain.shape, gain))


def size_of_block(width, hidden, *, cross):
    looks = 2 if cross else 1
    look = 4 * (width**2 + width)
    return looks * look + 2 * width * hidden + hidden + width + (looks + 1) * 2 * width


# %% q1 no scale
# Embeddings look mis-scaled: multiply them by the square root of the width
def embed(tokens, table, positions, start):
    return table[tokens] + positions[start : start + tokens.shape[1]]


# %% q1 times the width
# Embeddings are multiplied by the width itself
def embed(tokens, table, positions, start):
    here = positions[start : start + tokens.shape[1]]
    return table[tokens] * table.shape[1] + here


# %% q1 positions scaled
# Positions are multiplied by √D too
def embed(tokens, table, positions, start):
    here = positions[start : start + tokens.shape[1]]
    return (table[tokens] + here) * math.sqrt(table.shape[1])


# %% q1 start not used
# The positions begin at 0
def embed(tokens, table, positions, start):
    here = positions[: tokens.shape[1]]
    return table[tokens] * math.sqrt(table.shape[1]) + here


# %% q1 positions down the batch
# The positions run down the batch
def embed(tokens, table, positions, start):
    here = positions[start : start + len(tokens)][:, None]
    return table[tokens] * math.sqrt(table.shape[1]) + here


# %% q1 all positions behind the start
# of `positions` take T rows
def embed(tokens, table, positions, start):
    return table[tokens] * math.sqrt(table.shape[1]) + positions[start:]


# %% q2 no activation
# two linear layers are one
def feed_forward(x, W_1, b_1, W_2, b_2):
    return (x @ W_1.T + b_1) @ W_2.T + b_2


# %% q2 cut twice
# The output is cut at 0 too
def feed_forward(x, W_1, b_1, W_2, b_2):
    return ((x @ W_1.T + b_1).relu() @ W_2.T + b_2).relu()


# %% q2 bias behind the activation
# b₁ is added behind max(0, ·)
def feed_forward(x, W_1, b_1, W_2, b_2):
    return ((x @ W_1.T).relu() + b_1) @ W_2.T + b_2


# %% q2 second bias forgotten
# b₂ is missing
def feed_forward(x, W_1, b_1, W_2, b_2):
    return (x @ W_1.T + b_1).relu() @ W_2.T


# %% q2 matrices not transposed
# a matrix is out × in
def feed_forward(x, W_1, b_1, W_2, b_2):
    return (x @ W_1 + b_1).relu() @ W_2 + b_2


# %% q2 positions for features
# conv1d wants the features in the middle
def convolved(x, k_1, b_1, k_2, b_2):
    return F.conv1d(F.conv1d(x, k_1, b_1).relu(), k_2, b_2)


# %% q2 reshaped
# reshape and view only cut the row of numbers anew
def convolved(x, k_1, b_1, k_2, b_2):
    B, T, D = x.shape
    y = F.conv1d(F.conv1d(x.view(B, D, T), k_1, b_1).relu(), k_2, b_2)
    return y.view(B, T, D)


# %% q2 not swapped back
# The output is B D T
def convolved(x, k_1, b_1, k_2, b_2):
    return F.conv1d(F.conv1d(x.transpose(1, 2), k_1, b_1).relu(), k_2, b_2)


# %% q3 step 0 learns nothing
# Everything comes one step late
def learning_rate(step, peak, warmup):
    if step < warmup:
        return peak * step / warmup
    return peak * math.sqrt(max(1, warmup) / max(1, step))


# %% q3 rise one step late
# the peak is never reached
def learning_rate(step, peak, warmup):
    if step < warmup:
        return peak * step / warmup
    return peak * math.sqrt(max(1, warmup) / (step + 1))


# %% q3 fall one step late
# the peak lasts two steps
def learning_rate(step, peak, warmup):
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * math.sqrt(max(1, warmup) / max(1, step))


# %% q3 the paper's formula from 0
# Step 0 divides by zero
def learning_rate(step, peak, warmup):
    return peak * warmup**0.5 * min(step**-0.5, step * warmup**-1.5)


# %% q3 falls too quickly
# It falls as 1/n
def learning_rate(step, peak, warmup):
    n, w = step + 1, max(1, warmup)
    return peak * min(n / w, w / n)


# %% q3 a cliff
# It jumps down behind the warm-up
def learning_rate(step, peak, warmup):
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak / math.sqrt(step + 1)


# %% q3 counted from the warm-up
# The fall counts the steps behind the warm-up
def learning_rate(step, peak, warmup):
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak / math.sqrt(step - warmup + 2)


# %% q3 constant
# It does not fall
def learning_rate(step, peak, warmup):
    return peak * min(1.0, (step + 1) / max(1, warmup))


# %% q3 the larger one
# The larger of rise and fall
def learning_rate(step, peak, warmup):
    n, w = step + 1, max(1, warmup)
    return peak * max(n / w, math.sqrt(w / n))


# %% q3 divided by no warm-up
# With warmup 0 something is divided by it
def learning_rate(step, peak, warmup):
    n = step + 1
    return peak * min(n / warmup, math.sqrt(warmup / n))


# %% q3 nothing without a warm-up
# With warmup 0 all rates are 0
def learning_rate(step, peak, warmup):
    if step < warmup:
        return peak * (step + 1) / warmup
    return peak * math.sqrt(warmup / (step + 1))


# %% q4 not smoothed
# Nothing is smoothed
def smoothed_loss(log_p, target, mask, epsilon):
    return -chosen(log_p, target)[mask].mean()


# %% q4 spread over the others
# ε went to the other V − 1 symbols
def smoothed_loss(log_p, target, mask, epsilon):
    right = chosen(log_p, target)
    others = (log_p.sum(dim=-1) - right) / (log_p.shape[-1] - 1)
    return -((1 - epsilon) * right + epsilon * others)[mask].mean()


# %% q4 shares below one
# The shares do not add up to 1
def smoothed_loss(log_p, target, mask, epsilon):
    q = torch.full_like(log_p, epsilon / log_p.shape[-1])
    q.scatter_(-1, target[..., None], 1 - epsilon)
    return -(q * log_p).sum(dim=-1)[mask].mean()


# %% q4 added up over the vocabulary
# The surprises at all symbols are added up
def smoothed_loss(log_p, target, mask, epsilon):
    right = chosen(log_p, target)
    return -((1 - epsilon) * right + epsilon * log_p.sum(dim=-1))[mask].mean()


# %% q4 even part over padding
# The even part is averaged over padding too
def smoothed_loss(log_p, target, mask, epsilon):
    right = chosen(log_p, target)[mask].mean()
    return -((1 - epsilon) * right + epsilon * log_p.mean())


# %% q4 padding counts
# Padding counts
def smoothed_loss(log_p, target, mask, epsilon):
    right = chosen(log_p, target)
    return -((1 - epsilon) * right + epsilon * log_p.mean(dim=-1)).mean()


# %% q4 probabilities smoothed
# The model's probabilities are smoothed
def smoothed_loss(log_p, target, mask, epsilon):
    p = chosen(log_p, target).exp()
    return -((1 - epsilon) * p + epsilon / log_p.shape[-1]).log()[mask].mean()


# %% q4 nothing to lose
# No model reaches 0
def lowest_loss(symbols, epsilon):
    return 0.0


# %% q4 two shares apart
# add its two shares before the logarithm
def lowest_loss(symbols, epsilon):
    return entropy(1 - epsilon, *[epsilon / symbols] * symbols)


# %% q4 surprise at the right symbol
# This is the surprise at the right symbol
def lowest_loss(symbols, epsilon):
    return -math.log(1 - epsilon + epsilon / symbols)


# %% q4 logarithm of zero
# 0 log 0 counts as 0
def lowest_loss(symbols, epsilon):
    rest = epsilon / symbols
    most = 1 - epsilon + rest
    return -most * math.log(most) - (symbols - 1) * rest * math.log(rest)


# %% q5 source first
# It looks at the source first
def decoder_block(x, memory, causal, real, weights):
    first, second, third = weights["gains"]
    x = added(x, lambda y: attend(y, memory, real, weights["cross"]), second)
    x = added(x, lambda y: attend(y, y, causal, weights["attention"]), first)
    return added(x, lambda y: think(y, *weights["think"]), third)


# %% q5 thinks too early
# It thinks before it looks at the source
def decoder_block(x, memory, causal, real, weights):
    first, second, third = weights["gains"]
    x = added(x, lambda y: attend(y, y, causal, weights["attention"]), first)
    x = added(x, lambda y: think(y, *weights["think"]), third)
    return added(x, lambda y: attend(y, memory, real, weights["cross"]), second)


# %% q5 masks swapped
# The masks are swapped
def decoder_block(x, memory, causal, real, weights):
    first, second, third = weights["gains"]
    x = added(x, lambda y: attend(y, y, real, weights["attention"]), first)
    x = added(x, lambda y: attend(y, memory, causal, weights["cross"]), second)
    return added(x, lambda y: think(y, *weights["think"]), third)


# %% q5 future seen
# The future is seen
def decoder_block(x, memory, causal, real, weights):
    first, second, third = weights["gains"]
    x = added(x, lambda y: attend(y, y, None, weights["attention"]), first)
    x = added(x, lambda y: attend(y, memory, real, weights["cross"]), second)
    return added(x, lambda y: think(y, *weights["think"]), third)


# %% q5 padding seen
# Padding of the source is seen
def decoder_block(x, memory, causal, real, weights):
    first, second, third = weights["gains"]
    x = added(x, lambda y: attend(y, y, causal, weights["attention"]), first)
    x = added(x, lambda y: attend(y, memory, None, weights["cross"]), second)
    return added(x, lambda y: think(y, *weights["think"]), third)


# %% q5 memory asks
# The memory asks and the target answers
def decoder_block(x, memory, causal, real, weights):
    first, second, third = weights["gains"]
    x = added(x, lambda y: attend(y, y, causal, weights["attention"]), first)
    x = added(x, lambda y: attend(memory, y, real, weights["cross"]), second)
    return added(x, lambda y: think(y, *weights["think"]), third)


# %% q5 target seen twice
# The second sublayer looks at the target again
def decoder_block(x, memory, causal, real, weights):
    first, second, third = weights["gains"]
    x = added(x, lambda y: attend(y, y, causal, weights["attention"]), first)
    x = added(x, lambda y: attend(y, y, causal, weights["cross"]), second)
    return added(x, lambda y: think(y, *weights["think"]), third)


# %% q5 memory normed again
# The memory is normed again
def decoder_block(x, memory, causal, real, weights):
    first, second, third = weights["gains"]
    seen = norm(memory, second)
    x = added(x, lambda y: attend(y, y, causal, weights["attention"]), first)
    x = added(x, lambda y: attend(y, seen, real, weights["cross"]), second)
    return added(x, lambda y: think(y, *weights["think"]), third)


# %% q5 only the queries normed
# only the queries are normed
def decoder_block(x, memory, causal, real, weights):
    first, second, third = weights["gains"]
    x = x + attend(norm(x, first), x, causal, weights["attention"])
    x = added(x, lambda y: attend(y, memory, real, weights["cross"]), second)
    return added(x, lambda y: think(y, *weights["think"]), third)


# %% q5 post-norm
# This is post-norm
def decoder_block(x, memory, causal, real, weights):
    first, second, third = weights["gains"]
    x = norm(x + attend(x, x, causal, weights["attention"]), first)
    x = norm(x + attend(x, memory, real, weights["cross"]), second)
    return norm(x + think(x, *weights["think"]), third)


# %% q5 no residual around the source
# What the look at the source says replaces x
def decoder_block(x, memory, causal, real, weights):
    first, second, third = weights["gains"]
    x = added(x, lambda y: attend(y, y, causal, weights["attention"]), first)
    x = attend(norm(x, second), memory, real, weights["cross"])
    return added(x, lambda y: think(y, *weights["think"]), third)


# %% q6 no biases
# The biases are missing
def block_weights(width, heads, hidden, *, cross):
    looks = 2 if cross else 1
    return (4 * looks * width + 2 * hidden + 2 * (looks + 1)) * width


# %% q6 three layers in a look
# A look has three layers here
def block_weights(width, heads, hidden, *, cross):
    looks = 2 if cross else 1
    return size_of_block(width, hidden, cross=cross) - looks * (width**2 + width)


# %% q6 heads as wide as the model
# Every head has matrices from D to D
def block_weights(width, heads, hidden, *, cross):
    more = 3 * (heads - 1) * (width**2 + width) * (2 if cross else 1)
    return size_of_block(width, hidden, cross=cross) + more


# %% q6 cross without a norm
# The second look has no norm
def block_weights(width, heads, hidden, *, cross):
    return size_of_block(width, hidden, cross=cross) - (2 * width if cross else 0)


# %% q6 gain only
# A norm has a gain only
def block_weights(width, heads, hidden, *, cross):
    return size_of_block(width, hidden, cross=cross) - (3 if cross else 2) * width


# %% q6 tying forgotten
# Tying changes nothing
def model_weights(S, V, width, heads, hidden, layers, *, tied):
    blocks = sum(size_of_block(width, hidden, cross=cross) for cross in (False, True))
    return layers * blocks + 4 * width + (S + V) * width + V * width + V


# %% q6 bias tied too
# only the matrix is shared
def model_weights(S, V, width, heads, hidden, layers, *, tied):
    blocks = sum(size_of_block(width, hidden, cross=cross) for cross in (False, True))
    output = 0 if tied else V * width + V
    return layers * blocks + 4 * width + (S + V) * width + output


# %% q6 no final norms
# The norms behind the last blocks are missing
def model_weights(S, V, width, heads, hidden, layers, *, tied):
    blocks = sum(size_of_block(width, hidden, cross=cross) for cross in (False, True))
    return layers * blocks + (S + V) * width + V + (0 if tied else V * width)


# %% q6 every block looks at a memory
# All blocks look at a memory
def model_weights(S, V, width, heads, hidden, layers, *, tied):
    blocks = 2 * size_of_block(width, hidden, cross=True)
    outside = (S + V + 4) * width + V + (0 if tied else V * width)
    return layers * blocks + outside
