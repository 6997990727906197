"""Wrong answers: each must be told its mistake first, and lose its own question only."""

import math

import torch


# %% q1 mask inverted
# The mask looks inverted
def masked_softmax(scores, mask):
    if not mask.any(dim=-1).all():
        raise ValueError
    return scores.masked_fill(mask, -torch.inf).softmax(dim=-1)


# %% q1 mask forgotten
# The mask changes nothing
def masked_softmax(scores, mask):
    return scores.softmax(dim=-1)


# %% q1 weights hidden after the softmax
# do not add up to 1
def masked_softmax(scores, mask):
    if not mask.any(dim=-1).all():
        raise ValueError
    return scores.softmax(dim=-1) * mask


# %% q1 filled with zero
# a score of 0 is a score like any other
def masked_softmax(scores, mask):
    if not mask.any(dim=-1).all():
        raise ValueError
    return scores.masked_fill(~mask, 0).softmax(dim=-1)


# %% q1 softmax over the queries
# The weights add up over the queries: the softmax belongs over the keys, the last axis
def masked_softmax(scores, mask):
    if not mask.any(dim=-1).all():
        raise ValueError
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=1).nan_to_num()


# %% q1 overflow
# exp(1000) is infinite
def masked_softmax(scores, mask):
    if not mask.any(dim=-1).all():
        raise ValueError
    exponentials = scores.exp() * mask
    return exponentials / exponentials.sum(dim=-1, keepdim=True)


# %% q1 no broadcasting
# an index such as scores[~mask] does not
def masked_softmax(scores, mask):
    if not mask.any(dim=-1).all():
        raise ValueError
    scores = scores.clone()
    scores[~mask] = -torch.inf
    return scores.softmax(dim=-1)


# %% q1 no error
# A query that may look nowhere got weights
def masked_softmax(scores, mask):
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)


# %% q1 filled with minus a hundred
# Where all scores are very low, a hidden key wins
def masked_softmax(scores, mask):
    if not mask.any(dim=-1).all():
        raise ValueError("the mask hides every key from some query")
    return scores.masked_fill(~mask, -100.0).softmax(dim=-1)


# %% q2 missing scale
# divide by the square root of the width
def attention(query, key, value, mask):
    weights = (query @ key.mT).masked_fill(~mask, -torch.inf).softmax(dim=-1)
    return weights @ value, weights


# %% q2 divided by the width
# take its square root
def attention(query, key, value, mask):
    scores = query @ key.mT / query.shape[-1]
    weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    return weights @ value, weights


# %% q2 divided by the root of the number of keys
# the root of the number of keys
def attention(query, key, value, mask):
    scores = query @ key.mT / math.sqrt(key.shape[1])
    weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    return weights @ value, weights


# %% q2 mask forgotten
# The mask is not used
def attention(query, key, value, mask):
    weights = (query @ key.mT / math.sqrt(query.shape[-1])).softmax(dim=-1)
    return weights @ value, weights


# %% q2 one thing returned
# Return two things, the averages and the weights
def attention(query, key, value, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    return scores.masked_fill(~mask, -torch.inf).softmax(dim=-1) @ value


# %% q2 returned in the wrong order
# the second the weights
def attention(query, key, value, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    return weights, weights @ value


# %% q2 keys averaged
# The keys are averaged
def attention(query, key, value, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    return weights @ key, weights


# %% q2 hard choice
# Only the value with the largest weight
def attention(query, key, value, mask):
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    best = torch.nn.functional.one_hot(weights.argmax(-1), key.shape[1]).float()
    return best @ value, weights


# %% q2 width of the values
# The scale is the width of the values
def attention(query, key, value, mask):
    scores = query @ key.mT / math.sqrt(value.shape[-1])
    weights = scores.masked_fill(~mask, -torch.inf).softmax(dim=-1)
    return weights @ value, weights


# %% q3 no tanh
# The tanh is missing
def additive_scores(query, key, W, U, v):
    return ((query @ W.T)[:, :, None] + (key @ U.T)[:, None]) @ v


# %% q3 tanh too late
# The tanh comes too late
def additive_scores(query, key, W, U, v):
    return (((query @ W.T)[:, :, None] + (key @ U.T)[:, None]) @ v).tanh()


# %% q3 matrices swapped
# W and U are swapped
def additive_scores(query, key, W, U, v):
    return ((query @ U.T)[:, :, None] + (key @ W.T)[:, None]).tanh() @ v


# %% q3 axes swapped
# B T S, not B S T
def additive_scores(query, key, W, U, v):
    return ((query @ W.T)[:, None] + (key @ U.T)[:, :, None]).tanh() @ v


# %% q3 v forgotten
# v is not used
def additive_scores(query, key, W, U, v):
    return ((query @ W.T)[:, :, None] + (key @ U.T)[:, None]).tanh().sum(dim=-1)


# %% q3 only the key at the same position
# one key only
def additive_scores(query, key, W, U, v):
    if query.shape[1] == key.shape[1]:
        return (query @ W.T + key @ U.T).tanh() @ v
    return ((query @ W.T)[:, :, None] + (key @ U.T)[:, None]).tanh() @ v


# %% q4 sign
# the sign of the exponent is missing
def kernel_regression(query, key, value, width):
    return ((query[:, None] - key) ** 2 / (2 * width**2)).softmax(dim=-1) @ value


# %% q4 not squared
# The distances are not squared
def kernel_regression(query, key, value, width):
    return (-(query[:, None] - key).abs() / (2 * width**2)).softmax(dim=-1) @ value


# %% q4 factor
# The factor 2
def kernel_regression(query, key, value, width):
    return (-((query[:, None] - key) ** 2) / width**2).softmax(dim=-1) @ value


# %% q4 width not squared
# The width is not squared
def kernel_regression(query, key, value, width):
    return (-((query[:, None] - key) ** 2) / (2 * width)).softmax(dim=-1) @ value


# %% q4 not normalized
# divide by their sum
def kernel_regression(query, key, value, width):
    return (-((query[:, None] - key) ** 2) / (2 * width**2)).exp() @ value


# %% q4 normalized over the queries
# The weights add up over the queries: the softmax belongs over the keys.
def kernel_regression(query, key, value, width):
    return (-((query[:, None] - key) ** 2) / (2 * width**2)).softmax(dim=0) @ value


# %% q4 zero divided by zero
# 0/0 is no number
def kernel_regression(query, key, value, width):
    weights = (-((query[:, None] - key) ** 2) / (2 * width**2)).exp()
    return weights @ value / weights.sum(dim=-1)
