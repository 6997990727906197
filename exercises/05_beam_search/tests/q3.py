"""Checks of question q3. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q3"
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


@case("05_beam_search", "q3")
def check_rows_change_places(continue_prefixes):  # 3 points
    prefixes = torch.tensor([[1, 10], [1, 11], [1, 12]])
    state = torch.arange(18.0).view(3, 3, 2)
    parents, symbols = torch.tensor([2, 0, 1]), torch.tensor([7, 8, 9])
    last = symbols[:, None]
    longer = torch.cat([prefixes[parents], last], dim=1)
    stale = torch.cat([prefixes, last], dim=1)
    back = parents.argsort()
    expect(
        continue_prefixes(prefixes, state, parents, symbols),
        (longer, state[:, parents]),
        otherwise="Prefixes or states are wrong: take both from the parent, then append "
        "the new symbol.",
        mistakes={
            "The state is not reordered: each prefix goes on with the past of another "
            "one.": (longer, state),
            "The prefixes are not reordered: each new symbol belongs behind its "
            "parent.": (stale, state[:, parents]),
            "`parents` is not used: prefixes and states stay where they were.": (
                stale,
                state,
            ),
            "The layers were reordered: prefixes stand on the second axis of the state.": (
                longer,
                state[parents],
            ),
            "Rows went the wrong way: new row w comes from old row parents[w]; here old "
            "row w went to row parents[w].": (
                torch.cat([prefixes[back], last], dim=1),
                state[:, back],
            ),
            "The symbols were reordered too: symbols[w] belongs to new prefix w already.": (
                torch.cat([prefixes[parents], symbols[parents, None]], dim=1),
                state[:, parents],
            ),
            "The new symbol stands in front: it is the last one of its prefix.": (
                torch.cat([last, prefixes[parents]], dim=1),
                state[:, parents],
            ),
            "A state was overwritten while others still needed it: read all rows before "
            "you write one.": (longer, state[:, [2, 2, 2]]),
        },
    )


@case("05_beam_search", "q3")
def check_one_parent_of_two(continue_prefixes):  # 1 point
    prefixes = torch.tensor([[1, 10, 4], [1, 11, 5], [1, 12, 6]])
    state = torch.arange(12.0).view(2, 3, 2)
    parents, symbols = torch.tensor([1, 1, 0]), torch.tensor([7, 8, 7])
    expect(
        continue_prefixes(prefixes, state, parents, symbols),
        (
            torch.tensor([[1, 11, 5, 7], [1, 11, 5, 8], [1, 10, 4, 7]]),
            state[:, [1, 1, 0]],
        ),
        otherwise="Two prefixes with the same parent should both get its past.",
    )
