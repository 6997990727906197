# %% [markdown]
# # Exercise 10: The Transformer
#
# You write what a Transformer adds to the earlier chapters: scaled embeddings, the
# position-wise network, the schedule and the loss that train it, a decoder block out of
# its sublayers, and the number of its weights. Axes are those of the chapter: B batch, S
# source positions, T target positions, D width, V symbols; `hidden` is the width inside
# the position-wise network. Masks are `True` where one may look, and at real symbols.

# %% given
import math

import torch
from jaxtyping import Bool, Float, Int
from torch import Tensor
from torch.nn import functional as F


def norm(
    x: Float[Tensor, "B T D"], gain: Float[Tensor, " D"]
) -> Float[Tensor, "B T D"]:
    """Layer norm of every position."""
    return F.layer_norm(x, gain.shape, gain)


def attend(
    x: Float[Tensor, "B T D"],
    seen: Float[Tensor, "B S D"],
    mask: Bool[Tensor, "*B #T S"],
    W: Float[Tensor, "4 D D"],
) -> Float[Tensor, "B T D"]:
    """What x sees of `seen`: queries from x, keys and values from `seen`, one head."""
    query, key, value = x @ W[0].T, seen @ W[1].T, seen @ W[2].T
    return F.scaled_dot_product_attention(query, key, value, attn_mask=mask) @ W[3].T


def think(
    x: Float[Tensor, "B T D"],
    W_1: Float[Tensor, "hidden D"],
    W_2: Float[Tensor, "D hidden"],
) -> Float[Tensor, "B T D"]:
    """The position-wise network, here without biases."""
    return F.linear(F.linear(x, W_1).relu(), W_2)


# %% helpers
import math

import torch
from torch import nn
from torch.nn import functional as F

from seq2seq_lib.grading.expect import expect


def numbers(*shape, seed=0):
    return torch.randn(*shape, generator=torch.Generator().manual_seed(seed))


def two_layers(x, W_1, b_1, W_2, b_2, act=torch.relu):
    return act(x @ W_1.T + b_1) @ W_2.T + b_2


def smoothed(log_p, target, mask, epsilon):
    target = target.masked_fill(~mask, -100)
    return F.cross_entropy(
        log_p.flatten(0, 1), target.flatten(), label_smoothing=epsilon
    ).item()


def normalized(x, gain):
    x = x - x.mean(dim=-1, keepdim=True)
    return x / (x.var(dim=-1, keepdim=True, correction=0) + 1e-5).sqrt() * gain


def attended(x, seen, mask, W):
    scores = x @ W[0].T @ (seen @ W[1].T).mT / math.sqrt(x.shape[-1])
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf)
    return scores.softmax(dim=-1).nan_to_num() @ seen @ W[2].T @ W[3].T


def in_turn(x, *sublayers):
    for sublayer, gain in sublayers:
        x = x + sublayer(normalized(x, gain))
    return x


def torch_layer(width, hidden, random):
    layer = nn.TransformerDecoderLayer(
        width, 1, hidden, dropout=0.0, batch_first=True, norm_first=True, bias=False
    )
    with torch.no_grad():
        for weight in layer.parameters():
            weight.copy_(torch.randn(weight.shape, generator=random))
    return layer


def weights_of(layer):
    attention, cross = (
        torch.cat([part.in_proj_weight, part.out_proj.weight])
        .detach()
        .unflatten(0, (4, -1))
        for part in (layer.self_attn, layer.multihead_attn)
    )
    gains = [part.weight.detach() for part in (layer.norm1, layer.norm2, layer.norm3)]
    return {
        "attention": attention,
        "cross": cross,
        "think": (layer.linear1.weight.detach(), layer.linear2.weight.detach()),
        "gains": torch.stack(gains),
    }


def torch_answer(layer, x, memory, causal, real):
    with torch.no_grad():
        return layer(x, memory, tgt_mask=~causal, memory_key_padding_mask=~real[:, 0])


def size(module):
    return sum(weight.numel() for weight in module.parameters())


def torch_sizes(source_symbols, target_symbols, width, heads, hidden, layers):
    inside = nn.Transformer(width, heads, layers, layers, hidden, batch_first=True)
    embeddings = (source_symbols + target_symbols) * width
    tied = size(inside) + embeddings + target_symbols
    return [tied + target_symbols * width, tied]


