"""Other right answers: each of these scores full marks."""

import torch
from torch.nn import functional as F


# %% q1 with sums
def layer_norm(x, weight, bias, *, epsilon=1e-5):
    D = x.shape[-1]
    centred = x - x.sum(-1, keepdim=True) / D
    variance = (centred * centred).sum(-1, keepdim=True) / D
    return bias + weight * centred * torch.rsqrt(variance + epsilon)


# %% q1 position by position
def layer_norm(x, weight, bias, *, epsilon=1e-5):
    rows = []
    for row in x.reshape(-1, x.shape[-1]):
        variance, mean = torch.var_mean(row, correction=0)
        rows.append((row - mean) / torch.sqrt(variance + epsilon) * weight + bias)
    return torch.stack(rows).reshape(x.shape)


# %% q2 with masked sums
def batch_statistics(x, mask):
    real = mask[..., None].to(x.dtype)
    count = real.sum()
    mean = (x * real).sum(dim=(0, 1)) / count
    return mean, ((x - mean).square() * real).sum(dim=(0, 1)) / count


# %% q2 with loops
def batch_statistics(x, mask):
    B, T, _ = x.shape
    real = torch.stack([x[b, t] for b in range(B) for t in range(T) if mask[b, t]])
    mean = sum(real) / len(real)
    return mean, sum((position - mean) ** 2 for position in real) / len(real)


# %% q3 one norm more at the end, which changes nothing
def post_norm(x, weights):
    for W in weights:
        said = sublayer(x, W)
        x = F.layer_norm(said + x, x.shape[-1:])
    return F.layer_norm(x, x.shape[-1:])


# %% q3 by recursion
def pre_norm(x, weights):
    if len(weights) == 0:
        return norm(x)
    return pre_norm(x + sublayer(norm(x), weights[0]), weights[1:])


# %% q4 as three matrices
def layer_norm_gradients(x, weight, upstream, *, epsilon=1e-5):
    D = x.shape[-1]
    centre = torch.eye(D) - torch.full((D, D), 1 / D)
    centred = x @ centre
    scale = (centred.square().mean(-1, keepdim=True) + epsilon).sqrt()
    scores = centred / scale
    onto = scores[..., :, None] * scores[..., None, :] / D  # B T D D
    jacobian = (centre - onto) / scale[..., None]
    of_x = torch.einsum("btij,btj->bti", jacobian, weight * upstream)
    return (
        of_x,
        torch.einsum("btd,btd->d", upstream, scores),
        upstream.flatten(0, 1).sum(0),
    )
