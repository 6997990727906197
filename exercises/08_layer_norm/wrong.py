"""Wrong answers: each must be told its mistake first, and lose its own question only."""

from torch.nn import functional as F


# %% q1 over the positions
# The average runs over the positions
def layer_norm(x, weight, bias, *, epsilon=1e-5):
    mean = x.mean(dim=-2, keepdim=True)
    variance = x.var(dim=-2, keepdim=True, correction=0)
    return (x - mean) / (variance + epsilon).sqrt() * weight + bias


# %% q1 over positions and features
# One mean is taken over a whole sequence
def layer_norm(x, weight, bias, *, epsilon=1e-5):
    return F.layer_norm(x, x.shape[-2:], eps=epsilon) * weight + bias


# %% q1 an estimate of the variance
# this is a size, not an estimate
def layer_norm(x, weight, bias, *, epsilon=1e-5):
    variance = x.var(dim=-1, keepdim=True)
    mean = x.mean(dim=-1, keepdim=True)
    return (x - mean) / (variance + epsilon).sqrt() * weight + bias


# %% q1 no root
# divided by the variance: take its root
def layer_norm(x, weight, bias, *, epsilon=1e-5):
    variance = x.var(dim=-1, keepdim=True, correction=0)
    mean = x.mean(dim=-1, keepdim=True)
    return (x - mean) / (variance + epsilon) * weight + bias


# %% q1 bias before the weight
# The bias is scaled too
def layer_norm(x, weight, bias, *, epsilon=1e-5):
    return (F.layer_norm(x, x.shape[-1:], eps=epsilon) + bias) * weight


# %% q1 epsilon outside the root
# ε stands outside the root
def layer_norm(x, weight, bias, *, epsilon=1e-5):
    deviation = x.std(dim=-1, keepdim=True, correction=0)
    mean = x.mean(dim=-1, keepdim=True)
    return (x - mean) / (deviation + epsilon) * weight + bias


# %% q1 epsilon not passed on
# use the one that is passed
def layer_norm(x, weight, bias, *, epsilon=1e-5):
    return F.layer_norm(x, x.shape[-1:], weight, bias)


# %% q1 three axes only
# It should work for one vector
def layer_norm(x, weight, bias, *, epsilon=1e-5):
    mean = x.mean(dim=2, keepdim=True)
    variance = x.var(dim=2, keepdim=True, correction=0)
    return (x - mean) / (variance + epsilon).sqrt() * weight + bias


# %% q2 padding counted
# the mask is not used
def batch_statistics(x, mask):
    return x.mean(dim=(0, 1)), x.var(dim=(0, 1), correction=0)


# %% q2 padding cleared but counted
# Padding is cleared but counted
def batch_statistics(x, mask):
    x = x * mask[..., None]
    return x.mean(dim=(0, 1)), x.var(dim=(0, 1), correction=0)


# %% q2 mean of the means
# The means of the rows are averaged
def batch_statistics(x, mask):
    rows = [row[real].mean(dim=0) for row, real in zip(x, mask, strict=True)]
    mean = sum(rows) / len(rows)
    return mean, (x[mask] - mean).square().mean(dim=0)


# %% q2 layer norm
# Each position is averaged over its features
def batch_statistics(x, mask):
    real = x[mask]
    return real.mean(dim=-1), real.var(dim=-1, correction=0)


# %% q2 padding back in the variance
# Padding is back in the variance
def batch_statistics(x, mask):
    x = x * mask[..., None]
    mean = x.sum(dim=(0, 1)) / mask.sum()
    return mean, (x - mean).square().sum(dim=(0, 1)) / mask.sum()


# %% q2 standard deviation
# This is the standard deviation
def batch_statistics(x, mask):
    return x[mask].mean(dim=0), x[mask].std(dim=0, correction=0)


# %% q2 squared before subtracting
# lost in rounding
def batch_statistics(x, mask):
    mean = x[mask].mean(dim=0)
    return mean, x[mask].square().mean(dim=0) - mean.square()


# %% q3 post: pre-norm instead
# This is pre-norm
def post_norm(x, weights):
    for W in weights:
        x = x + sublayer(norm(x), W)
    return norm(x)


# %% q3 post: one norm at the end
# Only the end is normalized
def post_norm(x, weights):
    for W in weights:
        x = x + sublayer(x, W)
    return norm(x)


# %% q3 post: no sum
# normalize x + f(x), not f(x)
def post_norm(x, weights):
    for W in weights:
        x = norm(sublayer(x, W))
    return x


# %% q3 pre: no last norm
# The norm behind the last step is missing
def pre_norm(x, weights):
    for W in weights:
        x = x + sublayer(norm(x), W)
    return x


# %% q3 pre: the norm is added
# The norm of x is added, not x
def pre_norm(x, weights):
    for W in weights:
        x = norm(x)
        x = x + sublayer(x, W)
    return norm(x)


# %% q3 pre: norm behind the sublayer
# The norm stands behind the sublayer
def pre_norm(x, weights):
    for W in weights:
        x = x + norm(sublayer(x, W))
    return norm(x)


