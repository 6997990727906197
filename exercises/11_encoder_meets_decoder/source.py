# %% [markdown]
# # Exercise 11: Where encoder meets decoder
#
# You write the seam of a Transformer: its masks, the look at a memory of another width,
# a step with a cache, the reorder of a beam, and the loss. All of them run when they are
# wrong, so the checks compare numbers. Axes are those of the chapter: B sources, S source
# positions, T target positions, M width of the memory, D width of the decoder, V symbols,
# R rows that are decoded. Masks are `True` where one may look.

# %% given
import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor

PAD, BOS, EOS = 0, 1, 2

# %% helpers
import math

import torch
from torch.nn import functional as F

from seq2seq_lib.grading.expect import expect


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def real(lengths, width):
    return torch.arange(width) < torch.tensor(lengths)[:, None]


def split(x, heads):
    return x.unflatten(-1, (heads, -1)).transpose(1, 2)


def merge(x):
    return x.transpose(1, 2).flatten(2)


def looked(q, k, v, mask, heads, *, cut=split, join=merge, **options):
    mask = None if mask is None else mask[:, None, None]
    q, k, v = (cut(x, heads) for x in (q, k, v))
    return join(F.scaled_dot_product_attention(q, k, v, attn_mask=mask, **options))


def causal_pass(x, W_Q, W_K, W_V, **options):
    q, k, v = (x @ W.T for W in (W_Q, W_K, W_V))
    return F.scaled_dot_product_attention(q, k, v, is_causal=True, **options)


def cache_of(x, W_K, W_V):
    return torch.stack([x @ W_K.T, x @ W_V.T], dim=2).transpose(0, 1)


# %% [markdown] question difficulty=2 minutes=15 reread=four-masks
# ## Four masks
#
# **Goal.** Draw the four masks of a batch as in the chapter: encoder padding, causal,
# target padding, cross. You are told which source and which target positions are real.
# In every mask rows look and columns are looked at; an entry is `True` where the row may
# look at the column. Give them their full size, as the signature has it.

# %% [markdown] hint
# Padding must not be looked **at**: it is the columns that are hidden, the same ones for
# every row. Which sequence stands in the columns of each mask?

# %% [markdown] hint
# `source_mask[:, None]` is B 1 S: the columns are there, and `expand(-1, T, -1)` repeats
# them for T rows. The lower triangle is
# `torch.ones(T, T, dtype=torch.bool).tril()`.


# %% solution
def four_masks(
    source_mask: Bool[Tensor, "B S"], target_mask: Bool[Tensor, "B T"]
) -> tuple[
    Bool[Tensor, "B S S"],
    Bool[Tensor, "T T"],
    Bool[Tensor, "B T T"],
    Bool[Tensor, "B T S"],
]:
    """Encoder padding, causal, target padding, cross."""
    # BEGIN SOLUTION
    S, T = source_mask.shape[1], target_mask.shape[1]
    encoder = source_mask[:, None].expand(-1, S, -1)
    causal = torch.ones(T, T, dtype=torch.bool).tril()
    target = target_mask[:, None].expand(-1, T, -1)
    cross = source_mask[:, None].expand(-1, T, -1)
    return encoder, causal, target, cross
    # END SOLUTION


# %% checks
def check_encoder_padding(four_masks):  # 1 point
    source, target = real([4, 2], 4), real([2, 3], 3)
    answer = four_masks(source, target)
    assert isinstance(answer, tuple | list), "Return four masks, one after the other."
    assert len(answer) == 4, f"Return four masks, not {len(answer)}."
    columns = source[:, None].expand(2, 4, 4)
    rows = source[:, :, None].expand(2, 4, 4)
    expect(
        answer[0],
        columns,
        otherwise="The mask of encoder padding is wrong: True where the column is real.",
        mistakes={
            "The masks look inverted: True means that one may look.": ~columns,
            "The rows of padding are hidden, not the columns: padding may look, it "
            "must not be looked at.": rows,
            "Rows and columns of padding are hidden: a row that may look nowhere has a "
            "softmax of nothing, which is no number.": rows & columns,
            "The encoder's mask is a triangle: an encoder may look both ways.": (
                columns.tril()
            ),
        },
    )