# %% [markdown] question difficulty=1 minutes=10 reread=embedding-times-d
# ## Symbols and positions
#
# **Goal.** Return what the first block reads: the embedding of each symbol times
# $\sqrt D$, plus the encoding of its position. Row $i$ of `positions` belongs to position
# $i$. The first column of `tokens` stands at position `start`, the next one at
# `start` + 1, and so on.

# %% [markdown] hint
# `table[tokens]` looks up all symbols at once, B T D. Which T rows of `positions` belong
# to the columns of `tokens`?

# %% [markdown] hint
# `positions[start : start + T]` with `T = tokens.shape[1]` broadcasts over the batch. The
# scale is the square root of `table.shape[1]`, and positions do not get it.


# %% solution
def embed(
    tokens: Int[Tensor, "B T"],
    table: Float[Tensor, "V D"],
    positions: Float[Tensor, "longest D"],
    start: int,
) -> Float[Tensor, "B T D"]:
    """Embed symbols, times √D, and add their positions."""
    # BEGIN SOLUTION
    here = positions[start : start + tokens.shape[1]]  # T D
    return math.sqrt(table.shape[1]) * table[tokens] + here
    # END SOLUTION


# %% checks
def check_embedding_by_hand(embed):  # 2 points
    tokens = torch.tensor([[3, 1, 4], [2, 4, 0], [1, 1, 5]])
    table, positions = numbers(6, 4), numbers(9, 4, seed=1)
    try:
        answer = embed(tokens, table, positions, 2)
    except RuntimeError as error:
        raise AssertionError(
            "Shapes do not fit: of `positions` take T rows, from `start` to `start` + T "
            f"− 1, and add them to B T D. PyTorch says: {error}"
        ) from error
    symbols, here = table[tokens], positions[2:5]
    expect(
        answer,
        2 * symbols + here,
        otherwise="The sum is wrong: √D times the row of `table`, plus the row of "
        "`positions`.",
        mistakes={
            "Embeddings look mis-scaled: multiply them by the square root of the width, "
            "or the positions drown them.": symbols + here,
            "Embeddings are multiplied by the width itself: take its square root.": (
                4 * symbols + here
            ),
            "Positions are multiplied by √D too: scale the embeddings before the sum.": (
                2 * (symbols + here)
            ),
            "The positions begin at 0: `start` is not used.": 2 * symbols
            + positions[:3],
            "The positions run down the batch: they belong to the columns, T.": (
                2 * symbols + here[:, None]
            ),
        },
    )


# %% hidden
def check_embedding_of_one_step(embed):  # 1 point
    tokens, table, positions = torch.tensor([[2], [0]]), numbers(3, 9), numbers(7, 9)
    answer = embed(tokens, table, positions, 4)
    assert tuple(answer.shape) == (2, 1, 9), (
        "A single column comes back as several: all positions behind `start` were added "
        "to it. Take as many as there are columns."
    )
    expect(
        answer,
        3 * table[tokens] + positions[4],
        otherwise="The embedding of a single column, as in a step of a decoder, is wrong.",
    )


def check_embedding_random(embed, random):  # 1 point
    tokens = torch.randint(0, 8, (3, 5), generator=random)
    table = torch.randn(8, 7, generator=random)
    positions = torch.randn(20, 7, generator=random)
    start = int(torch.randint(0, 15, (), generator=random))
    rows = positions[torch.arange(start, start + 5)]
    expect(
        embed(tokens, table, positions, start),
        7**0.5 * F.embedding(tokens, table) + rows,
        otherwise="On random symbols and positions the sum is wrong.",
    )


# %% [markdown] question difficulty=2 minutes=15 reread=the-feed-forward-network
# ## Every position alone
#
# **Goal.** Write the position-wise network twice.
#
# - `feed_forward`: $W_2 \max(0,\, W_1 x_t + b_1) + b_2$ for every position $t$.
# - `convolved`: the same network, but its matrices come as the kernels of two
#   convolutions of width 1, `k_1[:, :, 0]` being $W_1$. It takes and gives B T D as well.
#
# You may convolve, or show that you need not.

# %% [markdown] hint
# Matrices are stored as `nn.Linear` does, out × in, so rows are multiplied by their
# transpose. `F.conv1d` wants the features in the middle, B D T.

# %% [markdown] hint
# `F.linear(x, W, b)` is `x @ W.T + b`. To convolve, `x.mT` swaps the last two axes, and
# `F.conv1d(x.mT, k_1, b_1)` is B hidden T: swap back at the end. `reshape` does not swap.


