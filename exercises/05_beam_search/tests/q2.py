"""Checks of question q2. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q2"
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


@case("05_beam_search", "q2")
def check_step_by_hand(beam_step):  # 4 points
    totals = torch.tensor([-1.0, -1.5])
    scores = torch.tensor(
        [[0.02, 0.20, 0.30, 0.03, 0.45], [0.10, 0.15, 0.40, 0.28, 0.07]]
    ).log()
    table = totals[:, None] + scores
    candidates = all_candidates(table)
    alive, ended = advanced(candidates, 2)
    ranked = sorted(candidates, reverse=True)
    one_each = sorted(
        (max(c for c in candidates if c[1] == w and c[2] != EOS) for w in range(2)),
        reverse=True,
    )
    places = [(total, w * 5 + v) for total, w, v in candidates]
    lowest = sorted(candidates)
    expect(
        both_lists(beam_step(totals, scores, 2)),
        (alive, ended),
        otherwise="The step is wrong: rank totals + scores over all prefixes and "
        "symbols, put those with EOS among the best k aside, and keep the best k others.",
        mistakes={
            "The totals are not used: a candidate's log-probability is that of its prefix "
            "plus that of the symbol.": advanced(all_candidates(scores), 2),
            "Logarithms are multiplied: probabilities multiply, so logarithms add.": (
                advanced(all_candidates(totals[:, None] * scores), 2)
            ),
            "Prefix and symbol are exchanged: place // V is the prefix, place % V the "
            "symbol.": advanced([(t, v, w) for t, w, v in candidates], 2),
            "The places are divided by the number of prefixes: a row of the table has V "
            "places.": advanced([(t, *divmod(i, 2)) for t, i in places], 2),
            "An answer that has ended goes on: put candidates with EOS aside.": (
                ranked[:2],
                ended,
            ),
            "The beam gets thinner: an answer that ends must not take the place of a "
            "prefix that goes on.": (
                [c for c in ranked[:2] if c[2] != EOS],
                ended,
            ),
            "Everything that could end is put aside: only EOS among the best k "
            "candidates counts.": (alive, [c for c in ranked if c[2] == EOS]),
            "Each prefix goes on once: one prefix may have several of the best k "
            "candidates, another none.": (one_each, ended),
            "These are the least likely candidates: the largest total is the best.": (
                [c for c in lowest if c[2] != EOS][:2],
                [c for c in lowest[:2] if c[2] == EOS],
            ),
        },
    )