def check_causal(four_masks):  # 1 point
    _, causal, _, _ = four_masks(real([4, 2], 4), real([2, 3], 3))
    right = torch.ones(3, 3).tril().bool()
    expect(
        causal,
        right,
        otherwise="The causal mask is wrong: position t looks at 0 … t, in T rows and "
        "T columns.",
        mistakes={
            "The triangle is upside down: the decoder sees the future, and not the "
            "past.": right.T,
            "The diagonal is missing: a position may look at itself, and the first one "
            "has nothing else.": right.tril(-1),
            "The triangle has the size of the source: it is the decoder that must not "
            "see its future.": torch.ones(4, 4).tril().bool(),
        },
    )


def check_target_padding(four_masks):  # 1 point
    target = real([2, 3], 3)
    _, _, padding, _ = four_masks(real([4, 2], 4), target)
    right = target[:, None].expand(2, 3, 3)
    expect(
        padding,
        right,
        otherwise="The mask of target padding is wrong: True where the column is real.",
        mistakes={
            "The mask of target padding is a triangle too: here each mask hides its "
            "own, and they are joined where they are used.": right.tril(),
        },
    )


def check_cross(four_masks):  # 1 point
    source, target = real([4, 2], 4), real([2, 3], 3)
    _, _, _, cross = four_masks(source, target)
    right = source[:, None].expand(2, 3, 4)
    expect(
        cross,
        right,
        otherwise="The cross mask is wrong: target positions look at real source "
        "positions.",
        mistakes={
            "The cross mask hides padding of the target: its columns are the source, "
            "and that is where padding must not be seen.": (
                target[:, :, None].expand(2, 3, 4)
            ),
            "The cross mask is transposed: the decoder looks, so its positions are the "
            "rows, B T S.": right.mT,
            "The cross mask is a triangle: the whole source is known, and every step "
            "may look at all of it.": right.tril(),
        },
    )


# %% hidden
def check_masks_random(four_masks, random):  # 2 points
    source = real(torch.randint(1, 6, (4,), generator=random).tolist(), 6)
    target = real(torch.randint(1, 5, (4,), generator=random).tolist(), 5)
    right = (
        source[:, None].expand(4, 6, 6),
        torch.ones(5, 5).tril().bool(),
        target[:, None].expand(4, 5, 5),
        source[:, None].expand(4, 5, 6),
    )
    expect(
        tuple(four_masks(source, target)),
        right,
        otherwise="On random lengths some mask is wrong.",
    )


# %% [markdown] question difficulty=3 minutes=20 reread=what-passes
# ## A look at a memory of another width
#
# **Goal.** Cross-attention with several heads, of a decoder of width D on a memory of
# width M: $q_t = W_Q x_t$, $k_s = W_K m_s$, $v_s = W_V m_s$. Head $h$ takes the $h$-th
# slice of width K = D / H of all three, weighs real source positions by
# $\operatorname{softmax}_s(q_t \cdot k_s / \sqrt K)$ and averages their values. Return
# the heads' averages side by side. There is no output layer and no bias.

# %% [markdown] hint
# The three matrices end in width D, so the cut into heads is the same for all: B T D
# becomes B H T K. Which of T, H and K must be split off first?

# %% [markdown] hint
# `y.unflatten(-1, (heads, -1)).transpose(1, 2)` cuts; `y.transpose(1, 2).flatten(2)` puts
# together. The mask, B S, needs an axis for heads and one for queries.


