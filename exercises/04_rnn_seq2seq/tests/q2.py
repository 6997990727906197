"""Checks of question q2. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q2"
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


@case("04_rnn_seq2seq", "q2")
def check_forced_steps(forced):  # 4 points
    c, W, b = numbers(2, 5) * 0.5, numbers(4, 5).flip(0), numbers(4) + 0.5
    E, O_out, b_out = numbers(6, 4), numbers(4, 6).T * 2, numbers(6)
    read = torch.tensor([[1, 5, 3], [1, 4, 2]])
    every = states(c, read, W, b, E)
    scores = every[:, 1:] @ O_out.T + b_out
    g_0, e = every[:, :1], E[read]

    def said(some):
        return (some @ O_out.T + b_out).log_softmax(dim=-1)

    raw, nothing = (c @ W.T + b)[:, None], torch.zeros(2, 1, 4)
    from_raw, from_nothing = [raw], [nothing]
    for t in range(3):
        for some in (from_raw, from_nothing):
            some.append(torch.tanh(e[:, t : t + 1] + some[-1].roll(1, dims=-1)))
    expect(
        forced(c, read, W, b, E, O_out, b_out),
        scores.log_softmax(dim=-1),
        otherwise="The log-probabilities are wrong: g_0 from the summary, then f once "
        "for each column, then the output layer.",
        mistakes={
            "The tanh of the bridge is missing: g_0 = tanh(Wc + b).": said(
                torch.cat(from_raw[1:], dim=1)
            ),
            "The bridge has lost its bias b.": said(
                states(c, read, W, torch.zeros(4), E)[:, 1:]
            ),
            "The summary is not used: the decoder starts from zeros and says the same "
            "of every source.": said(torch.cat(from_nothing[1:], dim=1)),
            "Every step starts from g_0 again: carry the state on, or the decoder knows "
            "only the last symbol.": said(torch.tanh(e + g_0.roll(1, dims=-1))),
            "The scores come from the state before the step: read y_{t-1} first, g_0 "
            "says nothing.": said(every[:, :-1]),
            "These are scores, not log-probabilities: log_softmax is missing.": scores,
            "These are probabilities: the loss needs their logarithms.": (
                scores.softmax(dim=-1)
            ),
            "The softmax goes over the steps: it belongs over the symbols, the last "
            "axis.": scores.log_softmax(dim=1),
            "The output layer has lost its bias b_out.": (
                (every[:, 1:] @ O_out.T).log_softmax(dim=-1)
            ),
        },
    )