# %% solution
def feed_forward(
    x: Float[Tensor, "B T D"],
    W_1: Float[Tensor, "hidden D"],
    b_1: Float[Tensor, " hidden"],
    W_2: Float[Tensor, "D hidden"],
    b_2: Float[Tensor, " D"],
) -> Float[Tensor, "B T D"]:
    """Two layers on every position alone."""
    # BEGIN SOLUTION
    return F.linear(F.linear(x, W_1, b_1).relu(), W_2, b_2)
    # END SOLUTION


def convolved(
    x: Float[Tensor, "B T D"],
    k_1: Float[Tensor, "hidden D 1"],
    b_1: Float[Tensor, " hidden"],
    k_2: Float[Tensor, "D hidden 1"],
    b_2: Float[Tensor, " D"],
) -> Float[Tensor, "B T D"]:
    """The same, from the kernels of two convolutions."""
    # BEGIN SOLUTION
    inside = F.conv1d(x.mT, k_1, b_1).relu()  # B hidden T
    return F.conv1d(inside, k_2, b_2).mT
    # END SOLUTION


# %% checks
def check_two_layers(feed_forward):  # 2 points
    x, W_1, b_1 = numbers(2, 3, 4), numbers(5, 4, seed=1), numbers(5, seed=2)
    W_2, b_2 = numbers(4, 5, seed=3), numbers(4, seed=4)
    right = two_layers(x, W_1, b_1, W_2, b_2)
    try:
        answer = feed_forward(x, W_1, b_1, W_2, b_2)
    except RuntimeError as error:
        raise AssertionError(
            "Shapes do not fit: a matrix is out × in, so a row x_t is multiplied by its "
            f"transpose, x @ W.T. PyTorch says: {error}"
        ) from error
    expect(
        answer,
        right,
        otherwise="The output is wrong: W₂ max(0, W₁ x + b₁) + b₂ at every position.",
        mistakes={
            "There is no max(0, ·) between the layers: two linear layers are one.": (
                two_layers(x, W_1, b_1, W_2, b_2, act=lambda h: h)
            ),
            "The output is cut at 0 too: only what is between the layers is.": right.relu(),
            "b₁ is added behind max(0, ·): it belongs inside.": two_layers(
                x, W_1, b_1, W_2, b_2, act=lambda h: (h - b_1).relu() + b_1
            ),
            "b₂ is missing.": right - b_2,
        },
    )


def check_convolutions(convolved):  # 2 points
    x, W_1, b_1 = numbers(2, 3, 4), numbers(5, 4, seed=1), numbers(5, seed=2)
    W_2, b_2 = numbers(4, 5, seed=3), numbers(4, seed=4)
    right = two_layers(x, W_1, b_1, W_2, b_2)
    cut = two_layers(x.reshape(2, 4, 3).mT, W_1, b_1, W_2, b_2).mT
    try:
        answer = convolved(x, W_1[..., None], b_1, W_2[..., None], b_2)
    except RuntimeError as error:
        raise AssertionError(
            "Shapes do not fit: conv1d wants the features in the middle, B D T, so swap "
            f"the last two axes of x. PyTorch says: {error}"
        ) from error
    expect(
        answer,
        right,
        otherwise="With kernels of width 1 the output should be that of the two layers.",
        mistakes={
            "Positions get into each other's features: reshape and view only cut the row "
            "of numbers anew, a transpose swaps axes.": cut.reshape(2, 3, 4),
            "The output is B D T: swap its last two axes back.": right.mT,
        },
    )


# %% hidden
def check_networks_random(feed_forward, convolved, random):  # 2 points
    x = torch.randn(3, 2, 6, generator=random)
    W_1, b_1 = torch.randn(7, 6, generator=random), torch.randn(7, generator=random)
    W_2, b_2 = torch.randn(6, 7, generator=random), torch.randn(6, generator=random)
    right = two_layers(x, W_1, b_1, W_2, b_2)
    expect(
        feed_forward(x, W_1, b_1, W_2, b_2),
        right,
        otherwise="With other sizes the two layers are wrong.",
    )
    expect(
        convolved(x, W_1[..., None], b_1, W_2[..., None], b_2),
        right,
        otherwise="With other sizes the convolutions are wrong.",
    )


# %% [markdown] question difficulty=2 minutes=15 reread=warm-up
# ## Warm up, then cool down
#
# **Goal.** Return the learning rate of a step. Steps count from 0. Over the first
# `warmup` steps it rises in equal steps up to `peak`, which the last of them has; the
# first already learns something. Then it falls as the inverse square root of the number
# of steps, without a jump: whenever that number has grown fourfold, the rate has halved.
# With `warmup` 0 or 1, step 0 has the peak.