# %% solution
def cross_attention(
    x: Float[Tensor, "B T D"],
    states: Float[Tensor, "B S M"],
    mask: Bool[Tensor, "B S"],
    W_Q: Float[Tensor, "D D"],
    W_K: Float[Tensor, "D M"],
    W_V: Float[Tensor, "D M"],
    heads: int,
) -> Float[Tensor, "B T D"]:
    """What every decoder position sees of the memory."""
    # BEGIN SOLUTION
    query, key, value = (
        y.unflatten(-1, (heads, -1)).transpose(1, 2)  # B H T K, B H S K twice
        for y in (x @ W_Q.T, states @ W_K.T, states @ W_V.T)
    )
    scores = query @ key.mT / math.sqrt(query.shape[-1])
    weights = scores.masked_fill(~mask[:, None, None], -torch.inf).softmax(dim=-1)
    return (weights @ value).transpose(1, 2).flatten(2)
    # END SOLUTION


# %% checks
def check_cross_attention(cross_attention):  # 3 points
    x, states, mask = numbers(2, 2, 6), numbers(2, 4, 5, seed=1), real([4, 2], 4)
    W_Q, W_K, W_V = numbers(6, 6, seed=2), numbers(6, 5, seed=3), numbers(6, 5, seed=4)
    q, k, v = x @ W_Q.T, states @ W_K.T, states @ W_V.T
    try:
        answer = cross_attention(x, states, mask, W_Q, W_K, W_V, 3)
    except RuntimeError as error:
        raise AssertionError(
            "Shapes do not fit: W_Q takes the decoder's x, of width D, and W_K and W_V "
            f"take the memory's states, of width M. PyTorch says: {error}"
        ) from error
    expect(
        answer,
        looked(q, k, v, mask, 3),
        otherwise="What the heads see is wrong: slices of width K, scores q · k / √K, "
        "padding hidden, averages of the values side by side.",
        mistakes={
            "Scores look mis-scaled: divide by the square root of the head width K.": (
                looked(q, k, v, mask, 3, scale=1.0)
            ),
            "Scores are divided by √D: a head adds up K products, so divide by √K.": (
                looked(q, k, v, mask, 3, scale=6**-0.5)
            ),
            "The mask is not used: padding of the source is seen.": looked(
                q, k, v, None, 3
            ),
            "The mask hides real positions of the source and shows padding: True means "
            "real.": looked(q, k, v, ~mask, 3).nan_to_num(),
            "There is one head only: cut queries, keys and values into slices.": looked(
                q, k, v, mask, 1
            ),
            "A head takes every H-th feature: it should take K neighbours.": looked(
                q,
                k,
                v,
                mask,
                3,
                cut=lambda y, h: y.unflatten(-1, (-1, h)).permute(0, 3, 1, 2),
                join=lambda y: y.permute(0, 2, 3, 1).flatten(2),
            ),
            "Positions get into each other's heads: split D into H and K first, then "
            "move H forward. A view straight to B H T K mixes them.": looked(
                q,
                k,
                v,
                mask,
                3,
                cut=lambda y, h: y.reshape(len(y), h, y.shape[1], -1),
            ),
            "The heads are right but come back mixed: move H next to K before they are "
            "put side by side.": looked(
                q, k, v, mask, 3, join=lambda y: y.reshape(2, 2, 6)
            ),
            "The keys are averaged: W_V m is what is taken.": looked(q, k, k, mask, 3),
            "W_K and W_V are swapped: keys are compared, values are averaged.": looked(
                q, v, k, mask, 3
            ),
        },
    )


# %% hidden
def check_cross_attention_random(cross_attention, random):  # 2 points
    x = torch.randn(3, 5, 8, generator=random)
    states = torch.randn(3, 4, 11, generator=random)
    W_Q = torch.randn(8, 8, generator=random)
    W_K, W_V = torch.randn(2, 8, 11, generator=random)
    mask = real([1, 4, 3], 4)
    expect(
        cross_attention(x, states, mask, W_Q, W_K, W_V, 2),
        looked(x @ W_Q.T, states @ W_K.T, states @ W_V.T, mask, 2),
        otherwise="With other widths and lengths, what the heads see is wrong.",
    )