# %% q3 pre: all hear the input
# All sublayers hear the first input
def pre_norm(x, weights):
    heard = norm(x)
    for W in weights:
        x = x + sublayer(heard, W)
    return norm(x)


# %% q4 weight forgotten
# The weight is missing from the gradient of x
def layer_norm_gradients(x, weight, upstream, *, epsilon=1e-5):
    scale = (x.var(dim=-1, keepdim=True, correction=0) + epsilon).sqrt()
    scores = (x - x.mean(dim=-1, keepdim=True)) / scale
    along = (upstream * scores).mean(dim=-1, keepdim=True)
    of_x = (upstream - upstream.mean(dim=-1, keepdim=True) - scores * along) / scale
    return of_x, (upstream * scores).sum(dim=(0, 1)), upstream.sum(dim=(0, 1))


# %% q4 no path through the mean
# The path through the mean is missing
def layer_norm_gradients(x, weight, upstream, *, epsilon=1e-5):
    scale = (x.var(dim=-1, keepdim=True, correction=0) + epsilon).sqrt()
    scores = (x - x.mean(dim=-1, keepdim=True)) / scale
    g = weight * upstream
    of_x = (g - scores * (g * scores).mean(dim=-1, keepdim=True)) / scale
    return of_x, (upstream * scores).sum(dim=(0, 1)), upstream.sum(dim=(0, 1))


# %% q4 no path through the deviation
# The path through the deviation is missing
def layer_norm_gradients(x, weight, upstream, *, epsilon=1e-5):
    scale = (x.var(dim=-1, keepdim=True, correction=0) + epsilon).sqrt()
    scores = (x - x.mean(dim=-1, keepdim=True)) / scale
    g = weight * upstream
    of_x = (g - g.mean(dim=-1, keepdim=True)) / scale
    return of_x, (upstream * scores).sum(dim=(0, 1)), upstream.sum(dim=(0, 1))


# %% q4 not divided
# The division by √(σ² + ε) is missing
def layer_norm_gradients(x, weight, upstream, *, epsilon=1e-5):
    scale = (x.var(dim=-1, keepdim=True, correction=0) + epsilon).sqrt()
    scores = (x - x.mean(dim=-1, keepdim=True)) / scale
    g = weight * upstream
    along = (g * scores).mean(dim=-1, keepdim=True)
    of_x = g - g.mean(dim=-1, keepdim=True) - scores * along
    return of_x, (upstream * scores).sum(dim=(0, 1)), upstream.sum(dim=(0, 1))


# %% q4 weight's gradient from x
# The gradient of the weight takes x itself
def layer_norm_gradients(x, weight, upstream, *, epsilon=1e-5):
    scale = (x.var(dim=-1, keepdim=True, correction=0) + epsilon).sqrt()
    scores = (x - x.mean(dim=-1, keepdim=True)) / scale
    g = weight * upstream
    along = (g * scores).mean(dim=-1, keepdim=True)
    of_x = (g - g.mean(dim=-1, keepdim=True) - scores * along) / scale
    return of_x, (upstream * x).sum(dim=(0, 1)), upstream.sum(dim=(0, 1))


# %% q4 weight's gradient not added up
# it is one weight, so add them up
def layer_norm_gradients(x, weight, upstream, *, epsilon=1e-5):
    scale = (x.var(dim=-1, keepdim=True, correction=0) + epsilon).sqrt()
    scores = (x - x.mean(dim=-1, keepdim=True)) / scale
    g = weight * upstream
    along = (g * scores).mean(dim=-1, keepdim=True)
    of_x = (g - g.mean(dim=-1, keepdim=True) - scores * along) / scale
    return of_x, upstream * scores, upstream.sum(dim=(0, 1))


# %% q4 weight in the bias's gradient
# the bias is added after the scaling
def layer_norm_gradients(x, weight, upstream, *, epsilon=1e-5):
    scale = (x.var(dim=-1, keepdim=True, correction=0) + epsilon).sqrt()
    scores = (x - x.mean(dim=-1, keepdim=True)) / scale
    g = weight * upstream
    along = (g * scores).mean(dim=-1, keepdim=True)
    of_x = (g - g.mean(dim=-1, keepdim=True) - scores * along) / scale
    return of_x, (upstream * scores).sum(dim=(0, 1)), g.sum(dim=(0, 1))


# %% q4 epsilon not passed on
# With small features the gradients are wrong
def layer_norm_gradients(x, weight, upstream, *, epsilon=1e-5):
    scale = (x.var(dim=-1, keepdim=True, correction=0) + 1e-5).sqrt()
    scores = (x - x.mean(dim=-1, keepdim=True)) / scale
    g = weight * upstream
    along = (g * scores).mean(dim=-1, keepdim=True)
    of_x = (g - g.mean(dim=-1, keepdim=True) - scores * along) / scale
    return of_x, (upstream * scores).sum(dim=(0, 1)), upstream.sum(dim=(0, 1))