# %% [markdown] hint
# With $n$ = `step` + 1, the number of steps including this one, the rise is a share
# $n / w$ of the peak. Which multiple of $1/\sqrt n$ is 1 at $n = w$?

# %% [markdown] hint
# It is $\sqrt{w / n}$. The smaller of the two is the right one, on both sides of the
# peak. `max(1, warmup)` spares a division by 0.


# %% solution
def learning_rate(step: int, peak: float, warmup: int) -> float:
    """The learning rate of step 0, 1, 2, …: it rises linearly, then falls as 1/√n."""
    # BEGIN SOLUTION
    n, w = step + 1, max(1, warmup)
    return peak * min(n / w, math.sqrt(w / n))
    # END SOLUTION


# %% checks
def check_rise_and_fall(learning_rate):  # 3 points
    w, steps, peak = 4, range(16), 0.8
    shares = {
        "rise": [(s + 1) / w for s in steps],
        "late rise": [s / w for s in steps],
        "fall": [math.sqrt(w / (s + 1)) for s in steps],
        "late fall": [math.sqrt(w / max(1, s)) for s in steps],
        "quick fall": [w / (s + 1) for s in steps],
        "cliff": [1 / math.sqrt(s + 1) for s in steps],
        "short fall": [1 / math.sqrt(max(1, s + 2 - w)) for s in steps],
        "flat": [1.0] * 16,
    }

    def joined(rise, fall):
        return [peak * x for x in shares[rise][:w] + shares[fall][w:]]

    try:
        answer = [float(learning_rate(s, peak, w)) for s in steps]
    except ZeroDivisionError as error:
        raise AssertionError(
            "Step 0 divides by zero: the paper's formula counts steps from 1, so put "
            "step + 1 into it."
        ) from error
    highest = [peak * max(x, y) for x, y in zip(shares["rise"], shares["fall"])]
    expect(
        answer,
        joined("rise", "fall"),
        otherwise="The rates are wrong: a share n/w of the peak over the first w steps, "
        "then √(w/n), with n = step + 1.",
        mistakes={
            "Everything comes one step late: step 0 has the rate 0 and learns nothing. "
            "Count n = step + 1.": joined("late rise", "late fall"),
            "The rise comes one step late: the rate of step 0 is 0, and the peak is "
            "never reached.": joined("late rise", "fall"),
            "The fall comes one step late: the peak lasts two steps. Count n = step + 1 "
            "on both sides.": joined("rise", "late fall"),
            "It falls as 1/n, too quickly: take the square root.": joined(
                "rise", "quick fall"
            ),
            "It jumps down behind the warm-up: 1/√n is not 1 there, √(w/n) is.": joined(
                "rise", "cliff"
            ),
            "The fall counts the steps behind the warm-up: it should count all steps, or "
            "it is too quick.": joined("rise", "short fall"),
            "It does not fall behind the warm-up.": joined("rise", "flat"),
            "The larger of rise and fall was taken: it is the smaller.": highest,
        },
    )


# %% hidden
def check_no_warm_up(learning_rate):  # 1 point
    try:
        answer = [float(learning_rate(s, 0.5, 0)) for s in range(5)]
    except ZeroDivisionError as error:
        raise AssertionError(
            "With warmup 0 something is divided by it: step 0 should have the peak."
        ) from error
    expect(
        answer,
        [0.5 / math.sqrt(s + 1) for s in range(5)],
        otherwise="With warmup 0 the rates are wrong: they fall from the peak at step 0.",
        mistakes={
            "With warmup 0 all rates are 0, and nothing is learnt: √(w/n) needs a w of "
            "1 at least.": [0.0] * 5,
        },
    )


def check_the_paper_agrees(learning_rate, random):  # 2 points
    width, w = torch.randint(10, 600, (2,), generator=random).tolist()
    steps = torch.randint(0, 4 * w, (8,), generator=random).tolist()
    peak = 100 * (width * w) ** -0.5
    right = [
        100 * width**-0.5 * min(n**-0.5, n * w**-1.5) for n in (s + 1 for s in steps)
    ]
    expect(
        [float(learning_rate(s, peak, w)) for s in steps],
        right,
        otherwise="With other numbers of steps the rates are not those of the paper.",
    )


