"""Checks of question q1. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q1"
points = None

import torch

from seq2seq_lib.grading.expect import expect
from seq2seq_lib.metrics import edit_distance as distance


def one_number(answer):
    if isinstance(answer, torch.Tensor):
        assert answer.numel() == 1, (
            f"Expected one number, got a tensor of shape {tuple(answer.shape)}."
        )
    return float(answer)


def numbers(*shape):
    return torch.linspace(0, 50, torch.Size(shape).numel()).sin().view(shape)


def states(c, read, W, b, E):
    found = [torch.tanh(c @ W.T + b)]
    for t in range(read.shape[1]):
        e = E[read[:, t]]
        found.append(torch.tanh(e + found[-1].roll(1, dims=-1)))
    return torch.stack(found, dim=1)


def walked(table, gold, own, *, first=1):
    rows = []
    for symbols, chosen in zip(gold.tolist(), own.tolist(), strict=True):
        read = symbols[:first]
        for symbol, mine in zip(symbols[first:], chosen[first:], strict=True):
            last = read[-1] if read else symbols[0]
            read.append(int(table[last].argmax()) if mine else symbol)
        rows.append(read)
    return torch.tensor(rows)


def best_of(prefix, answer):
    return min(
        distance([*prefix, *answer[said:]], answer) for said in range(len(answer) + 1)
    )


def right_after(prefix, answer):
    best = best_of(prefix, answer)
    found = [v for v in set(answer) if best_of([*prefix, v], answer) == best]
    return sorted(found + ["<eos>"] * (distance(prefix, answer) == best))


def as_list(answer):
    assert isinstance(answer, list), (
        f"Return a list of symbols, not a {type(answer).__name__}."
    )
    return sorted(answer)


@case("04_rnn_seq2seq", "q1")
def check_loss_by_hand(masked_loss):  # 3 points
    p = torch.tensor(
        [
            [[0.5, 0.2, 0.3], [0.25, 0.6, 0.15], [0.3, 0.2, 0.5], [0.9, 0.05, 0.05]],
            [[0.7, 0.125, 0.175], [0.8, 0.1, 0.1], [0.6, 0.1, 0.3], [0.4, 0.4, 0.2]],
        ]
    )
    target = torch.tensor([[0, 0, 2, 1], [1, 0, 0, 0]])
    mask = torch.tensor([[True, True, True, True], [True, False, False, False]])
    surprise = -p.log().gather(2, target[..., None])[..., 0]
    total = surprise[mask].sum()
    by_row = (surprise * mask).sum(dim=1) / mask.sum(dim=1)
    expect(
        one_number(masked_loss(p.log(), target, mask)),
        # probabilities 1/2, 1/4, 1/2, 1/20 and 1/8, all of them real
        torch.tensor([2.0, 4.0, 2.0, 20.0, 8.0]).log().mean().item(),
        otherwise="The loss is wrong: the mean of −log p of the target, over the five "
        "symbols where the mask is True.",
        mistakes={
            "The sign is missing: log p is negative, a surprise is positive.": (
                -total.item() / 5
            ),
            "Padding counts: the mask is not used, and the loss gets better with every "
            "column of padding.": surprise.mean().item(),
            "The sum is right, but it is divided by all positions: divide by the number "
            "of real symbols.": total.item() / 8,
            "The sum is divided by the number of rows: the loss of a long word would "
            "count for more. Divide by the number of real symbols.": total.item() / 2,
            "Each row is averaged first: then a symbol of a short word weighs more than "
            "one of a long word.": by_row.mean().item(),
            "The model's favourite symbol is scored, not the target.": (
                -p.log().amax(dim=2)[mask].mean().item()
            ),
            "The mask looks inverted: it is True at real symbols.": (
                surprise[~mask].mean().item()
            ),
        },
    )
