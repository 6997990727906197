"""Wrong answers: each must be told its mistake first, and lose its own question only."""

import torch

from seq2seq_lib.metrics import edit_distance


# %% q1 sign
# The sign is missing
def masked_loss(log_p, target, mask):
    return log_p.gather(2, target[..., None])[..., 0][mask].mean()


# %% q1 mask forgotten
# Padding counts
def masked_loss(log_p, target, mask):
    return -log_p.gather(2, target[..., None]).mean()


# %% q1 divided by all positions
# divided by all positions
def masked_loss(log_p, target, mask):
    chosen = log_p.gather(2, target[..., None])[..., 0]
    return -torch.where(mask, chosen, 0).mean()


# %% q1 divided by the rows
# divided by the number of rows
def masked_loss(log_p, target, mask):
    chosen = log_p.gather(2, target[..., None])[..., 0]
    return -chosen[mask].sum() / len(target)


# %% q1 mean of means
# Each row is averaged first
def masked_loss(log_p, target, mask):
    chosen = log_p.gather(2, target[..., None])[..., 0]
    return -(torch.where(mask, chosen, 0).sum(dim=1) / mask.sum(dim=1)).mean()


# %% q1 favourite symbol
# The model's favourite symbol is scored
def masked_loss(log_p, target, mask):
    return -log_p.amax(dim=-1)[mask].mean()


# %% q1 mask inverted
# The mask looks inverted
def masked_loss(log_p, target, mask):
    return -log_p.gather(2, target[..., None])[..., 0][~mask].mean()


# %% q1 infinity times zero
# ∞ · 0 is not 0
def masked_loss(log_p, target, mask):
    chosen = log_p.gather(2, target[..., None])[..., 0]
    return -(chosen * mask).sum() / mask.sum()


# %% q2 no tanh
# The tanh of the bridge is missing
def forced(c, read, W, b, E, O_out, b_out):
    s, said = c @ W.T + b, []
    for y in read.unbind(1):
        s = f(E[y], s)
        said.append((s @ O_out.T + b_out).log_softmax(dim=-1))
    return torch.stack(said, dim=1)


# %% q2 no bias in the bridge
# The bridge has lost its bias
def forced(c, read, W, b, E, O_out, b_out):
    s, said = torch.tanh(c @ W.T), []
    for y in read.unbind(1):
        s = f(E[y], s)
        said.append((s @ O_out.T + b_out).log_softmax(dim=-1))
    return torch.stack(said, dim=1)


# %% q2 summary forgotten
# The summary is not used
def forced(c, read, W, b, E, O_out, b_out):
    s, said = torch.zeros(len(c), len(W)), []
    for y in read.unbind(1):
        s = f(E[y], s)
        said.append((s @ O_out.T + b_out).log_softmax(dim=-1))
    return torch.stack(said, dim=1)


# %% q2 state not carried
# Every step starts from g_0 again
def forced(c, read, W, b, E, O_out, b_out):
    g_0, said = torch.tanh(c @ W.T + b), []
    for y in read.unbind(1):
        said.append((f(E[y], g_0) @ O_out.T + b_out).log_softmax(dim=-1))
    return torch.stack(said, dim=1)


# %% q2 said before it is read
# the state before the step
def forced(c, read, W, b, E, O_out, b_out):
    s, said = torch.tanh(c @ W.T + b), []
    for y in read.unbind(1):
        said.append((s @ O_out.T + b_out).log_softmax(dim=-1))
        s = f(E[y], s)
    return torch.stack(said, dim=1)


# %% q2 scores
# log_softmax is missing
def forced(c, read, W, b, E, O_out, b_out):
    s, said = torch.tanh(c @ W.T + b), []
    for y in read.unbind(1):
        s = f(E[y], s)
        said.append(s @ O_out.T + b_out)
    return torch.stack(said, dim=1)


# %% q2 probabilities
# These are probabilities
def forced(c, read, W, b, E, O_out, b_out):
    s, said = torch.tanh(c @ W.T + b), []
    for y in read.unbind(1):
        s = f(E[y], s)
        said.append((s @ O_out.T + b_out).softmax(dim=-1))
    return torch.stack(said, dim=1)


# %% q2 softmax over the steps
# The softmax goes over the steps
def forced(c, read, W, b, E, O_out, b_out):
    s, said = torch.tanh(c @ W.T + b), []
    for y in read.unbind(1):
        s = f(E[y], s)
        said.append(s @ O_out.T + b_out)
    return torch.stack(said, dim=1).log_softmax(dim=1)


# %% q2 no bias in the output
# The output layer has lost its bias
def forced(c, read, W, b, E, O_out, b_out):
    s, said = torch.tanh(c @ W.T + b), []
    for y in read.unbind(1):
        s = f(E[y], s)
        said.append((s @ O_out.T).log_softmax(dim=-1))
    return torch.stack(said, dim=1)


# %% q3 swapped
# Own and gold are swapped
def sampled_input(table, gold, drawn, rate):
    read = [gold[:, 0]]
    for t in range(1, gold.shape[1]):
        own = table[read[-1]].argmax(dim=-1)
        read.append(torch.where(drawn[:, t] < rate, gold[:, t], own))
    return torch.stack(read, dim=1)