# %% [markdown] question difficulty=3 minutes=20 reread=label-smoothing
# ## Smooth targets
#
# **Goal.** With label smoothing the target is not one symbol but a mixture: a share
# $1 - \varepsilon$ goes to the right symbol $y$, and $\varepsilon$ is spread evenly over
# all V symbols, $y$ among them.
#
# - `smoothed_loss`: the mean over the real symbols of $-\sum_v q(v) \log p(v)$, where $q$
#   is the mixture and $\log p$ is given. Every $\log p$ is finite.
# - `lowest_loss`: the least loss that any model can reach, however good. It is 0 only for
#   $\varepsilon = 0$.

# %% [markdown] hint
# Write $q$ as a sum of two parts: then the loss is a sum of two parts as well, and one of
# them is a mean over the vocabulary. For the lowest loss: which $p$ is best? It is not
# the one that is sure.

# %% [markdown] hint
# `log_probabilities.gather(-1, target[..., None])[..., 0]` times $1 - \varepsilon$, plus
# `log_probabilities.mean(dim=-1)` times $\varepsilon$; select `[mask]` of the sum. The best
# $p$ is $q$ itself, and its loss is the entropy of $q$: one symbol has
# $1 - \varepsilon + \varepsilon/V$, the others $\varepsilon/V$ each. `torch.special.entr`
# knows that $0 \log 0$ is 0.


# %% solution
def smoothed_loss(
    log_probabilities: Float[Tensor, "B T V"],
    target: Int[Tensor, "B T"],
    mask: Bool[Tensor, "B T"],
    epsilon: float,
) -> Float[Tensor, ""]:
    """The mean surprise at a mixture of the right symbol and all symbols."""
    # BEGIN SOLUTION
    right = log_probabilities.gather(-1, target[..., None])[..., 0]  # B T
    mixed = (1 - epsilon) * right + epsilon * log_probabilities.mean(dim=-1)
    return -mixed[mask].mean()
    # END SOLUTION


def lowest_loss(symbols: int, epsilon: float) -> float:
    """The loss of a model that says the mixture itself; `symbols` is V."""
    # BEGIN SOLUTION
    q = torch.full((symbols,), epsilon / symbols)
    q[0] += 1 - epsilon
    return torch.special.entr(q).sum().item()
    # END SOLUTION


# %% checks
def check_smoothed_loss(smoothed_loss):  # 2 points
    log_p, epsilon = (2 * numbers(2, 3, 5)).log_softmax(dim=-1), 0.3
    target = torch.tensor([[4, 1, 3], [2, 0, 0]])
    mask = torch.tensor([[True, True, True], [True, False, False]])
    right = -log_p.gather(2, target[..., None])[..., 0]
    even, total = -log_p.mean(dim=-1), -log_p.sum(dim=-1)
    mixed = 0.7 * right + 0.3 * even
    answer = smoothed_loss(log_p, target, mask, epsilon)
    assert not isinstance(answer, torch.Tensor) or answer.numel() == 1, (
        f"Expected one number, got a tensor of shape {tuple(answer.shape)}."
    )
    expect(
        float(answer),
        smoothed(log_p, target, mask, epsilon),
        otherwise="The loss is wrong: at each real symbol −(1 − ε) log p(y) − ε/V Σ log "
        "p(v), then the mean.",
        mistakes={
            "Nothing is smoothed: this is the surprise at the right symbol alone.": (
                right[mask].mean().item()
            ),
            "ε went to the other V − 1 symbols: it is spread over all V, the right one "
            "among them.": (0.7 * right + 0.3 * (total - right) / 4)[mask]
            .mean()
            .item(),
            "The shares do not add up to 1: besides its 1 − ε, the right symbol has ε/V "
            "like all others.": (0.7 * right + 0.3 * (total - right) / 5)[mask]
            .mean()
            .item(),
            "The surprises at all symbols are added up: ε is shared, so each counts ε/V. "
            "Take their mean.": (0.7 * right + 0.3 * total)[mask].mean().item(),
            "The even part is averaged over padding too: the mask is for both parts.": (
                (0.7 * right[mask].mean() + 0.3 * even.mean()).item()
            ),
            "Padding counts: take the mean over the real symbols only.": (
                mixed.mean().item()
            ),
            "The model's probabilities are smoothed: mix the targets, and the logarithm "
            "stays inside the sum.": -(0.7 * (-right).exp() + 0.06)
            .log()[mask]
            .mean()
            .item(),
        },
    )