def check_cross_attention_order(cross_attention, random):  # 1 point
    x, states = torch.randn(1, 2, 4, generator=random), numbers(1, 5, 3)
    W_Q = torch.randn(4, 4, generator=random)
    W_K, W_V = torch.randn(2, 4, 3, generator=random)
    mask, order = torch.tensor([[True] * 4 + [False]]), torch.tensor([4, 2, 0, 3, 1])
    expect(
        cross_attention(x, states[:, order], mask[:, order], W_Q, W_K, W_V, 2),
        looked(x @ W_Q.T, states @ W_K.T, states @ W_V.T, mask, 2),
        otherwise="The order of the memory's states makes a difference: the sum over s "
        "has no place for it, wherever padding stands.",
    )


# %% [markdown] question difficulty=3 minutes=20 reread=keep-what-cannot-change
# ## A step with a cache
#
# **Goal.** One step of causal self-attention with one head of width D. Each of R rows
# brings one new position, `x`. Compute its key and value, append them to the past, and
# let its query look at all positions up to and including itself. Return what it saw, and
# the cache with U = T + 1 positions. `past` holds keys and values of the T positions so
# far, oldest first, the key at index 0 of its third axis; it is `None` before the first
# step.

# %% [markdown] hint
# What the cache holds cannot change any more, so only the new position goes through the
# matrices. No mask is needed: why?

# %% [markdown] hint
# `torch.stack([x @ W_K.T, x @ W_V.T], dim=1)[None]` is 1 R 2 D, and `torch.cat` puts it
# behind the past. `key, value = cache.unbind(2)` are U R D each; scores of one row with
# its own keys are `torch.einsum("rd,urd->ru", query, key)`.


# %% solution
def cached_step(
    x: Float[Tensor, "R D"],
    past: Float[Tensor, "T R 2 D"] | None,
    W_Q: Float[Tensor, "D D"],
    W_K: Float[Tensor, "D D"],
    W_V: Float[Tensor, "D D"],
) -> tuple[Float[Tensor, "R D"], Float[Tensor, "U R 2 D"]]:
    """What a new position sees of itself and of the past, and the past with it."""
    # BEGIN SOLUTION
    new = torch.stack([x @ W_K.T, x @ W_V.T], dim=1)[None]  # 1 R 2 D
    cache = new if past is None else torch.cat([past, new])
    key, value = cache.unbind(2)  # U R D
    scores = torch.einsum("rd,urd->ru", x @ W_Q.T, key) / math.sqrt(x.shape[1])
    return torch.einsum("ru,urd->rd", scores.softmax(dim=-1), value), cache
    # END SOLUTION


# %% checks
def check_first_step(cached_step):  # 1 point
    x, (W_Q, W_K, W_V) = numbers(2, 3), numbers(3, 3, 3, seed=1)
    try:
        answer = cached_step(x, None, W_Q, W_K, W_V)
    except (TypeError, RuntimeError) as error:
        raise AssertionError(
            "The first step fails: before it the past is None, and the cache is the new "
            f"key and value alone. Python says: {error}"
        ) from error
    assert isinstance(answer, tuple | list), (
        "Return two things: what was seen, and the cache."
    )
    assert len(answer) == 2, f"Return two things, not {len(answer)}."
    right = cache_of(x[:, None], W_K, W_V)
    expect(
        answer[1],
        right,
        otherwise="The first cache is wrong: one position, R rows, key and value.",
        mistakes={
            "Key and value are swapped in the cache: the key comes first.": right.flip(
                2
            ),
            "The cache holds x: keep keys and values, or every step must project the "
            "whole past again.": torch.stack([x, x], dim=1)[None],
        },
    )
    expect(
        answer[0],
        right[0, :, 1],
        otherwise="At the first step there is one position to see: its own value.",
    )


