"""Checks of question q5. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q5"
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


@case("05_beam_search", "q5")
def check_kept_by_hand(keep_top_p):  # 3 points
    p = torch.tensor([[0.10, 0.30, 0.15, 0.25, 0.20], [0.05, 0.40, 0.35, 0.14, 0.06]])
    log_p = p.log()
    keep = torch.tensor([[0, 1, 0, 1, 1], [0, 1, 1, 0, 0]], dtype=torch.bool)
    short = torch.tensor([[0, 1, 0, 1, 0], [0, 1, 0, 0, 0]], dtype=torch.bool)
    three = torch.tensor([[0, 1, 0, 1, 1], [0, 1, 1, 1, 0]], dtype=torch.bool)
    unlikely = torch.tensor([[1, 0, 1, 1, 1], [1, 1, 1, 1, 1]], dtype=torch.bool)
    right = kept(log_p, keep)
    expect(
        keep_top_p(log_p, 0.65),
        right,
        otherwise="The log-probabilities are wrong: keep the fewest symbols that reach p "
        "in each row, −∞ for the rest, and scale what is kept.",
        mistakes={
            "What is kept does not reach p: the symbol that crosses it belongs to those "
            "kept.": kept(log_p, short),
            "The probabilities do not add up to 1 again: scale what is kept, for "
            "instance with log_softmax.": log_p.masked_fill(~keep, -torch.inf),
            "Dropped symbols can still be drawn: a log-probability of 0 is a "
            "probability of 1, use −∞.": log_p.masked_fill(~keep, 0).log_softmax(-1),
            "The symbols have changed places: undo the sorting.": right.sort(
                dim=-1, descending=True
            )[0],
            "Nothing was dropped: add up probabilities, not their logarithms.": log_p,
            "The least likely symbols were kept: sort in descending order.": kept(
                log_p, unlikely
            ),
            "These are probabilities: return their logarithms.": right.exp(),
            "Each symbol alone was compared with p: it is their sum that should reach "
            "it.": torch.full_like(p, torch.nan),
            "Both rows keep as many symbols: how many are needed differs from row to "
            "row.": kept(log_p, three),
        },
    )


@case("05_beam_search", "q5")
def check_a_sure_step(keep_top_p):  # 1 point
    log_p = torch.tensor([[0.05, 0.90, 0.01, 0.03, 0.01]]).log()
    right = torch.full((1, 5), -torch.inf)
    right[0, 1] = 0.0
    expect(
        keep_top_p(log_p, 0.6),
        right,
        otherwise="Where one symbol reaches p alone, keep that one and no other.",
    )