def check_lowest_loss(lowest_loss):  # 1 point
    V, epsilon = 5, 0.3
    rest, most = epsilon / V, 1 - epsilon + epsilon / V
    q = torch.tensor([most] + [rest] * 4)
    entropy = torch.distributions.Categorical(probs=q).entropy().item()
    expect(
        float(lowest_loss(V, epsilon)),
        entropy,
        otherwise="The lowest loss is wrong: −Σ q log q over the V symbols of the mixture.",
        mistakes={
            "No model reaches 0: it would have to be sure of y, and log p of all other "
            "symbols would be −∞.": 0.0,
            "All V symbols have ε/V, and the right one 1 − ε besides: add its two shares "
            "before the logarithm.": -0.7 * math.log(0.7) - V * rest * math.log(rest),
            "This is the surprise at the right symbol, not the mean over the mixture.": (
                -math.log(most)
            ),
        },
    )


# %% hidden
def check_lowest_loss_without_smoothing(lowest_loss):  # 1 point
    said = (
        "Without smoothing the lowest loss should be 0: 0 log 0 counts as 0, but "
        "log 0 on its own is no number."
    )
    try:
        answer = float(lowest_loss(7, 0.0))
    except ValueError as error:  # of math.log
        raise AssertionError(said) from error
    assert math.isfinite(answer), said
    expect(answer, 0.0, otherwise="Without smoothing the lowest loss is not 0.")
    most, rest = 4 / 7, 0.5 / 7
    expect(
        float(lowest_loss(7, 0.5)),
        -most * math.log(most) - 6 * rest * math.log(rest),
        otherwise="With smoothing the lowest loss is that of the mixture.",
    )


def check_smoothed_loss_random(smoothed_loss, lowest_loss, random):  # 2 points
    log_p = torch.randn(3, 4, 9, generator=random).log_softmax(dim=-1)
    target = torch.randint(0, 9, (3, 4), generator=random)
    mask = torch.arange(4) < torch.randint(1, 5, (3, 1), generator=random)
    epsilon = 0.1 + 0.4 * torch.rand((), generator=random).item()
    expect(
        float(smoothed_loss(log_p, target, mask, epsilon)),
        smoothed(log_p, target, mask, epsilon),
        otherwise="On random symbols and masks the loss is not that of PyTorch.",
    )
    best = torch.full((1, 1, 9), epsilon / 9)
    best[..., 4] += 1 - epsilon
    expect(
        float(lowest_loss(9, epsilon)),
        smoothed(best.log(), torch.tensor([[4]]), torch.tensor([[True]]), epsilon),
        otherwise="With other numbers the lowest loss is not that of the mixture itself.",
    )


# %% [markdown] question difficulty=3 minutes=25 reread=the-whole-before-its-parts
# ## A decoder block
#
# **Goal.** Put one block of the decoder together, pre-norm: three sublayers in their
# order, each with $x + f(\text{norm}(x))$. The first looks back at the target, the second
# looks at the memory, the third is the position-wise network. The memory is what the
# encoder gave, normalized already. No norm follows the block. The checks compare it with
# `torch.nn.TransformerDecoderLayer`, with one head and without biases.
#
# The notebook gives `norm(x, gain)`, `attend(x, seen, mask, W)` and `think(x, W_1, W_2)`.
# `weights` has `"attention"` and `"cross"`, both 4 D D, for `attend`; `"think"`, the two
# matrices for `think`; and `"gains"`, 3 D, one row for each sublayer in their order.

# %% [markdown] hint
# Three times the same line, `x = x + …(norm(x, gain), …)`. What may position $t$ of the
# target look at in the first sublayer, and what in the second?

# %% [markdown] hint
# In the first, queries and what is seen are both `heard = norm(x, gains[0])`, with the
# mask `causal`. In the second only the queries are normed; what is seen is `memory`, with
# the mask `real`.


# %% solution
def decoder_block(
    x: Float[Tensor, "B T D"],
    memory: Float[Tensor, "B S D"],
    causal: Bool[Tensor, "T T"],
    real: Bool[Tensor, "B 1 S"],
    weights: dict,
) -> Float[Tensor, "B T D"]:
    """Look back, look at the source, think: each with its norm and its residual."""
    # BEGIN SOLUTION
    first, second, third = weights["gains"]
    heard = norm(x, first)
    x = x + attend(heard, heard, causal, weights["attention"])
    x = x + attend(norm(x, second), memory, real, weights["cross"])
    return x + think(norm(x, third), *weights["think"])
    # END SOLUTION


