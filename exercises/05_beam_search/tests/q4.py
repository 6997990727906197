"""Checks of question q4. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q4"
points = None

import itertools

import torch

from seq2seq_lib.grading.expect import expect

EOS = 2


def winner(scores):
    best = int(scores.argmax())
    return best, float(scores[best])


def place_and_score(answer):
    assert isinstance(answer, tuple | list), (
        "Return two things, the place of the best answer and its score."
    )
    assert len(answer) == 2, f"Return two things, not {len(answer)}."
    return int(answer[0]), float(answer[1])


def all_candidates(table):
    W, V = table.shape
    return [
        (float(table[w, v]), w, v) for w, v in itertools.product(range(W), range(V))
    ]


def advanced(candidates, k):
    ranked = sorted(candidates, reverse=True)
    ended = [c for c in ranked[:k] if c[2] == EOS]
    return [c for c in ranked if c[2] != EOS][:k], ended


def both_lists(answer):
    assert isinstance(answer, tuple | list), (
        "Return two lists of candidates: what goes on, and what has ended."
    )
    assert len(answer) == 2, f"Return two lists, not {len(answer)}."
    return tuple(
        [(float(total), int(parent), int(symbol)) for total, parent, symbol in part]
        for part in answer
    )


def kept(log_p, keep):
    return log_p.masked_fill(~keep, -torch.inf).log_softmax(dim=-1)


def fewest(p, top_p):
    keep = torch.zeros_like(p, dtype=torch.bool)
    for row, chosen in zip(p.tolist(), keep, strict=True):
        reached = 0.0
        for symbol in sorted(range(len(row)), key=lambda v: -row[v]):
            if reached < top_p:
                chosen[symbol] = True
            reached += row[symbol]
    return keep


@case("05_beam_search", "q4")
def check_counts_by_hand(candidates_looked_at):  # 2 points
    expect(
        candidates_looked_at(10, 5, 4),
        5.0 * (1 + 4 + 10 + 10),
        otherwise="With k = 10, n = 5, T = 4 there are 1, 4, 10 and 10 prefixes, each "
        "with 5 continuations.",
        mistakes={
            "This is the bound k · n · T: the beam begins with one prefix, not k.": 200.0,
            "The second step has too many prefixes: one prefix makes n − 1 that go on, "
            "which may be fewer than k.": 155.0,
            "Answers that have ended go on here: of n continuations n − 1 do.": 130.0,
            "There is a step too many: T steps in all, the first included.": 175.0,
            "There is a step too few: T steps in all, the first included.": 75.0,
            "These are the prefixes that are continued: each has n candidates.": 25.0,
            "This is exhaustive search: a beam never continues more than k prefixes.": (
                425.0
            ),
            "These are the answers of length T: count the candidates of every step.": (
                625.0
            ),
        },
    )


@case("05_beam_search", "q4")
def check_counts_of_greedy(candidates_looked_at):  # 1 point
    expect(
        candidates_looked_at(1, 6, 7),
        42.0,
        otherwise="Greedy search, k = 1, looks at n candidates in each of T steps.",
    )
