"""Wrong answers: each must be told its mistake first, and lose its own question only."""

import torch

from seq2seq_lib.data import BOS, EOS, PAD
from seq2seq_lib.metrics import edit_distance


def fill(rows):
    width = max(map(len, rows))
    return torch.tensor([row + [PAD] * (width - len(row)) for row in rows])


# %% q1 padding in front
# Padding stands before the symbols
def pad_rows(rows):
    width = max(map(len, rows))
    ids = torch.tensor([[PAD] * (width - len(row)) + row for row in rows])
    return ids, ids != PAD


# %% q1 width of the first row
# Long rows are cut
def pad_rows(rows):
    width = len(rows[0])
    ids = torch.tensor([(row + [PAD] * width)[:width] for row in rows])
    return ids, ids != PAD


# %% q1 another fill
# another number than PAD
def pad_rows(rows):
    width = max(map(len, rows))
    ids = torch.tensor([row + [-1] * (width - len(row)) for row in rows])
    return ids, ids != -1


# %% q1 floating numbers
# The numbers are floating
def pad_rows(rows):
    ids = torch.zeros(len(rows), max(map(len, rows)))
    for b, row in enumerate(rows):
        ids[b, : len(row)] = torch.tensor(row)
    return ids, ids != PAD


# %% q1 mask inverted
# The mask is inverted
def pad_rows(rows):
    ids = fill(rows)
    return ids, ids == PAD


# %% q1 mask of numbers
# The mask holds numbers
def pad_rows(rows):
    ids = fill(rows)
    return ids, (ids != PAD).long()


# %% q1 no mask
# the numbers and the mask
def pad_rows(rows):
    return fill(rows)


# %% q2 no mask
# Padding is averaged too
def masked_mean(states, mask):
    return states.mean(dim=1)


# %% q2 divided by S
# it is divided by S
def masked_mean(states, mask):
    return (states * mask[..., None]).mean(dim=1)


# %% q2 divided by the count of the batch
# the real positions of the whole batch
def masked_mean(states, mask):
    return (states * mask[..., None]).sum(dim=1) / mask.sum()


# %% q2 sum
# This is the sum
def masked_mean(states, mask):
    return (states * mask[..., None]).sum(dim=1)


# %% q2 features averaged
# The features are averaged
def masked_mean(states, mask):
    return states.mean(dim=2)


# %% q2 mask inverted
# this is the mean over the padding
def masked_mean(states, mask):
    hidden = ~mask[..., None]
    return (states * hidden).sum(dim=1) / hidden.sum(dim=1)


# %% q3 not shifted
# it learns to repeat
def read_and_say(rows):
    said = fill([[*row, EOS] for row in rows])
    return said, said


# %% q3 swapped
# Read and said are swapped
def read_and_say(rows):
    return fill([[*row, EOS] for row in rows]), fill([[BOS, *row] for row in rows])


# %% q3 EOS is read
# EOS is read too: at its last step
def read_and_say(rows):
    return fill([[BOS, *row, EOS] for row in rows]), fill([[*row, EOS] for row in rows])


# %% q3 EOS in place of BOS
# The first thing read is EOS
def read_and_say(rows):
    return fill([[EOS, *row] for row in rows]), fill([[*row, EOS] for row in rows])


# %% q3 last sound not read
# The last sound is never read
def read_and_say(rows):
    read = fill(rows).roll(1, dims=1)
    read[:, 0] = BOS
    return read, fill([[*row, EOS] for row in rows])


# %% q3 EOS behind the padding
# EOS stands behind the padding
def read_and_say(rows):
    end = torch.full((len(rows), 1), EOS)
    return fill([[BOS, *row] for row in rows]), torch.cat([fill(rows), end], dim=1)


# %% q3 no EOS
# EOS is missing
def read_and_say(rows):
    read = fill([[BOS, *row] for row in rows])
    return read, torch.cat([read[:, 1:], torch.full((len(rows), 1), PAD)], dim=1)