# %% checks
def check_block(decoder_block):  # 4 points
    # as many target positions as source positions, so that no swap is an error
    layer = torch_layer(4, 6, torch.Generator().manual_seed(0))
    weights = weights_of(layer)
    x, memory = numbers(2, 3, 4, seed=1), numbers(2, 3, 4, seed=2)
    causal = torch.ones(3, 3, dtype=torch.bool).tril()
    real = torch.tensor([[[True, True, True]], [[True, True, False]]])
    W, W_cross, (W_1, W_2) = weights["attention"], weights["cross"], weights["think"]
    first, second, third = weights["gains"]

    def back(y):
        return attended(y, y, causal, W)

    def source(y):
        return attended(y, memory, real, W_cross)

    def alone(y):
        return (y @ W_1.T).relu() @ W_2.T

    def block(back=back, source=source):
        return in_turn(x, (back, first), (source, second), (alone, third))

    after_back = x + back(normalized(x, first))
    unadded = source(normalized(after_back, second))
    post = normalized(x + back(x), first)
    post = normalized(post + source(post), second)
    post = normalized(post + alone(post), third)
    expect(
        decoder_block(x, memory, causal, real, weights),
        torch_answer(layer, x, memory, causal, real),
        otherwise="The block is wrong: x + f(norm(x)) for self-attention with the mask "
        "`causal`, attention to the memory with the mask `real`, and `think`.",
        mistakes={
            "It looks at the source first: looking back at the target comes first.": (
                in_turn(x, (source, second), (back, first), (alone, third))
            ),
            "It thinks before it looks at the source: the position-wise network comes "
            "last.": in_turn(x, (back, first), (alone, third), (source, second)),
            "The masks are swapped: `causal` is for the target, `real` for the source.": (
                block(
                    lambda y: attended(y, y, real, W),
                    lambda y: attended(y, memory, causal, W_cross),
                )
            ),
            "The future is seen: the look at the target needs the mask `causal`.": block(
                lambda y: attended(y, y, torch.ones_like(causal), W)
            ),
            "Padding of the source is seen: the look at the memory needs the mask "
            "`real`.": block(source=lambda y: attended(y, memory, None, W_cross)),
            "The second sublayer looks at the target again: its keys and values come "
            "from the memory.": block(source=lambda y: attended(y, y, causal, W_cross)),
            "The memory asks and the target answers: queries come from x, keys and "
            "values from the memory.": block(
                source=lambda y: attended(memory, y, real, W_cross)
            ),
            "The memory is normed again: pre-norm is for what the decoder carries, and "
            "the encoder has normed its end.": block(
                source=lambda y: attended(y, normalized(memory, second), real, W_cross)
            ),
            "In the first sublayer only the queries are normed: keys and values are too.": (
                block(lambda y: attended(y, x, causal, W))
            ),
            "This is post-norm: norm what a sublayer hears, not the sum.": post,
            "What the look at the source says replaces x: add it, or what was said so "
            "far is lost.": unadded + alone(normalized(unadded, third)),
        },
    )


# %% hidden
def check_block_of_torch(decoder_block, random):  # 2 points
    layer = torch_layer(6, 5, random)
    x = torch.randn(3, 4, 6, generator=random)
    memory = torch.randn(3, 7, 6, generator=random)
    causal = torch.ones(4, 4, dtype=torch.bool).tril()
    real = (torch.arange(7) < torch.randint(1, 8, (3, 1), generator=random))[:, None]
    expect(
        decoder_block(x, memory, causal, real, weights_of(layer)),
        torch_answer(layer, x, memory, causal, real),
        otherwise="With other sizes the block is not that of torch.nn.Transformer.",
    )


# %% [markdown] question difficulty=3 minutes=20 reread=where-the-weights-are
# ## Count the weights
#
# **Goal.** Say how many numbers a Transformer learns, without building it.
#
# - `block_weights`: those of one block; `cross` says whether it also looks at a memory,
#   as those of the decoder do. Every look has four layers, D to D: queries, keys, values,
#   output. All layers have biases. Every sublayer has a layer norm, with gain and bias.
# - `model_weights`: those of the whole model. `layers` blocks read, `layers` blocks speak,
#   and a norm follows the last block of either side. Source and target have an embedding
#   each; positions are sinusoids. The output layer goes from D to the target's symbols,
#   with a bias; if it is `tied`, its matrix is the target's embedding. You may call
#   `block_weights`.

# %% [markdown] hint
# A layer from D to E has D·E + E weights, a norm 2·D. How many sublayers does either kind
# of block have? What does the number of heads change?

