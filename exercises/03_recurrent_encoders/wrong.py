"""Wrong answers: each must be told its mistake first, and lose its own question only."""

import torch


# %% q1 gate inverted
# z and 1 − z are exchanged
def gru_step(x, h, W, U, b, b2):
    x_r, x_z, x_n = (x @ W.T + b).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ U.T).chunk(3, dim=-1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    n = (x_n + r * (h_n + b2)).tanh()
    return z * n + (1 - z) * h


# %% q1 reset before the matrix
# r meets the state before the matrix
def gru_step(x, h, W, U, b, b2):
    D = h.shape[1]
    r = (x @ W[:D].T + h @ U[:D].T + b[:D]).sigmoid()
    z = (x @ W[D:-D].T + h @ U[D:-D].T + b[D:-D]).sigmoid()
    n = (x @ W[-D:].T + b[-D:] + (r * h) @ U[-D:].T + b2).tanh()
    return (1 - z) * n + z * h


# %% q1 reset forgotten
# The reset gate is not used
def gru_step(x, h, W, U, b, b2):
    _, mixed_z, mixed_n = (x @ W.T + b + h @ U.T).chunk(3, dim=-1)
    z, n = mixed_z.sigmoid(), (mixed_n + b2).tanh()
    return (1 - z) * n + z * h


# %% q1 gates in the wrong order
# r and z are exchanged
def gru_step(x, h, W, U, b, b2):
    x_z, x_r, x_n = (x @ W.T + b).chunk(3, dim=-1)
    h_z, h_r, h_n = (h @ U.T).chunk(3, dim=-1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    n = (x_n + r * (h_n + b2)).tanh()
    return (1 - z) * n + z * h


# %% q1 bias outside
# b' stands outside the reset gate
def gru_step(x, h, W, U, b, b2):
    x_r, x_z, x_n = (x @ W.T + b).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ U.T).chunk(3, dim=-1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    n = (x_n + r * h_n + b2).tanh()
    return (1 - z) * n + z * h


# %% q1 letter reset too
# The reset gate shuts out the letter too
def gru_step(x, h, W, U, b, b2):
    x_r, x_z, x_n = (x @ W.T + b).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ U.T).chunk(3, dim=-1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    n = (r * (x_n + h_n + b2)).tanh()
    return (1 - z) * n + z * h


# %% q1 candidate as a gate
# The candidate n is a tanh
def gru_step(x, h, W, U, b, b2):
    x_r, x_z, x_n = (x @ W.T + b).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ U.T).chunk(3, dim=-1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    n = (x_n + r * (h_n + b2)).sigmoid()
    return (1 - z) * n + z * h


# %% q1 old state missing
# The old state is missing from the mixture
def gru_step(x, h, W, U, b, b2):
    x_r, x_z, x_n = (x @ W.T + b).chunk(3, dim=-1)
    h_r, h_z, h_n = (h @ U.T).chunk(3, dim=-1)
    r, z = (x_r + h_r).sigmoid(), (x_z + h_z).sigmoid()
    return (1 - z) * (x_n + r * (h_n + b2)).tanh()


# %% q2 padding read
# Padding was read like a letter
def read_padded(x, mask, W, U, b):
    h, states = torch.zeros(len(x), len(U)), []
    for s in range(x.shape[1]):
        h = (x[:, s] @ W.T + h @ U.T + b).tanh()
        states.append(h)
    return torch.stack(states, dim=1), h


# %% q2 zero at padding
# they should stand still
def read_padded(x, mask, W, U, b):
    h, states = torch.zeros(len(x), len(U)), []
    for s in range(x.shape[1]):
        h = (x[:, s] @ W.T + h @ U.T + b).tanh() * mask[:, s, None]
        states.append(h)
    return torch.stack(states, dim=1), h


# %% q2 collected too early
# The states come one position late
def read_padded(x, mask, W, U, b):
    h, states = torch.zeros(len(x), len(U)), []
    for s in range(x.shape[1]):
        states.append(h)
        new = (x[:, s] @ W.T + h @ U.T + b).tanh()
        h = torch.where(mask[:, s, None], new, h)
    return torch.stack(states, dim=1), h


# %% q2 matrix turned around
# U is turned around
def read_padded(x, mask, W, U, b):
    h, states = torch.zeros(len(x), len(U)), []
    for s in range(x.shape[1]):
        new = (x[:, s] @ W.T + h @ U + b).tanh()
        h = torch.where(mask[:, s, None], new, h)
        states.append(h)
    return torch.stack(states, dim=1), h


# %% q2 nothing carried
# No state is carried along
def read_padded(x, mask, W, U, b):
    h, states = torch.zeros(len(x), len(U)), []
    for s in range(x.shape[1]):
        new = (x[:, s] @ W.T + torch.zeros_like(h) @ U.T + b).tanh()
        h = torch.where(mask[:, s, None], new, h)
        states.append(h)
    return torch.stack(states, dim=1), h


# %% q2 no tanh
# The tanh is missing
def read_padded(x, mask, W, U, b):
    h, states = torch.zeros(len(x), len(U)), []
    for s in range(x.shape[1]):
        h = torch.where(mask[:, s, None], x[:, s] @ W.T + h @ U.T + b, h)
        states.append(h)
    return torch.stack(states, dim=1), h


# %% q2 last state of padding
# The last states are those of padding
def read_padded(x, mask, W, U, b):
    h, states = torch.zeros(len(x), len(U)), []
    for s in range(x.shape[1]):
        h = (x[:, s] @ W.T + h @ U.T + b).tanh()
        states.append(torch.where(mask[:, s, None], h, states[-1] if s else h))
    return torch.stack(states, dim=1), h


# %% q3 last column
# This is the last column
def summaries(states, mask):
    lengths = mask.sum(dim=1)
    padding = ~mask[..., None]
    mean = states.masked_fill(padding, 0).sum(dim=1) / lengths[:, None]
    return states[:, -1], mean, states.masked_fill(padding, -torch.inf).amax(dim=1)


# %% q3 one too early
# This is one position too early
def summaries(states, mask):
    lengths = mask.sum(dim=1)
    padding = ~mask[..., None]
    last = states[torch.arange(len(states)), lengths - 2]
    mean = states.masked_fill(padding, 0).sum(dim=1) / lengths[:, None]
    return last, mean, states.masked_fill(padding, -torch.inf).amax(dim=1)


# %% q3 first
# This is the first state
def summaries(states, mask):
    lengths = mask.sum(dim=1)
    padding = ~mask[..., None]
    last = states[torch.arange(len(states)), mask.int().argmax(dim=1)]
    mean = states.masked_fill(padding, 0).sum(dim=1) / lengths[:, None]
    return last, mean, states.masked_fill(padding, -torch.inf).amax(dim=1)


# %% q3 wrong order
# The mean comes first here
def summaries(states, mask):
    lengths = mask.sum(dim=1)
    padding = ~mask[..., None]
    last = states[torch.arange(len(states)), lengths - 1]
    mean = states.masked_fill(padding, 0).sum(dim=1) / lengths[:, None]
    return mean, states.masked_fill(padding, -torch.inf).amax(dim=1), last


# %% q3 one thing returned
# Return three things: the last state, the mean and the maximum
def summaries(states, mask):
    return states[torch.arange(len(states)), mask.sum(dim=1) - 1]


# %% q3 mean with padding
# The mean counts padding
def summaries(states, mask):
    last = states[torch.arange(len(states)), mask.sum(dim=1) - 1]
    maximum = states.masked_fill(~mask[..., None], -torch.inf).amax(dim=1)
    return last, states.mean(dim=1), maximum


# %% q3 mean over all positions
# The sum is right, and divided by S
def summaries(states, mask):
    padding = ~mask[..., None]
    last = states[torch.arange(len(states)), mask.sum(dim=1) - 1]
    mean = states.masked_fill(padding, 0).mean(dim=1)
    return last, mean, states.masked_fill(padding, -torch.inf).amax(dim=1)


# %% q3 mean over the batch
# the real positions of the whole batch
def summaries(states, mask):
    padding = ~mask[..., None]
    last = states[torch.arange(len(states)), mask.sum(dim=1) - 1]
    mean = states.masked_fill(padding, 0).sum(dim=1) / mask.sum()
    return last, mean, states.masked_fill(padding, -torch.inf).amax(dim=1)


# %% q3 sum
# This is the sum
def summaries(states, mask):
    padding = ~mask[..., None]
    last = states[torch.arange(len(states)), mask.sum(dim=1) - 1]
    total = states.masked_fill(padding, 0).sum(dim=1)
    return last, total, states.masked_fill(padding, -torch.inf).amax(dim=1)


# %% q3 maximum with padding
# The maximum sees padding
def summaries(states, mask):
    lengths = mask.sum(dim=1)
    last = states[torch.arange(len(states)), lengths - 1]
    mean = states.masked_fill(~mask[..., None], 0).sum(dim=1) / lengths[:, None]
    return last, mean, states.amax(dim=1)


# %% q3 maximum with zero
# The maximum is 0 where all states are negative
def summaries(states, mask):
    lengths = mask.sum(dim=1)
    real = states.masked_fill(~mask[..., None], 0)
    last = states[torch.arange(len(states)), lengths - 1]
    return last, real.sum(dim=1) / lengths[:, None], real.amax(dim=1)


# %% q3 maximum of one position
# take it unit by unit
def summaries(states, mask):
    lengths, rows = mask.sum(dim=1), torch.arange(len(states))
    padding = ~mask[..., None]
    mean = states.masked_fill(padding, 0).sum(dim=1) / lengths[:, None]
    best = states.masked_fill(padding, -torch.inf).sum(dim=2).argmax(dim=1)
    return states[rows, lengths - 1], mean, states[rows, best]


# %% q3 padding multiplied away
# 0 times NaN is NaN
def summaries(states, mask):
    lengths = mask.sum(dim=1)
    last = states[torch.arange(len(states)), lengths - 1]
    mean = (states * mask[..., None]).sum(dim=1) / lengths[:, None]
    return last, mean, states.masked_fill(~mask[..., None], -torch.inf).amax(dim=1)


# %% q4 padding first
# The second half has read padding first
def read_both_ways(x, mask):
    states = torch.cat([read(x), read(x.flip(1)).flip(1)], dim=-1)
    return states.masked_fill(~mask[..., None], 0)


# %% q4 not turned back
# The second half is not turned back
def read_both_ways(x, mask):
    rows, position = torch.arange(len(x))[:, None], torch.arange(x.shape[1])
    index = torch.where(mask, mask.sum(dim=1, keepdim=True) - 1 - position, position)
    states = torch.cat([read(x), read(x[rows, index])], dim=-1)
    return states.masked_fill(~mask[..., None], 0)


# %% q4 never turned around
# Both halves read from left to right
def read_both_ways(x, mask):
    return torch.cat([read(x), read(x)], dim=-1).masked_fill(~mask[..., None], 0)


# %% q4 backwards twice
# Both halves read from right to left
def read_both_ways(x, mask):
    x = x.masked_fill(~mask[..., None], 0)
    backwards = read(x.flip(1)).flip(1)
    return torch.cat([backwards, backwards], dim=-1) * mask[..., None]


# %% q4 halves exchanged
# The halves are exchanged
def read_both_ways(x, mask):
    x = x.masked_fill(~mask[..., None], 0)
    return torch.cat([read(x.flip(1)).flip(1), read(x)], dim=-1) * mask[..., None]


# %% q4 halves added
# The halves are added up
def read_both_ways(x, mask):
    x = x.masked_fill(~mask[..., None], 0)
    return (read(x) + read(x.flip(1)).flip(1)) * mask[..., None]


# %% q4 behind each other
# The halves stand behind each other
def read_both_ways(x, mask):
    x = x.masked_fill(~mask[..., None], 0)
    halves = [read(x) * mask[..., None], read(x.flip(1)).flip(1) * mask[..., None]]
    return torch.cat(halves, dim=1)


# %% q4 padding not emptied
# States at padding should be 0
def read_both_ways(x, mask):
    rows, position = torch.arange(len(x))[:, None], torch.arange(x.shape[1])
    index = torch.where(mask, mask.sum(dim=1, keepdim=True) - 1 - position, position)
    return torch.cat([read(x), read(x[rows, index])[rows, index]], dim=-1)


# %% q5 each by itself
# Each gradient is clipped by itself
def clip(gradients, limit):
    return [g * (limit / g.norm()).clamp(max=1) for g in gradients]


# %% q5 by value
# Each number is cut off at the limit
def clip(gradients, limit):
    return [g.clamp(-limit, limit) for g in gradients]


# %% q5 lengths added
# The lengths of the parts are added
def clip(gradients, limit):
    length = sum(g.norm() for g in gradients)
    return [g * (limit / length).clamp(max=1) for g in gradients]


# %% q5 no root
# The root is missing
def clip(gradients, limit):
    squares = sum(g.square().sum() for g in gradients)
    return [g * (limit / squares).clamp(max=1) for g in gradients]


# %% q5 limit forgotten
# The gradients are 1 long now
def clip(gradients, limit):
    length = torch.cat([g.flatten() for g in gradients]).norm()
    return [g * (1 / length).clamp(max=1) for g in gradients]


# %% q5 squares averaged
# The squares are averaged
def clip(gradients, limit):
    length = torch.cat([g.flatten() for g in gradients]).square().mean().sqrt()
    return [g * (limit / length).clamp(max=1) for g in gradients]


# %% q5 largest number
# The largest number was taken for the length
def clip(gradients, limit):
    largest = max(g.abs().max() for g in gradients)
    return [g * (limit / largest).clamp(max=1) for g in gradients]


# %% q5 the larger factor
# the smaller one of 1 and limit / length
def clip(gradients, limit):
    length = torch.cat([g.flatten() for g in gradients]).norm()
    return [g * (limit / length).clamp(min=1) for g in gradients]


# %% q5 made longer
# Short gradients are made longer
def clip(gradients, limit):
    length = torch.cat([g.flatten() for g in gradients]).norm()
    return [g * limit / length for g in gradients]


# %% q5 division by zero
# do not divide by it
def clip(gradients, limit):
    length = torch.cat([g.flatten() for g in gradients]).norm().item()
    return [g * min(1, limit / length) for g in gradients]