def check_cache_grows(cached_step):  # 1 point
    x, (W_Q, W_K, W_V) = numbers(2, 4, 3), numbers(3, 3, 3, seed=1)
    cache = cache_of(x, W_K, W_V)
    answer = cached_step(x[:, 3], cache[:3], W_Q, W_K, W_V)[1]
    expect(
        answer,
        cache,
        otherwise="The cache is wrong: the past as it was, then the new position.",
        mistakes={
            "The cache is as short as before: append the new key and value.": cache[:3],
            "The cache forgets the past: only the new position is left.": cache[3:],
            "The new position stands in front: the cache is oldest first.": torch.cat(
                [cache[3:], cache[:3]]
            ),
        },
    )


def check_steps_equal_the_full_pass(cached_step):  # 2 points
    x, (W_Q, W_K, W_V) = numbers(2, 4, 3), numbers(3, 3, 3, seed=1)
    cache = cache_of(x, W_K, W_V)
    right = causal_pass(x, W_Q, W_K, W_V)[:, 3]
    q, (k, v) = x[:, 3] @ W_Q.T, cache.unbind(2)
    scores = torch.einsum("rd,urd->ru", q, k) / math.sqrt(3)
    everyone = (q @ k.flatten(0, 1).T / math.sqrt(3)).softmax(dim=-1)
    over_rows = scores.softmax(dim=0)
    expect(
        cached_step(x[:, 3], cache[:3], W_Q, W_K, W_V)[0],
        right,
        otherwise="The step differs from the full causal pass.",
        mistakes={
            "The new position does not look at itself: append first, then look.": (
                torch.einsum("ru,urd->rd", scores[:, :3].softmax(dim=-1), v[:3])
            ),
            "The step sees only the new position: the query should meet all keys of the "
            "cache.": v[3],
            "The scores of the step are not scaled: divide by √D, as the full pass "
            "does.": causal_pass(x, W_Q, W_K, W_V, scale=1.0)[:, 3],
            "Rows look at each other's past: each row has keys of its own.": (
                everyone @ v.flatten(0, 1)
            ),
            "The weights add up over the rows: the softmax belongs over the positions.": (
                torch.einsum("ru,urd->rd", over_rows, v)
            ),
        },
    )


# %% hidden
def check_many_steps(cached_step, random):  # 2 points
    x = torch.randn(3, 5, 4, generator=random)
    W_Q, W_K, W_V = torch.randn(3, 4, 4, generator=random)
    past, seen = None, []
    for x_t in x.unbind(1):
        said, past = cached_step(x_t, past, W_Q, W_K, W_V)
        seen.append(said)
    expect(
        torch.stack(seen, dim=1),
        causal_pass(x, W_Q, W_K, W_V),
        otherwise="Five steps from the first on differ from one causal pass.",
    )


# %% [markdown] question difficulty=4 minutes=20 reread=the-rows-of-a-beam-share-their-source
# ## Reorder for a beam
#
# **Goal.** A search keeps some rows, in a new order, some of them repeated: `rows` names
# N of the R old ones. Rows of one source stand together, R / B for each of B sources.
# Return the past of the rows kept, and the memory of the sources that go on: **one copy
# for each source**, however many rows it has. You may rely on it that the rows kept of
# one source stand together too, that sources keep their order, and that all that go on
# have equally many rows.

# %% [markdown] hint
# Which axis of the past are the rows? From the number of a row, how do you get the
# number of its source?

# %% [markdown] hint
# With W = R / B rows for each source, row $r$ belongs to source `r // W`. Each source is
# wanted once: `unique_consecutive()`.


