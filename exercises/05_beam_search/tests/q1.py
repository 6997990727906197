"""Checks of question q1. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q1"
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


@case("05_beam_search", "q1")
def check_best_by_hand(best_answer):  # 2 points
    log_p = torch.tensor([-2.0, -2.4, -3.5, -9.0])
    symbols = torch.tensor([1, 3, 4, 2])
    length = symbols + 1
    scores = log_p / length**0.75
    expect(
        place_and_score(best_answer(log_p, symbols, 0.75)),
        winner(scores),
        otherwise="The best answer or its score is wrong: the largest log p / L^α, where "
        "L counts the EOS too.",
        mistakes={
            "Short answers win: log p is negative, so divide by L^α; to multiply by it "
            "lowers long answers.": winner(log_p * length**0.75),
            "The EOS is not counted: L is one more than `symbols`.": winner(
                log_p / symbols**0.75
            ),
            "α is the exponent of the length, not a factor of it.": winner(
                log_p / (0.75 * length)
            ),
            "α is not used: this is the mean over the symbols, as with α = 1.": winner(
                log_p / length
            ),
            "The length is not used: this is log p alone, as with α = 0.": winner(
                log_p
            ),
            "This is the worst answer: scores are negative, and the best is the largest, "
            "not the smallest.": (3, float(scores[3])),
            "The answer was chosen by log p and scored afterwards: choose by the score.": (
                0,
                float(scores[0]),
            ),
        },
    )
