"""Checks of question q2. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q2"
points = None

import itertools

import torch

from seq2seq_lib.grading.expect import expect, same

NEVER = -1e4


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def filled(rows):
    width = max(map(len, rows))
    return torch.tensor([row + [0] * (width - len(row)) for row in rows])


def factor(letter, previous, x, t, before):
    at = x[min(t, len(x) - 1)]
    return (letter[at] + previous[before]).log_softmax(dim=0)


def factors(letter, previous, x, y, *, read=None, still=False):
    """log p of every symbol of y, by hand; read and still are for mistakes."""
    read = [1, *y[:-1]] if read is None else read
    steps = enumerate(zip(read, y, strict=True))
    return torch.stack(
        [
            factor(letter, previous, x, 0 if still else t, b)[y_t]
            for t, (b, y_t) in steps
        ]
    )


def speech(letter, previous, x, longest, *, repeat=False, still=False, first=1):
    """The greedy answer by hand, EOS included if it comes."""
    said, before = [], first
    while len(said) < longest and said[-1:] != [2]:
        scores = factor(letter, previous, x, 0 if still else len(said), before)
        said.append(int(scores.argmax()))
        before = first if repeat else said[-1]
    return said


def tables(letters, sounds, seed):
    """Random tables that say one sound for each letter, and the end for EOS."""
    letter = numbers(letters, sounds, seed=seed) * 2
    previous = numbers(sounds, sounds, seed=seed + 1) * 2
    letter[:, :4] = NEVER
    letter[2] = NEVER
    letter[2, 2], letter[2, 4] = 0.0, -50.0
    previous[2, 4] = 100.0  # whoever reads EOS goes on
    previous[:, 2] = 0.0
    return letter, previous


def brute_force(p, length):
    """What has ended by some length, and what is going, over all answers."""
    sounds = [i for i in range(len(p)) if i > 3]
    ended = going = 0.0
    for size in range(length + 1):
        for said in itertools.product(sounds, repeat=size):
            path = [1, *said]
            reached = 1.0
            for before, after in itertools.pairwise(path):
                reached *= p[before, after].item()
            ended += reached * p[path[-1], 2].item()
            going += reached * (1 - p[path[-1], 2].item()) * (size == length)
    return ended, going


def masses_of(p, length, *, start=None, absorb=True, exactly=False):
    reached = torch.eye(len(p))[1] if start is None else start
    ended = 0.0
    for _ in range(length + 1):
        reached = reached @ p
        ended = reached[2].item() + (0.0 if exactly else ended)
        if absorb:
            reached = reached * (torch.arange(len(p)) != 2)
    return ended, (reached.sum() - reached[2]).item()


def babbler():
    p = torch.zeros(6, 6)
    p[1, [4, 5, 2]] = torch.tensor([0.5, 0.25, 0.25])
    p[4, [4, 5, 2]] = torch.tensor([0.25, 0.5, 0.25])
    p[5, [4, 5, 2]] = torch.tensor([0.2, 0.2, 0.6])
    p[2, [4, 5, 2]] = torch.tensor([0.25, 0.25, 0.5])
    return p


@case("02_encoder_decoder", "q2")
def check_log_probability(scored):  # 3 points
    letter, previous = numbers(7, 8), numbers(8, 8, seed=1)
    xs, ys = [[4, 6, 5, 2], [5, 4, 2]], [[5, 4, 7, 2], [6, 2]]

    def total(change=lambda f: f.sum(), **options):
        pairs = zip(xs, ys, strict=True)
        return torch.stack(
            [change(factors(letter, previous, x, y, **options)) for x, y in pairs]
        )

    def reading(read):
        pairs = zip(xs, ys, strict=True)
        return torch.stack(
            [factors(letter, previous, x, y, read=read(y)).sum() for x, y in pairs]
        )

    padded = [factors(letter, previous, xs[0], ys[0])]
    padded += [factors(letter, previous, xs[1], [6, 2, 0, 0])]
    right = total()
    expect(
        scored(letter, previous, filled(xs), filled(ys)),
        right,
        otherwise="The log-probabilities are wrong: one step for every symbol, each "
        "reading the symbol before it, BOS at first.",
        mistakes={
            "The end is missing: y_T is EOS, and its factor counts.": total(
                lambda f: f[:-1].sum()
            ),
            "Padding is scored too: behind EOS there is nothing to say.": torch.stack(
                [f.sum() for f in padded]
            ),
            "The decoder reads the symbol that it is about to say: it should read the "
            "one before.": reading(lambda y: y),
            "The decoder reads BOS at every step: hand it what was said.": reading(
                lambda y: [1] * len(y)
            ),
            "The decoder reads PAD at first: it begins with BOS.": reading(
                lambda y: [0, *y[:-1]]
            ),
            "The state is not carried on: use the one that step returns.": total(
                still=True
            ),
            "This is the mean of the factors: a product has no mean, so add the "
            "logarithms up.": total(lambda f: f.mean()),
            "Probabilities are added up: they multiply, and their logarithms add up.": (
                total(lambda f: f.exp().sum())
            ),
            "This is the probability: expected its logarithm.": right.exp(),
            "All rows are added up: every row is an answer of its own.": right.sum(),
        },
    )