# %% solution
def reorder(
    past: Float[Tensor, "T R 2 D"],
    memory: Float[Tensor, "B S D"],
    rows: Int[Tensor, " N"],
) -> tuple[Float[Tensor, "T N 2 D"], Float[Tensor, "C S D"]]:
    """The past of the rows kept, and the memory of their C sources."""
    # BEGIN SOLUTION
    width = past.shape[1] // len(memory)
    sources = (rows // width).unique_consecutive()
    return past[:, rows], memory[sources]
    # END SOLUTION


# %% checks
def check_pasts_move(reorder):  # 2 points
    past, memory = numbers(10, 9, 2, 2), numbers(3, 4, 2, seed=1)
    rows = torch.tensor([2, 0, 1, 4, 5, 3, 6, 8, 7])
    try:
        answer = reorder(past, memory, rows)
    except IndexError as error:
        raise AssertionError(
            "An index is too large: `rows` are numbers of rows, and the memory has "
            f"fewer sources than there are rows. PyTorch says: {error}"
        ) from error
    assert isinstance(answer, tuple | list), (
        "Return two things: the past, and the memory."
    )
    assert len(answer) == 2, f"Return two things, not {len(answer)}."
    expect(
        answer[0],
        past[:, rows],
        otherwise="The past is wrong: its second axis, the rows, in the order asked for.",
        mistakes={
            "The past is not reordered: rows go on with the past of another prefix.": (
                past
            ),
            "The time of the past is reordered: rows are its second axis.": past[rows],
            "Rows are sent where they should be fetched: new row i is old row rows[i].": (
                past[:, rows.argsort()]
            ),
        },
    )


def check_a_beam_begins(reorder):  # 1 point
    past, memory = numbers(2, 3, 2, 2), numbers(3, 4, 2, seed=1)
    rows = torch.tensor([0, 0, 1, 1, 2, 2])
    pasts, kept = reorder(past, memory, rows)
    expect(
        kept,
        memory,
        otherwise="When a beam begins, every source goes on: the memory stays.",
        mistakes={
            "The memory has a copy for each row: rows of a source share one.": (
                memory[rows]
            ),
            "The source of a row is its number divided by how many rows a source had "
            "before, not by how many it gets.": memory[:2],
            "The number of a row is divided by the number of sources: divide by the "
            "rows of each source, R / B.": memory[:1],
        },
    )
    expect(
        pasts,
        past[:, rows],
        otherwise="When a beam begins, each past is repeated for the rows it gets.",
        mistakes={
            "Every row is kept once in the past, though some are asked for repeatedly.": (
                past
            ),
        },
    )


def check_a_source_is_done(reorder):  # 1 point
    past, memory = numbers(2, 12, 2, 2), numbers(4, 3, 2, seed=1)
    rows = torch.tensor([3, 5, 4, 11, 9, 9])
    _, kept = reorder(past, memory, rows)
    expect(
        kept,
        memory[[1, 3]],
        otherwise="The memory is wrong where some sources are done: keep those that "
        "still have rows, in their order.",
        mistakes={
            "Sources that are done are still in the memory: rows would look at the "
            "source of a neighbour.": memory,
            "The first sources are kept, as many as go on: the rows say which go on.": (
                memory[:2]
            ),
            "The source is the remainder of a row's number: rows of a source stand "
            "together, so divide.": memory[[0, 1, 3]],
        },
    )


# %% hidden
def check_reorder_random(reorder, random):  # 2 points
    past = torch.randn(3, 20, 2, 3, generator=random)
    memory = torch.randn(5, 6, 3, generator=random)
    sources = torch.randperm(5, generator=random)[:3].sort().values
    inside = torch.randint(0, 4, (3, 4), generator=random)
    rows = (sources[:, None] * 4 + inside).flatten()
    pasts, kept = reorder(past, memory, rows)
    expect(pasts, past[:, rows], otherwise="On random rows the past is wrong.")
    expect(
        kept,
        memory[sources],
        otherwise="On random rows the memory is wrong: one copy of each source that "
        "goes on.",
    )


# %% [markdown] question difficulty=2 minutes=15 reread=four-masks
# ## The loss, where target padding counts
#
# **Goal.** The mean of $-\log p(y_t \mid y_{<t}, x)$ over all real symbols of the batch.
# `tokens` are whole answers: `BOS`, sounds, `EOS`, then `PAD`. Column $t$ of
# `log_probabilities` was computed after the decoder read `tokens[:, : t + 1]`, so there
# is one column less than there are tokens.

# %% [markdown] hint
# After reading `BOS` alone, which token should the decoder say? And which entries of
# what it should say are not real?

# %% [markdown] hint
# `target = tokens[:, 1:]`; `log_probabilities.gather(2, target[..., None])[..., 0]` are
# the chosen ones. Select those where `target != PAD`, then take the mean once.


# %% solution
def sequence_loss(
    log_probabilities: Float[Tensor, "B T V"], tokens: Int[Tensor, "B U"]
) -> Float[Tensor, ""]:
    """The mean negative log-probability of a real symbol; U = T + 1."""
    # BEGIN SOLUTION
    target = tokens[:, 1:]
    chosen = log_probabilities.gather(2, target[..., None])[..., 0]  # B T
    return -chosen[target != PAD].mean()
    # END SOLUTION


# %% checks
def check_loss(sequence_loss):  # 3 points
    tokens = torch.tensor([[1, 5, 3, 4, 2], [1, 4, 2, 0, 0]])
    given = numbers(2, 4, 6).log_softmax(dim=-1)
    target, read = tokens[:, 1:], tokens[:, :-1]
    chosen = -given.gather(2, target[..., None])[..., 0]
    repeated = -given.gather(2, read[..., None])[..., 0]
    mask = target != 0
    inside = mask & (target != 2)
    answer = sequence_loss(given, tokens)
    assert not isinstance(answer, torch.Tensor) or answer.numel() == 1, (
        f"Expected one number, got a tensor of shape {tuple(answer.shape)}."
    )
    expect(
        float(answer),
        chosen[mask].mean().item(),
        otherwise="The loss is wrong: the mean of −log p over the real symbols of the "
        "target, which is tokens without BOS.",
        mistakes={
            "The target is not shifted: column t is scored on the token just read, so "
            "the model learns to repeat.": repeated[read != 0].mean().item(),
            "Padding is scored too: the model is paid for saying PAD.": (
                chosen.mean().item()
            ),
            "The sum is right, but it is divided by all positions: divide by the real "
            "ones.": (chosen[mask].sum() / 8).item(),
            "Each row is averaged first: then a symbol of a short answer counts for "
            "more.": ((chosen * mask).sum(1) / mask.sum(1)).mean().item(),
            "The sign is wrong: a loss is the negative log-probability.": (
                -chosen[mask].mean().item()
            ),
            "This is the sum: divide it by the number of real symbols.": (
                chosen[mask].sum().item()
            ),
            "This is the sum divided by the rows: divide by the number of real "
            "symbols.": (chosen[mask].sum() / 2).item(),
            "EOS is not scored: a decoder that never learns to stop will not.": (
                chosen[inside].mean().item()
            ),
        },
    )


# %% hidden
def check_loss_where_padding_is_impossible(sequence_loss):  # 1 point
    tokens = torch.tensor([[1, 5, 3, 2], [1, 2, 0, 0]])
    scores = numbers(2, 3, 6)
    scores[..., 0] = -math.inf
    given = scores.log_softmax(dim=-1)
    right = -(given[0, 0, 5] + given[0, 1, 3] + given[0, 2, 2] + given[1, 0, 2]) / 4
    answer = float(sequence_loss(given, tokens))
    assert math.isfinite(answer), (
        "Where PAD has probability 0 the loss is no finite number: 0 · ∞ is none. "
        "Select the real symbols, do not multiply by the mask."
    )
    expect(answer, right.item(), otherwise="Where PAD is impossible the loss is wrong.")


def check_loss_random(sequence_loss, random):  # 1 point
    lengths = torch.randint(0, 5, (4,), generator=random).tolist()
    rows = [torch.randint(3, 9, (n,), generator=random).tolist() for n in lengths]
    tokens = torch.tensor([[1, *row, 2] + [0] * (5 - len(row)) for row in rows])
    given = torch.randn(4, 6, 9, generator=random).log_softmax(dim=-1)
    right = F.cross_entropy(
        given.flatten(0, 1), tokens[:, 1:].flatten(), ignore_index=0
    )
    expect(
        float(sequence_loss(given, tokens)),
        right.item(),
        otherwise="On random answers the loss is wrong.",
    )