# %% [markdown] hint
# One look is 4·(D² + D), whatever the number of heads: they share the width. The network
# is 2·D·hidden + hidden + D. A block without a memory has one look and two norms, one with
# a memory two and three. A tied output layer still has its bias.


# %% solution
def block_weights(width: int, heads: int, hidden: int, *, cross: bool) -> int:
    """How many numbers one block learns."""
    # BEGIN SOLUTION
    looks = 2 if cross else 1
    look = 4 * (width**2 + width)
    network = 2 * width * hidden + hidden + width
    return looks * look + network + (looks + 1) * 2 * width
    # END SOLUTION


def model_weights(
    source_symbols: int,
    target_symbols: int,
    width: int,
    heads: int,
    hidden: int,
    layers: int,
    *,
    tied: bool,
) -> int:
    """How many numbers a Transformer learns."""
    # BEGIN SOLUTION
    blocks = sum(
        block_weights(width, heads, hidden, cross=cross) for cross in (False, True)
    )
    embeddings = (source_symbols + target_symbols) * width
    output = target_symbols if tied else target_symbols * (width + 1)
    return layers * blocks + 2 * 2 * width + embeddings + output
    # END SOLUTION


# %% checks
def check_weights_of_a_block(block_weights):  # 2 points
    D, H, hidden = 8, 2, 20
    right = [
        size(nn.TransformerEncoderLayer(D, H, hidden)),
        size(nn.TransformerDecoderLayer(D, H, hidden)),
    ]
    look, network = 4 * (D * D + D), 2 * D * hidden + hidden + D
    expect(
        [int(block_weights(D, H, hidden, cross=cross)) for cross in (False, True)],
        right,
        otherwise="The weights of a block are wrong: its looks, its network and its "
        "norms, all with biases.",
        mistakes={
            "The biases are missing: a layer from D to E has D·E + E weights.": [
                4 * D * D + 2 * D * hidden + 4 * D,
                8 * D * D + 2 * D * hidden + 6 * D,
            ],
            "A look has three layers here: queries, keys and values, and one more behind "
            "the heads, the output.": [
                3 * (D * D + D) + network + 4 * D,
                6 * (D * D + D) + network + 6 * D,
            ],
            "Every head has matrices from D to D here: heads share the width, so their "
            "number changes nothing.": [
                3 * H * (D * D + D) + D * D + D + network + 4 * D,
                6 * H * (D * D + D) + 2 * (D * D + D) + network + 6 * D,
            ],
            "The second look has no norm: three sublayers, three norms.": [
                right[0],
                right[1] - 2 * D,
            ],
            "A norm has a gain only: it has a bias too, 2·D in all.": [
                look + network + 2 * D,
                2 * look + network + 3 * D,
            ],
        },
    )


def check_weights_of_a_model(model_weights):  # 2 points
    S, V, D, hidden, layers = 11, 7, 8, 20, 3
    arguments = (S, V, D, 2, hidden, layers)
    right = torch_sizes(*arguments)
    reads = size(nn.TransformerEncoderLayer(D, 2, hidden))
    speaks = size(nn.TransformerDecoderLayer(D, 2, hidden))

    def off(difference, tied=None):
        tied = difference if tied is None else tied
        return [right[0] + difference, right[1] + tied]

    expect(
        [int(model_weights(*arguments, tied=tied)) for tied in (False, True)],
        right,
        otherwise="The weights of the model are wrong: blocks of both kinds, a norm "
        "behind each side, two embeddings, the output layer.",
        mistakes={
            "Tying changes nothing: a matrix that two layers share is learnt once.": off(
                0, V * D
            ),
            "Tied, the bias of the output layer is gone: only the matrix is shared.": off(
                0, -V
            ),
            "The norms behind the last blocks are missing: one for each side, 2·D.": off(
                -4 * D
            ),
            "All blocks look at a memory: those of the encoder have one look less.": off(
                layers * (speaks - reads)
            ),
        },
    )


# %% hidden
def check_weights_random(model_weights, random):  # 2 points
    S, V, hidden = torch.randint(5, 400, (3,), generator=random).tolist()
    layers, heads, K = torch.randint(1, 5, (3,), generator=random).tolist()
    arguments = (S, V, 4 * heads * K, 2 * heads, hidden, layers)
    expect(
        [int(model_weights(*arguments, tied=tied)) for tied in (False, True)],
        torch_sizes(*arguments),
        otherwise="With other sizes it is not the number of weights that PyTorch has.",
    )
