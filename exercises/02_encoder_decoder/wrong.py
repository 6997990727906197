"""Wrong answers: each must be told its mistake first, and lose its own question only."""

import torch
from torch.nn import functional as F

PAD, BOS, EOS = 0, 1, 2


def factors_of(decoder, memory, target, read):
    return decoder(memory, read).gather(2, target[..., None])[..., 0]


def shifted(target, first=BOS):
    return F.pad(target, (1, 0), value=first)[:, :-1]


def columns_of(decoder, memory, steps, *, carry=True, hand_back=True):
    state, columns = decoder.init_state(memory), []
    token = first = torch.full((len(memory),), BOS)
    for _ in range(steps):
        scores, after = decoder.step(token, state)
        columns.append(scores.argmax(dim=1))
        state = after if carry else state
        token = columns[-1] if hand_back else first
    return torch.stack(columns, dim=1).tolist()


def cut(row):
    return row[: row.index(EOS)] if EOS in row else row


def moved(state, rows):
    new = {name: state[name][rows] for name in ("states", "mask", "summary")}
    return new | {"hidden": state["hidden"][:, rows], "position": state["position"]}


# %% q1 scores
# These are scores
def look_up(letter, previous, x_t, before):
    return letter[x_t] + previous[before]


# %% q1 probabilities
# the contract wants their logarithms
def look_up(letter, previous, x_t, before):
    return (letter[x_t] + previous[before]).softmax(dim=-1)


# %% q1 softmax over the batch
# The probabilities sum to 1 over the batch
def look_up(letter, previous, x_t, before):
    return (letter[x_t] + previous[before]).log_softmax(dim=0)


# %% q1 by columns
# The second table is read by columns
def look_up(letter, previous, x_t, before):
    return (letter[x_t] + previous[:, before].T).log_softmax(dim=-1)


# %% q1 letter forgotten
# The letter is not used
def look_up(letter, previous, x_t, before):
    return previous[before].log_softmax(dim=-1)


# %% q1 sound before forgotten
# The sound before is not used
def look_up(letter, previous, x_t, before):
    return letter[x_t].log_softmax(dim=-1)


# %% q1 multiplied
# The tables are multiplied
def look_up(letter, previous, x_t, before):
    return (letter[x_t] * previous[before]).log_softmax(dim=-1)


# %% q1 two distributions
# Each table is made a distribution by itself
def look_up(letter, previous, x_t, before):
    return letter[x_t].log_softmax(dim=-1) + previous[before].log_softmax(dim=-1)


# %% q1 overflow
# exp(200) overflows
def look_up(letter, previous, x_t, before):
    weights = (letter[x_t] + previous[before]).exp()
    return (weights / weights.sum(dim=-1, keepdim=True)).log()


# %% q1 the logarithm of the softmax
# A probability became 0 before its logarithm was taken
def look_up(letter, previous, x_t, before):
    return (letter[x_t] + previous[before]).softmax(dim=-1).log()


# %% q2 the end missing
# The end is missing
def log_probability(decoder, memory, target):
    chosen = factors_of(decoder, memory, target, shifted(target))
    return chosen.masked_fill((target == PAD) | (target == EOS), 0).sum(dim=1)


# %% q2 padding scored
# Padding is scored too
def log_probability(decoder, memory, target):
    return factors_of(decoder, memory, target, shifted(target)).sum(dim=1)


# %% q2 not shifted
# The decoder reads the symbol that it is about to say
def log_probability(decoder, memory, target):
    chosen = factors_of(decoder, memory, target, target)
    return chosen.masked_fill(target == PAD, 0).sum(dim=1)


# %% q2 BOS at every step
# The decoder reads BOS at every step
def log_probability(decoder, memory, target):
    chosen = factors_of(decoder, memory, target, torch.full_like(target, BOS))
    return chosen.masked_fill(target == PAD, 0).sum(dim=1)


# %% q2 begins with PAD
# The decoder reads PAD at first
def log_probability(decoder, memory, target):
    chosen = factors_of(decoder, memory, target, shifted(target, PAD))
    return chosen.masked_fill(target == PAD, 0).sum(dim=1)


# %% q2 state not carried
# The state is not carried on
def log_probability(decoder, memory, target):
    total, state = torch.zeros(len(target)), decoder.init_state(memory)
    for read, say in zip(shifted(target).unbind(1), target.unbind(1), strict=True):
        scores, _ = decoder.step(read, state)
        total += scores.gather(1, say[:, None])[:, 0].masked_fill(say == PAD, 0)
    return total


# %% q2 mean
# This is the mean of the factors
def log_probability(decoder, memory, target):
    chosen = factors_of(decoder, memory, target, shifted(target))
    real = target != PAD
    return chosen.masked_fill(~real, 0).sum(dim=1) / real.sum(dim=1)


# %% q2 probabilities added
# Probabilities are added up
def log_probability(decoder, memory, target):
    chosen = factors_of(decoder, memory, target, shifted(target)).exp()
    return chosen.masked_fill(target == PAD, 0).sum(dim=1)


# %% q2 probability
# This is the probability
def log_probability(decoder, memory, target):
    chosen = factors_of(decoder, memory, target, shifted(target))
    return chosen.masked_fill(target == PAD, 0).sum(dim=1).exp()


# %% q2 one number for the batch
# All rows are added up
def log_probability(decoder, memory, target):
    chosen = factors_of(decoder, memory, target, shifted(target))
    return chosen.masked_fill(target == PAD, 0).sum()


# %% q3 the end kept
# EOS stands in the answers
def greedy(decoder, memory, max_length):
    rows = columns_of(decoder, memory, max_length)
    return [row[: row.index(EOS) + 1] if EOS in row else row for row in rows]


