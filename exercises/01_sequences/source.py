# %% [markdown]
# # Exercise 1: Sequences as tensors
#
# You write what stands between words and tensors: padding and masks, an average that
# ignores padding, what a decoder reads and says, and the two measures of the course.
# Symbols are numbers already; `PAD`, `BOS` and `EOS` are the special ones. Axes: B batch,
# S source, T target, D width.

# %% given
import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

PAD, BOS, EOS = 0, 1, 2

# %% helpers
import torch

from seq2seq_lib.grading.expect import expect, same
from seq2seq_lib.metrics import edit_distance as right_distance


def filled(rows, width=None, *, left=False, fill=0):
    width = width or max(map(len, rows))
    blanks = [[fill] * (width - len(row)) for row in rows]
    return torch.tensor(
        [b + r if left else r + b for r, b in zip(rows, blanks, strict=True)]
    )


def random_rows(random, *, rows=4, longest=6):
    lengths = torch.randint(1, longest, (rows,), generator=random).tolist()
    lengths[rows // 2] = longest
    return [torch.randint(3, 30, (n,), generator=random).tolist() for n in lengths]


# %% [markdown] question difficulty=1 minutes=10 reread=padding-and-masks
# ## Padding and its mask
#
# **Goal.** Make a rectangle of rows of different lengths: fill the shorter ones with
# `PAD` **at the end**, up to the longest. Return the numbers, and a boolean mask that is
# `True` where a real symbol stands.

# %% [markdown] hint
# How wide is the rectangle? Not every row has to be looked at for the mask: compare the
# filled tensor with something.

# %% [markdown] hint
# `row + [PAD] * (width - len(row))` is one filled row; `torch.tensor` of the list of all
# of them is the first result, and `ids != PAD` the second.


# %% solution
def pad_rows(
    rows: list[list[int]],
) -> tuple[Int[Tensor, "B S"], Bool[Tensor, "B S"]]:
    """Fill short rows at the end; say where real symbols stand."""
    # BEGIN SOLUTION
    width = max(map(len, rows))
    ids = torch.tensor([row + [PAD] * (width - len(row)) for row in rows])
    return ids, ids != PAD
    # END SOLUTION


# %% checks
def check_padded_numbers(pad_rows):  # 1 point
    rows = [[5, 6], [7, 8, 9, 4], [3]]
    answer = pad_rows(rows)
    assert isinstance(answer, tuple | list), (
        "Return two things, the numbers and the mask: `return ids, mask`."
    )
    expect(
        answer[0],
        filled(rows),
        otherwise="The numbers are wrong: every row, then PAD up to the longest row.",
        mistakes={
            "Padding stands before the symbols: it belongs at the end of a row.": filled(
                rows, left=True
            ),
            "Long rows are cut: the longest row decides the width, not the first.": (
                torch.tensor([[5, 6], [7, 8], [3, 0]])
            ),
            "Rows are filled with another number than PAD.": filled(rows, fill=-1),
            "The numbers are floating: symbols are whole numbers, as an embedding "
            "needs them.": filled(rows).float(),
            "The rectangle is one column too wide.": filled(rows, 5),
        },
    )


def check_padding_mask(pad_rows):  # 1 point
    _, mask = pad_rows([[5, 6], [7, 8, 9, 4], [3]])
    right = filled([[1, 1], [1, 1, 1, 1], [1]]).bool()
    expect(
        mask,
        right,
        otherwise="The mask is wrong: True at real symbols, False at padding.",
        mistakes={
            "The mask is inverted: True means a real symbol.": ~right,
            "The mask holds numbers: expected a boolean tensor.": right.long(),
            "The mask is True everywhere: padding should be False.": torch.ones(
                3, 4, dtype=torch.bool
            ),
        },
    )


# %% hidden
def check_padding_random(pad_rows, random):  # 1 point
    rows = random_rows(random)
    ids, mask = pad_rows(rows)
    right = filled(rows)
    expect(ids, right, otherwise="On random rows some numbers are wrong.")
    expect(mask, right != 0, otherwise="On random rows the mask is wrong.")


# %% [markdown] question difficulty=2 minutes=10 reread=padding-and-masks
# ## A mean that ignores padding
#
# **Goal.** Average the states of each row over its real positions. Which number stands at
# padding must not matter, however large it is.

# %% [markdown] hint
# A mean is a sum divided by a number. Both may count real positions only.

# %% [markdown] hint
# `mask[..., None]` is B S 1 and broadcasts over the features: multiply, sum over the
# positions, and divide by how many positions are real in that row.


# %% solution
def masked_mean(
    states: Float[Tensor, "B S D"], mask: Bool[Tensor, "B S"]
) -> Float[Tensor, "B D"]:
    """Average each row over its real positions."""
    # BEGIN SOLUTION
    real = mask[..., None].to(states.dtype)  # B S 1
    return (states * real).sum(dim=1) / real.sum(dim=1)
    # END SOLUTION


# %% checks
def check_mean_by_hand(masked_mean):  # 2 points
    states = torch.tensor(
        [[[1.0, 10.0], [3.0, 30.0], [9.0, 9.0], [9.0, 9.0]], [[2.0, 4.0]] * 4]
    )
    mask = torch.tensor([[True, True, False, False], [True, False, False, False]])
    real = mask[..., None] * states
    expect(
        masked_mean(states, mask),
        torch.tensor([[2.0, 20.0], [2.0, 4.0]]),
        otherwise="The means are wrong: sum over real positions, divided by how many "
        "there are in the row.",
        mistakes={
            "Padding is averaged too: the mask is not used.": states.mean(dim=1),
            "The sum is right, but it is divided by S: divide by the number of real "
            "positions.": real.sum(dim=1) / 4,
            "Every row is divided by the real positions of the whole batch: each row "
            "has its own number.": real.sum(dim=1) / 3,
            "This is the sum: a mean is divided by the number of real positions.": (
                real.sum(dim=1)
            ),
            "The features are averaged, not the positions: S is axis 1.": states.mean(
                dim=2
            ),
            "The mask looks inverted: this is the mean over the padding.": (
                (~mask[..., None] * states).sum(dim=1) / (~mask).sum(1, keepdim=True)
            ),
        },
    )


# %% hidden
def check_mean_padding_does_not_matter(masked_mean, random):  # 2 points
    states = torch.randn(3, 5, 4, generator=random)
    mask = torch.arange(5) < torch.tensor([[2], [5], [3]])
    right = torch.stack([s[m].mean(dim=0) for s, m in zip(states, mask, strict=True)])
    states[~mask] = torch.inf
    answer = masked_mean(states.nan_to_num(posinf=1e30), mask)
    expect(
        answer,
        right,
        otherwise="What stands at padding changes the mean: even 1e30 must not.",
    )


# %% [markdown] question difficulty=2 minutes=15 reread=what-the-decoder-reads
# ## What the decoder reads and says
#
# **Goal.** From pronunciations without special symbols make the two tensors that teach a
# decoder: what it **reads**, which begins with `BOS`, and what it should **say** at the
# same step, which ends with `EOS`. Both are filled with `PAD` at the end and have the
# same shape.

# %% [markdown] hint
# Write down both rows for `[7, 8]`. How long is each?

# %% [markdown] hint
# `[BOS, *row]` and `[*row, EOS]` are equally long. Add the special symbols first, then
# fill: `EOS` stands right behind the last sound.


# %% solution
def read_and_say(
    rows: list[list[int]],
) -> tuple[Int[Tensor, "B T"], Int[Tensor, "B T"]]:
    """What a decoder reads, and what it should say at the same step."""
    # BEGIN SOLUTION
    width = max(map(len, rows)) + 1

    def padded(sequences):
        filled = [row + [PAD] * (width - len(row)) for row in sequences]
        return torch.tensor(filled)

    return padded([[BOS, *row] for row in rows]), padded([[*row, EOS] for row in rows])
    # END SOLUTION


# %% checks
def check_what_is_read(read_and_say):  # 2 points
    rows = [[7, 8, 9], [5]]
    answer = read_and_say(rows)
    assert isinstance(answer, tuple | list), (
        "Return two tensors: what is read, what is said."
    )
    assert not same(
        answer, (filled([[7, 8, 9, 2], [5, 2]]), filled([[1, 7, 8, 9], [1, 5]]))
    ), "Read and said are swapped: the first begins with BOS, the second ends with EOS."
    expect(
        answer[0],
        filled([[1, 7, 8, 9], [1, 5]]),
        otherwise="What is read is wrong: BOS, then the sounds, then PAD.",
        mistakes={
            "The decoder reads what it should say, so it learns to repeat: what it "
            "reads comes one step late, behind BOS.": filled([[7, 8, 9, 2], [5, 2]]),
            "EOS is read too: at its last step the decoder reads the last sound, and "
            "there is nothing to say behind EOS.": filled([[1, 7, 8, 9, 2], [1, 5, 2]]),
            "The first thing read is EOS: it should be BOS.": filled(
                [[2, 7, 8, 9], [2, 5]]
            ),
            "The last sound is never read: only EOS has no place in what is read.": (
                filled([[1, 7, 8], [1, 5, 0]])
            ),
        },
    )


def check_what_is_said(read_and_say):  # 2 points
    _, said = read_and_say([[7, 8, 9], [5]])
    expect(
        said,
        filled([[7, 8, 9, 2], [5, 2]]),
        otherwise="What is said is wrong: the sounds, then EOS, then PAD.",
        mistakes={
            "EOS stands behind the padding: it belongs right behind the last sound.": (
                torch.tensor([[7, 8, 9, 2], [5, 0, 0, 2]])
            ),
            "EOS is missing: a decoder that never learns to stop will not.": filled(
                [[7, 8, 9, 0], [5, 0, 0, 0]]
            ),
            "BOS is said too: nobody has to say how it begins.": filled(
                [[1, 7, 8, 9, 2], [1, 5, 2]]
            ),
        },
    )


# %% hidden
def check_one_step_late(read_and_say, random):  # 1 point
    rows = random_rows(random)
    read, said = read_and_say(rows)
    right = filled([[*row, 2] for row in rows])
    expect(said, right, otherwise="On random rows, what is said is wrong.")
    expect(
        read,
        filled([[1, *row] for row in rows]),
        otherwise="On random rows, what is read is wrong.",
        mistakes={
            "What is read is what is said, moved by one: EOS of the shorter rows is "
            "read too.": torch.cat([torch.ones(4, 1).long(), right[:, :-1]], dim=1),
        },
    )


# %% [markdown] question difficulty=3 minutes=20 reread=is-the-answer-right
# ## Edit distance
#
# **Goal.** Count the fewest insertions, deletions and replacements that turn the output
# into the reference. Either may be empty. The library has such a function; write the table
# yourself.

# %% [markdown] hint
# The table of the chapter needs a first row and a first column: turning nothing into
# $j$ symbols takes $j$ insertions.

# %% [markdown] hint
# Each cell is the smallest of three: the cell above plus 1, the cell to the left plus 1,
# the cell above left plus 1 if the symbols differ.


# %% solution
def edits(output: list[str], reference: list[str]) -> int:
    """The fewest edits that turn the output into the reference."""
    # BEGIN SOLUTION
    above = list(range(len(reference) + 1))
    for i, symbol in enumerate(output, start=1):
        row = [i]
        for j, wanted in enumerate(reference, start=1):
            replaced = above[j - 1] + (symbol != wanted)
            row.append(min(above[j] + 1, row[-1] + 1, replaced))
        above = row
    return above[-1]
    # END SOLUTION


# %% checks
def check_edits_by_hand(edits):  # 2 points
    count = edits("K N IH T".split(), "N AY T".split())
    assert type(count) is int, (
        f"Expected a whole number, got {type(count).__name__}: convert it with int()."
    )
    expect(
        count,
        2,
        otherwise="K N IH T into N AY T takes two edits: delete K, replace IH.",
        mistakes={
            "Symbols are compared place by place: one deletion moves all that follow, "
            "and should cost 1.": 4,
            "A replacement costs 2 here: it is one edit.": 3,
        },
    )
    expect(
        edits(["A", "B"], ["B", "A"]),
        2,
        otherwise="A B into B A takes two edits.",
        mistakes={
            "Swapping two neighbours counts as one edit: here it takes two.": 1,
            "The order is ignored: A B and B A are different words.": 0,
        },
    )


def check_edits_of_nothing(edits):  # 1 point
    expect(
        edits([], ["A", "B", "C"]),
        3,
        otherwise="Nothing into three symbols takes three insertions.",
        mistakes={
            "The border of the table is wrong: to say nothing is not free of mistakes, "
            "every missing symbol is an insertion.": 0,
        },
    )
    expect(
        edits(["A", "B", "C"], []),
        3,
        otherwise="Three symbols into nothing takes three deletions.",
        mistakes={
            "Deletions are free: every symbol too many is an edit.": 0,
        },
    )


# %% hidden
def check_edits_random(edits, random):  # 2 points
    for _ in range(20):
        sizes = torch.randint(0, 7, (2,), generator=random).tolist()
        pair = [
            [str(n) for n in torch.randint(0, 3, (size,), generator=random).tolist()]
            for size in sizes
        ]
        expect(
            edits(*pair),
            right_distance(*pair),
            otherwise="On random sequences some distances are wrong.",
        )


# %% [markdown] question difficulty=3 minutes=15 reread=is-the-answer-right
# ## Phoneme error rate
#
# **Goal.** Over all words, the edits to the **nearest** reference of each word, as a
# share of the sounds of those references. If two references are equally near, take any:
# no check depends on it. You may use `seq2seq_lib.metrics.edit_distance`.

# %% [markdown] hint
# Add up edits over all words, and sounds over all words; divide once, at the end.

# %% [markdown] hint
# `min(references, key=lambda r: edit_distance(output, r))` is the nearest reference.


# %% solution
def error_rate(outputs: list[list[str]], references: list[list[list[str]]]) -> float:
    """Edits to the nearest references, over the sounds that were wanted."""
    # BEGIN SOLUTION
    from seq2seq_lib.metrics import edit_distance

    edits, sounds = 0, 0
    for output, choices in zip(outputs, references, strict=True):
        nearest = min(choices, key=lambda choice: edit_distance(output, choice))
        edits += edit_distance(output, nearest)
        sounds += len(nearest)
    return edits / sounds
    # END SOLUTION


# %% checks
def check_rate_by_hand(error_rate):  # 2 points
    outputs = [["N", "AY", "T"], ["R", "EH", "D"], ["A"]]
    references = [
        [["N", "AY", "T"]],
        [["R", "IY", "D"], ["R", "EH", "D"]],
        [["A", "B", "C", "D"]],
    ]
    expect(
        error_rate(outputs, references),
        3 / 10,
        otherwise="Three edits over ten sounds is 0.3.",
        mistakes={
            "The mean of the words' rates is taken: long words should count for more, "
            "so add up edits and sounds first.": 0.25,
            "Only the first reference counts here: any of them is right.": 4 / 10,
            "The edits are divided by the sounds of the outputs: divide by those of "
            "the references.": 3 / 7,
            "This is the share of wrong words: count edits and sounds.": 1 / 3,
            "This is the number of edits: divide by the number of sounds.": 3.0,
            "The sounds of all references are counted: only the nearest one of each "
            "word was wanted.": 3 / 13,
            "This is a percentage: expected a share.": 30.0,
        },
    )


# %% hidden
def check_rate_random(error_rate, random):  # 2 points
    def word(size):
        return [str(n) for n in torch.randint(0, 3, (size,), generator=random).tolist()]

    outputs, references = [], []
    edits = sounds = 0
    for size, sizes in [(3, (4, 6)), (4, (5,)), (2, (2, 3)), (6, (6,)), (5, (1,))]:
        distances = [0, 0]
        while len(distances) > len(set(distances)):  # until one is nearest
            output, choices = word(size), [word(n) for n in sizes]
            distances = [right_distance(output, choice) for choice in choices]
        outputs.append(output)
        references.append(choices)
        edits += min(distances)
        sounds += len(choices[distances.index(min(distances))])
    expect(
        error_rate(outputs, references),
        edits / sounds,
        otherwise="On random words the rate is wrong.",
    )


def check_rate_above_one(error_rate):  # 1 point
    expect(
        error_rate([["A", "B", "C"]], [[["D"]]]),
        3.0,
        otherwise="Three edits over one sound is a rate of 3.",
        mistakes={
            "Rates are cut at 1: an output may need more edits than it should have "
            "sounds.": 1.0,
        },
    )