# %% q3 all at once
# Own choices are made after gold symbols
def sampled_input(table, gold, drawn, rate):
    own = table[gold[:, :-1]].argmax(dim=-1)
    mixed = torch.where(drawn[:, 1:] < rate, own, gold[:, 1:])
    return torch.cat([gold[:, :1], mixed], dim=1)


# %% q3 first symbol replaced
# The first column is replaced too
def sampled_input(table, gold, drawn, rate):
    token, read = gold[:, 0], []
    for t in range(gold.shape[1]):
        own = table[token].argmax(dim=-1)
        token = torch.where(drawn[:, t] < rate, own, gold[:, t])
        read.append(token)
    return torch.stack(read, dim=1)


# %% q3 one draw for a word
# One draw decides for the whole word
def sampled_input(table, gold, drawn, rate):
    read = [gold[:, 0]]
    for t in range(1, gold.shape[1]):
        own = table[read[-1]].argmax(dim=-1)
        read.append(torch.where(drawn[:, 0] < rate, own, gold[:, t]))
    return torch.stack(read, dim=1)


# %% q3 one draw for the batch
# One draw decides for the whole batch
def sampled_input(table, gold, drawn, rate):
    read = [gold[:, 0]]
    for t in range(1, gold.shape[1]):
        own = drawn[0, t] < rate
        read.append(table[read[-1]].argmax(dim=-1) if own else gold[:, t])
    return torch.stack(read, dim=1)


# %% q3 after the symbol replaced
# after the symbol that it replaces
def sampled_input(table, gold, drawn, rate):
    read = gold.clone()
    own = drawn < rate
    own[:, 0] = False
    read[own] = table[gold[own]].argmax(dim=-1)
    return read


# %% q3 greedy
# This is greedy decoding
def sampled_input(table, gold, drawn, rate):
    read = [gold[:, 0]]
    for _ in range(1, gold.shape[1]):
        read.append(table[read[-1]].argmax(dim=-1))
    return torch.stack(read, dim=1)


# %% q3 columns of the table
# The table is read by columns
def sampled_input(table, gold, drawn, rate):
    read = [gold[:, 0]]
    for t in range(1, gold.shape[1]):
        own = table[:, read[-1]].argmax(dim=0)
        read.append(torch.where(drawn[:, t] < rate, own, gold[:, t]))
    return torch.stack(read, dim=1)


# %% q3 less or equal
# A rate of 0 must be teacher forcing
def sampled_input(table, gold, drawn, rate):
    read = [gold[:, 0]]
    for t in range(1, gold.shape[1]):
        own = table[read[-1]].argmax(dim=-1)
        read.append(torch.where(drawn[:, t] <= rate, own, gold[:, t]))
    return torch.stack(read, dim=1)


# %% q4 the furthest place only
# behind the last of them only
def right_next(prefix, answer):
    distances = [edit_distance(prefix, answer[:n]) for n in range(len(answer) + 1)]
    nearest = max(n for n, d in enumerate(distances) if d == min(distances))
    return [[*answer, "<eos>"][nearest]]


# %% q4 the first place only
# behind the first of them only
def right_next(prefix, answer):
    distances = [edit_distance(prefix, answer[:n]) for n in range(len(answer) + 1)]
    return [[*answer, "<eos>"][distances.index(min(distances))]]


# %% q4 by counting
# You count symbols
def right_next(prefix, answer):
    return [[*answer, "<eos>"][min(len(prefix), len(answer))]]


# %% q4 the symbol before the place
# You return the last symbol of the nearest beginning
def right_next(prefix, answer):
    distances = [edit_distance(prefix, answer[:n]) for n in range(len(answer) + 1)]
    places = [n for n, d in enumerate(distances) if d == min(distances)]
    return sorted({answer[n - 1] for n in places})


# %% q4 no empty beginning
# The empty beginning is left out
def right_next(prefix, answer):
    behind = [*answer, "<eos>"]
    distances = {
        n: edit_distance(prefix, answer[:n]) for n in range(1, len(answer) + 1)
    }
    nearest = min(distances.values())
    return sorted({behind[n] for n, d in distances.items() if d == nearest})


# %% q4 not the whole answer
# The whole answer is a beginning too
def right_next(prefix, answer):
    distances = [edit_distance(prefix, answer[:n]) for n in range(len(answer))]
    places = [n for n, d in enumerate(distances) if d == min(distances)]
    return sorted({answer[n] for n in places})


# %% q4 no end
# Behind the whole answer stands END
def right_next(prefix, answer):
    distances = [edit_distance(prefix, answer[:n]) for n in range(len(answer) + 1)]
    places = [n for n, d in enumerate(distances) if d == min(distances)]
    return sorted({answer[n] for n in places if n < len(answer)})


# %% q4 twice
# A symbol is listed twice
def right_next(prefix, answer):
    behind = [*answer, "<eos>"]
    distances = [edit_distance(prefix, answer[:n]) for n in range(len(answer) + 1)]
    return [behind[n] for n, d in enumerate(distances) if d == min(distances)]


# %% q4 a text
# Return a list of symbols
def right_next(prefix, answer):
    behind = [*answer, "<eos>"]
    distances = [edit_distance(prefix, answer[:n]) for n in range(len(answer) + 1)]
    places = [n for n, d in enumerate(distances) if d == min(distances)]
    return " ".join({behind[n] for n in places})