# %% q3 the beginning kept
# BOS stands in the answers
def greedy(decoder, memory, max_length):
    return [[BOS, *cut(row)] for row in columns_of(decoder, memory, max_length)]


# %% q3 goes on behind the end
# A row goes on speaking behind its EOS
def greedy(decoder, memory, max_length):
    rows = columns_of(decoder, memory, max_length)
    steps = max(len(cut(row)) + 1 for row in rows)
    return [[symbol for symbol in row[:steps] if symbol != EOS] for row in rows]


# %% q3 all stop with the first
# All rows stop when the first one ends
def greedy(decoder, memory, max_length):
    rows = [cut(row) for row in columns_of(decoder, memory, max_length)]
    return [row[: min(map(len, rows))] for row in rows]


# %% q3 state not carried
# The state is the first one at every step
def greedy(decoder, memory, max_length):
    return [cut(row) for row in columns_of(decoder, memory, max_length, carry=False)]


# %% q3 not handed back
# BOS is read at every step
def greedy(decoder, memory, max_length):
    rows = columns_of(decoder, memory, max_length, hand_back=False)
    return [cut(row) for row in rows]


# %% q3 tensors
# The rows are tensors
def greedy(decoder, memory, max_length):
    rows = columns_of(decoder, memory, max_length)
    return [torch.tensor(cut(row)) for row in rows]


# %% q3 one too many
# One symbol too many
def greedy(decoder, memory, max_length):
    return [cut(row) for row in columns_of(decoder, memory, max_length + 1)]


# %% q3 one too few
# One symbol too few
def greedy(decoder, memory, max_length):
    return [cut(row) for row in columns_of(decoder, memory, max_length - 1)]


# %% q3 cut answers thrown away
# An answer that was cut is thrown away
def greedy(decoder, memory, max_length):
    rows = columns_of(decoder, memory, max_length)
    return [cut(row) if EOS in row else [] for row in rows]


# %% q4 nothing moved
# Nothing moved
def reorder(state, rows):
    return dict(state)


# %% q4 sent where it should be fetched
# Rows are sent where they should be fetched
def reorder(state, rows):
    return moved(state, rows.argsort())


# %% q4 states forgotten
# The states of the memory stay behind
def reorder(state, rows):
    return moved(state, rows) | {"states": state["states"]}


# %% q4 mask forgotten
# The mask stays behind
def reorder(state, rows):
    return moved(state, rows) | {"mask": state["mask"]}


# %% q4 layers reordered
# The layers are reordered
def reorder(state, rows):
    return moved(state, rows) | {"hidden": state["hidden"][rows]}


# %% q4 hidden forgotten
# The hidden states stay behind
def reorder(state, rows):
    return moved(state, rows) | {"hidden": state["hidden"]}


# %% q4 position begins again
# The position begins again
def reorder(state, rows):
    return moved(state, rows) | {"position": 0}


# %% q4 a position for each row
# it is one number for all rows
def reorder(state, rows):
    return moved(state, rows) | {"position": torch.full_like(rows, state["position"])}


# %% q4 position lost
# The new state has ['hidden', 'mask', 'states', 'summary']
def reorder(state, rows):
    new = moved(state, rows)
    del new["position"]
    return new


# %% q4 in place
# The old state was changed
def reorder(state, rows):
    state.update(moved(state, rows))
    return state


# %% q5 one step missing
# One step is missing
def masses(p, length):
    reached, ended = torch.eye(len(p))[BOS], 0.0
    for _ in range(length):
        reached = reached @ p
        ended += reached[EOS].item()
        reached[EOS] = 0
    return ended, reached.sum().item()


# %% q5 swapped
# The two numbers are swapped
def masses(p, length):
    reached, ended = torch.eye(len(p))[BOS], 0.0
    for _ in range(length + 1):
        reached = reached @ p
        ended += reached[EOS].item()
        reached[EOS] = 0
    return reached.sum().item(), ended


# %% q5 starts at any sound
# The babbler does not start behind BOS
def masses(p, length):
    reached, ended = torch.zeros(len(p)), 0.0
    reached[4:] = 1 / len(p[4:])
    for _ in range(length + 1):
        reached = reached @ p
        ended += reached[EOS].item()
        reached[EOS] = 0
    return ended, reached.sum().item()


# %% q5 ended is still going
# What has ended is still going too
def masses(p, length):
    reached, ended = torch.eye(len(p))[BOS], 0.0
    for _ in range(length + 1):
        reached = reached @ p
        ended += reached[EOS].item()
    return ended, reached.sum().item()


# %% q5 by columns
# The table is read by columns
def masses(p, length):
    reached, ended = torch.eye(len(p))[BOS], 0.0
    for _ in range(length + 1):
        reached = p @ reached
        ended += reached[EOS].item()
        reached[EOS] = 0
    return ended, reached.sum().item()


# %% q5 exactly this length
# What ends with exactly
def masses(p, length):
    reached = torch.eye(len(p))[BOS]
    for _ in range(length + 1):
        reached = reached @ p
        ended = reached[EOS].item()
        reached[EOS] = 0
    return ended, reached.sum().item()


# %% q5 goes on behind the end
# Ended answers go on behind EOS
def masses(p, length):
    reached, ended = torch.eye(len(p))[BOS], 0.0
    for _ in range(length + 1):
        reached = reached @ p
        ended += reached[EOS].item()
    return ended, (reached.sum() - reached[EOS]).item()


# %% q5 one sound too many
# One sound too many
def masses(p, length):
    reached, ended = torch.eye(len(p))[BOS], 0.0
    for _ in range(length + 2 if length else 1):
        reached = reached @ p
        ended += reached[EOS].item()
        reached[EOS] = 0
    return ended, reached.sum().item()
