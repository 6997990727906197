"""Checks of question q3. `make exercises` writes this file: do not edit it."""

from seq2seq_lib.grading.practice import case

OK_FORMAT = False
name = "q3"
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


@case("04_rnn_seq2seq", "q3")
def check_what_is_read(sampled_input):  # 4 points
    # after 1 comes 4, after 4 comes 6, after 6 comes 5, after 5 comes 3, after 3 comes 7
    after = torch.tensor([0, 4, 2, 7, 6, 3, 5, 1])
    table = (torch.eye(8)[after] * 3).log_softmax(dim=-1)
    gold = torch.tensor([[1, 3, 5, 4, 6], [1, 6, 4, 3, 5], [1, 5, 3, 6, 4]])
    drawn = torch.tensor(
        [
            [0.9, 0.2, 0.1, 0.8, 0.3],
            [0.1, 0.7, 0.2, 0.1, 0.9],
            [0.3, 0.6, 0.9, 0.4, 0.2],
        ]
    )
    own = drawn < 0.5
    after_gold = torch.cat([gold[:, :1], after[gold[:, :-1]]], dim=1)
    expect(
        sampled_input(table, gold, drawn, 0.5),
        walked(table, gold, own),
        otherwise="What is read is wrong: column by column, the most probable symbol "
        "after the one just read where drawn < rate, gold elsewhere.",
        mistakes={
            "Own and gold are swapped: drawn < rate means the own choice.": (
                walked(table, gold, ~own)
            ),
            "Own choices are made after gold symbols: the model must live with what it "
            "has really read, also if that was its own.": torch.where(
                own, after_gold, gold
            ),
            "The first column is replaced too: every answer begins with <bos>.": (
                walked(table, gold, own, first=0)
            ),
            "One draw decides for the whole word: every position has its own.": (
                walked(table, gold, own[:, :1].expand_as(own))
            ),
            "One draw decides for the whole batch: every row has its own.": (
                walked(table, gold, own[:1].expand_as(own))
            ),
            "The choice is taken after the symbol that it replaces: look one column "
            "back.": torch.where(own, after[gold], gold).index_copy(
                1, torch.tensor([0]), gold[:, :1]
            ),
            "This is greedy decoding: where drawn is not less than the rate, gold is "
            "read.": walked(table, gold, torch.ones_like(own)),
            "This is teacher forcing: nothing is replaced.": gold,
            "The table is read by columns: row table[v] belongs to the symbol v that was "
            "read.": walked(table.T, gold, own),
        },
    )