# %% q3 BOS is said
# BOS is said too
def read_and_say(rows):
    said = fill([[BOS, *row, EOS] for row in rows])
    return fill([[BOS, *row] for row in rows]), said


# %% q4 place by place
# Symbols are compared place by place
def edits(output, reference):
    different = sum(o != r for o, r in zip(output, reference))
    return different + abs(len(output) - len(reference))


# %% q4 replacement costs two
# A replacement costs 2
def edits(output, reference):
    above = list(range(len(reference) + 1))
    for i, symbol in enumerate(output, start=1):
        row = [i]
        for j, wanted in enumerate(reference, start=1):
            replaced = above[j - 1] + 2 * (symbol != wanted)
            row.append(min(above[j] + 1, row[-1] + 1, replaced))
        above = row
    return above[-1]


# %% q4 swap costs one
# Swapping two neighbours counts as one edit
def edits(output, reference):
    E = {(-1, -1): 0}
    for i in range(len(output)):
        E[i, -1] = i + 1
    for j in range(len(reference)):
        E[-1, j] = j + 1
    for i, o in enumerate(output):
        for j, r in enumerate(reference):
            E[i, j] = min(E[i - 1, j] + 1, E[i, j - 1] + 1, E[i - 1, j - 1] + (o != r))
            if i and j and o == reference[j - 1] and output[i - 1] == r:
                E[i, j] = min(E[i, j], E[i - 2, j - 2] + 1)
    return E[len(output) - 1, len(reference) - 1]


# %% q4 order ignored
# The order is ignored
def edits(output, reference):
    left = list(output)
    for symbol in reference:
        if symbol in left:
            left.remove(symbol)
    return max(len(left), len(reference) - len(output) + len(left))


# %% q4 a tensor
# convert it with int()
def edits(output, reference):
    return torch.tensor(edit_distance(output, reference))


# %% q4 border
# The border of the table is wrong
def edits(output, reference):
    if not output:
        return 0
    return edit_distance(output, reference)


# %% q4 deletions are free
# Deletions are free
def edits(output, reference):
    if not reference:
        return 0
    return edit_distance(output, reference)


# %% q5 mean of rates
# The mean of the words' rates
def error_rate(outputs, references):
    rates = [
        min(edit_distance(output, r) / len(r) for r in choices)
        for output, choices in zip(outputs, references)
    ]
    return sum(rates) / len(rates)


# %% q5 first reference only
# Only the first reference counts
def error_rate(outputs, references):
    pairs = [(o, choices[0]) for o, choices in zip(outputs, references)]
    return sum(edit_distance(o, r) for o, r in pairs) / sum(len(r) for _, r in pairs)


# %% q5 sounds of the outputs
# divided by the sounds of the outputs
def error_rate(outputs, references):
    edits = sum(
        min(edit_distance(o, r) for r in choices)
        for o, choices in zip(outputs, references)
    )
    return edits / sum(map(len, outputs))


# %% q5 word errors
# the share of wrong words
def error_rate(outputs, references):
    wrong = sum(o not in choices for o, choices in zip(outputs, references))
    return wrong / len(outputs)


# %% q5 sounds of all references
# The sounds of all references are counted
def error_rate(outputs, references):
    edits = sum(
        min(edit_distance(o, r) for r in choices)
        for o, choices in zip(outputs, references)
    )
    return edits / sum(len(r) for choices in references for r in choices)


# %% q5 a percentage
# This is a percentage
def error_rate(outputs, references):
    edits = sounds = 0
    for output, choices in zip(outputs, references):
        nearest = min(choices, key=lambda r: edit_distance(output, r))
        edits += edit_distance(output, nearest)
        sounds += len(nearest)
    return 100 * edits / sounds


# %% q5 cut at one
# Rates are cut at 1
def error_rate(outputs, references):
    edits = sounds = 0
    for output, choices in zip(outputs, references):
        nearest = min(choices, key=lambda r: edit_distance(output, r))
        edits += edit_distance(output, nearest)
        sounds += len(nearest)
    return min(1.0, edits / sounds)
