"""What readers may write from memory: right, in other words, wrong, or not at all."""

import inspect
import math

import pytest
import torch
from torch import nn

from seq2seq_lib import models
from seq2seq_lib.evaluation import blank_page
from seq2seq_lib.evaluation.blank_page import ENTRIES
from seq2seq_lib.evaluation.blank_page.beam import (
    LENGTH,
    SEEDS,
    WIDTH,
    ScriptedDecoder,
    encoded_nothing,
    plain_beam_search,
    symbols_of,
)
from seq2seq_lib.evaluation.blank_page.entry import same
from seq2seq_lib.evaluation.blank_page.weights import randomize, ways_to_match
from seq2seq_lib.interface import reorder
from seq2seq_lib.search import beam_search as library_beam
from seq2seq_lib.search import exhaustive_search


class GRUCell(nn.Module):
    def __init__(self, inputs, width):
        super().__init__()
        self.input = nn.Linear(inputs, 3 * width)
        self.recurrent = nn.Linear(width, 3 * width)

    def forward(self, x, h):
        r_x, z_x, n_x = self.input(x).chunk(3, dim=-1)
        r_h, z_h, n_h = self.recurrent(h).chunk(3, dim=-1)
        r, z = (r_x + r_h).sigmoid(), (z_x + z_h).sigmoid()
        return (1 - z) * (n_x + r * n_h).tanh() + z * h


def masked_loss(log_probabilities, target, mask):
    picked = log_probabilities.gather(-1, target[..., None])[..., 0]
    return -picked[mask].mean()


def edit_distance(a, b):
    table = [[i + j for j in range(len(b) + 1)] for i in range(len(a) + 1)]
    for i in range(1, len(a) + 1):
        for j in range(1, len(b) + 1):
            table[i][j] = min(
                table[i - 1][j] + 1,
                table[i][j - 1] + 1,
                table[i - 1][j - 1] + (a[i - 1] != b[j - 1]),
            )
    return table[-1][-1]


def beam_search(decoder, encoded, width, max_length):
    """Finished answers stay in the beam, and compete."""
    answers = [([1], 0.0, decoder.init_state(encoded))]
    for _ in range(max_length):
        grown = []
        for tokens, total, state in answers:
            if tokens[-1] == 2:
                grown.append((tokens, total, state))
                continue
            scores, after = decoder.step(torch.tensor(tokens[-1:]), state)
            grown += [
                ([*tokens, symbol], total + score, after)
                for symbol, score in enumerate(scores[0].tolist())
            ]
        answers = sorted(grown, key=lambda one: -one[1])[:width]
    return [tokens for tokens, _, _ in answers]


class DotAttention(nn.Module):
    def __init__(self, width, scale=True, mask=True):
        super().__init__()
        self.query = nn.Linear(width, width, bias=False)
        self.key = nn.Linear(width, width, bias=False)
        self.divisor = math.sqrt(width) if scale else 1.0
        self.masked = mask

    def forward(self, query, key, value, mask):
        q, k = self.query(query), self.key(key)
        scores = q @ k.mT / self.divisor
        if self.masked:
            scores = scores.masked_fill(~mask, -torch.inf)
        weights = scores.softmax(dim=-1)
        return weights @ value, weights


class MultiHeadAttention(nn.Module):
    def __init__(self, width, heads):
        super().__init__()
        self.heads = heads
        self.query = nn.Linear(width, width)
        self.key = nn.Linear(width, width)
        self.value = nn.Linear(width, width)
        self.output = nn.Linear(width, width)

    def split(self, x):
        batch, length, width = x.shape
        return x.view(batch, length, self.heads, width // self.heads).transpose(1, 2)

    def forward(self, x, source, mask):
        q, k, v = self.query(x), self.key(source), self.value(source)
        q, k, v = self.split(q), self.split(k), self.split(v)
        scores = q @ k.mT / math.sqrt(q.shape[-1])
        weights = scores.masked_fill(~mask[:, None], -torch.inf).softmax(dim=-1)
        mixed = (weights @ v).transpose(1, 2).flatten(2)
        return self.output(mixed), weights


class LayerNorm(nn.Module):
    def __init__(self, width, epsilon=1e-5):
        super().__init__()
        self.weight = nn.Parameter(torch.ones(width))
        self.bias = nn.Parameter(torch.zeros(width))
        self.epsilon = epsilon

    def forward(self, x):
        mean = x.mean(dim=-1, keepdim=True)
        variance = ((x - mean) ** 2).mean(dim=-1, keepdim=True)
        return (x - mean) / (variance + self.epsilon).sqrt() * self.weight + self.bias


class Sinusoids(nn.Module):
    def __init__(self, width, longest=256):
        super().__init__()
        rates = 10000.0 ** (-torch.arange(0, width, 2) / width)
        angles = torch.arange(longest)[:, None] * rates
        table = torch.zeros(longest, width)
        table[:, 0::2], table[:, 1::2] = angles.sin(), angles.cos()
        self.register_buffer("table", table)

    def forward(self, x):
        return x + self.table[: x.shape[1]]


def rotate(x, start=0):
    positions = torch.arange(start, start + x.shape[-2])
    rates = 10000.0 ** (-torch.arange(0, x.shape[-1], 2) / x.shape[-1])
    angles = positions[:, None] * rates
    turned = torch.empty_like(x)
    a, b = x[..., 0::2], x[..., 1::2]
    turned[..., 0::2] = a * angles.cos() - b * angles.sin()
    turned[..., 1::2] = a * angles.sin() + b * angles.cos()
    return turned


class EncoderBlock(nn.Module):
    def __init__(self, width, heads, hidden):
        super().__init__()
        self.attention = models.MultiHeadAttention(width, heads)
        self.feed_forward = models.FeedForward(width, hidden)
        self.attention_residual = models.Residual(width)
        self.feed_forward_residual = models.Residual(width)

    def forward(self, x, mask):
        def attend(x):
            return self.attention(x, x, mask[:, None])[0]

        x = self.attention_residual(x, attend)
        return self.feed_forward_residual(x, self.feed_forward)


class DecoderBlock(nn.Module):
    """In other words: PyTorch's norm, a network of its own, another order."""

    def __init__(self, width, heads, hidden):
        super().__init__()
        self.norms = nn.ModuleList(nn.LayerNorm(width) for _ in range(3))
        self.ours = MultiHeadAttention(width, heads)
        self.theirs = MultiHeadAttention(width, heads)
        self.network = nn.Sequential(
            nn.Linear(width, hidden), nn.ReLU(), nn.Linear(hidden, width)
        )

    def forward(self, y, encoded, mask):
        first, second, third = self.norms
        length = y.shape[1]
        causal = torch.ones(1, length, length, dtype=torch.bool).tril()
        z = first(y)
        y = y + self.ours(z, z, causal)[0]
        mixed, weights = self.theirs(second(y), encoded, mask[:, None])
        y = y + mixed
        return y + self.network(third(y)), weights


WRITTEN = [
    edit_distance,
    masked_loss,
    GRUCell,
    beam_search,
    DotAttention,
    MultiHeadAttention,
    LayerNorm,
    Sinusoids,
    rotate,
    EncoderBlock,
    DecoderBlock,
]


def printed(written, capsys):
    blank_page(written)
    return capsys.readouterr().out.removesuffix("\n")


def renamed(written, name):
    written.__name__ = name
    return written


def test_every_page_is_tested():
    assert [one.__name__ for one in WRITTEN] == list(ENTRIES)


@pytest.mark.parametrize("written", WRITTEN)
def test_what_a_page_has_is_right(written, capsys):
    assert printed(written, capsys) == "right"


@pytest.mark.parametrize("name", ENTRIES)
def test_the_librarys_own_is_right(name):
    assert ENTRIES[name].verdict(ENTRIES[name].right) == "right"


@pytest.mark.parametrize("name", ENTRIES)
def test_every_mistake_is_named(name):
    entry = ENTRIES[name]
    for message, wrong in entry.mistakes.items():
        assert entry.verdict(wrong) == f"not yet. {message[0].upper()}{message[1:]}"


@pytest.mark.parametrize("name", ENTRIES)
def test_messages_are_sentences_that_say_what_to_do(name):
    for message in ENTRIES[name].mistakes:
        assert message[0].islower()
        assert message.endswith(".")
        assert len(message) < 200


@pytest.mark.parametrize("name", ENTRIES)
def test_an_empty_page_is_not_written_yet(name, capsys):
    def nothing(): ...

    def passed():
        pass

    def text():
        """It does something."""

    def refused(*arguments):
        raise NotImplementedError("later")

    class Nothing(nn.Module): ...

    class Text(nn.Module):
        """It does something."""

    class Begun(nn.Module):
        def __init__(self, *sizes):
            super().__init__()

        def forward(self, x, *others):
            """Nothing yet."""

    class Refused(nn.Module):
        def __init__(self, *sizes):
            super().__init__()

        def forward(self, *arguments):
            raise NotImplementedError

    functions = nothing, passed, text, refused
    classes = Nothing, Text, Begun, Refused
    for empty in classes if inspect.isclass(ENTRIES[name].right) else functions:
        assert printed(renamed(empty, name), capsys) == "not written yet"


def test_global_random_numbers_are_left_alone(capsys):
    before = torch.get_rng_state()
    for written in WRITTEN:
        blank_page(written)
    assert torch.equal(torch.get_rng_state(), before)
    capsys.readouterr()
    torch.manual_seed(5)
    first = printed(renamed(broken_heads(), "MultiHeadAttention"), capsys)
    torch.manual_seed(6)
    assert printed(renamed(broken_heads(), "MultiHeadAttention"), capsys) == first


def broken_heads():
    class Heads(MultiHeadAttention):
        def forward(self, x, source, mask):
            output, weights = super().forward(x, source, mask)
            return output + 1, weights

    return Heads


def test_other_names_and_another_order_are_right(capsys):
    class Renamed(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.U = nn.Linear(width, width, bias=False)
            self.W = nn.Linear(width, width, bias=False)

        def forward(self, q, k, v, mask):
            scores = self.W(q) @ self.U(k).transpose(1, 2) / q.shape[-1] ** 0.5
            weights = torch.softmax(scores + torch.where(mask, 0, -1e9), -1)
            return torch.bmm(weights, v), weights

    assert printed(renamed(Renamed, "DotAttention"), capsys) == "right"

    class Gains(nn.Module):
        def __init__(self, width):
            super().__init__()
            self.gain = nn.Parameter(torch.ones(width))
            self.shift = nn.Parameter(torch.zeros(width))

        def forward(self, x):
            x = x - x.mean(-1, keepdim=True)
            return (
                self.gain * x / torch.sqrt((x * x).mean(-1, True) + 1e-5) + self.shift
            )

    assert printed(renamed(Gains, "LayerNorm"), capsys) == "right"


def test_a_cell_may_have_its_gates_in_layers_of_their_own(capsys):
    class Six(nn.Module):
        def __init__(self, inputs, width):
            super().__init__()
            for gate in "znr":
                setattr(self, f"W_{gate}", nn.Linear(inputs, width))
                setattr(self, f"U_{gate}", nn.Linear(width, width))

        def forward(self, x, h):
            z = torch.sigmoid(self.W_z(x) + self.U_z(h))
            r = torch.sigmoid(self.W_r(x) + self.U_r(h))
            n = torch.tanh(self.W_n(x) + r * self.U_n(h))
            return (1 - z) * n + z * h

    assert printed(renamed(Six, "GRUCell"), capsys) == "right"

    class Updated(Six):
        def forward(self, x, h):
            z = torch.sigmoid(self.W_z(x) + self.U_z(h))
            r = torch.sigmoid(self.W_r(x) + self.U_r(h))
            n = torch.tanh(self.W_n(x) + r * self.U_n(h))
            return z * n + (1 - z) * h

    assert printed(renamed(Updated, "GRUCell"), capsys).startswith(
        "not yet. The update gate is the wrong way round"
    )


def test_a_cell_may_stack_its_gates_in_another_order_and_keep_a_tuple(capsys):
    class Other(GRUCell):
        def forward(self, x, state):
            (h,) = state
            n_x, z_x, r_x = self.input(x).chunk(3, dim=-1)
            n_h, z_h, r_h = self.recurrent(h).chunk(3, dim=-1)
            z = (z_x + z_h).sigmoid()
            n = (n_x + (r_x + r_h).sigmoid() * n_h).tanh()
            return (n + z * (h - n),)

    assert printed(renamed(Other, "GRUCell"), capsys) == "right"


def test_flags_of_a_page_are_the_mistakes_that_are_named(capsys):
    class Unscaled(DotAttention):
        def __init__(self, width):
            super().__init__(width, scale=False)

    assert printed(renamed(Unscaled, "DotAttention"), capsys) == (
        "not yet. The scale is missing: divide the scores by √D."
    )

    class Unmasked(DotAttention):
        def __init__(self, width):
            super().__init__(width, mask=False)

    assert printed(renamed(Unmasked, "DotAttention"), capsys) == (
        "not yet. The mask is not used."
    )


def test_an_inverted_mask_is_named_whatever_stands_for_minus_infinity(capsys):
    class Inverted(DotAttention):
        def forward(self, query, key, value, mask):
            scores = self.query(query) @ self.key(key).mT / self.divisor
            weights = scores.masked_fill(mask, -1e9).softmax(dim=-1)
            return weights @ value, weights

    assert "The mask is inverted" in printed(renamed(Inverted, "DotAttention"), capsys)


def test_an_exception_is_one_plain_sentence(capsys):
    class Transposed(DotAttention):
        def forward(self, query, key, value, mask):
            scores = self.query(query) @ self.key(key)
            return scores.softmax(-1) @ value, scores

    assert printed(renamed(Transposed, "DotAttention"), capsys) == (
        "not yet. forward(query: 2 3 8, key: 2 4 8, value: 2 4 8, "
        "mask: 2 1 4) raised RuntimeError: Expected size for first two dimensions "
        "of batch2 tensor to be: [2, 8] but got: [2, 4]."
    )

    class Forgotten(nn.Module):
        def __init__(self, width):
            self.layer = nn.Linear(width, width)

        def forward(self, x):
            return x

    assert printed(renamed(Forgotten, "LayerNorm"), capsys) == (
        "not yet. LayerNorm(8) raised AttributeError: cannot assign module before "
        "Module.__init__() call"
    )

    class Bare:
        def __init__(self, width):
            self.width = width

        def forward(self, x):
            return x

    assert printed(renamed(Bare, "LayerNorm"), capsys) == (
        "not yet. LayerNorm(8) is a LayerNorm: derive the class from nn.Module."
    )

    def crashing(log_probabilities, target, mask):
        return log_probabilities[target]

    assert printed(renamed(crashing, "masked_loss"), capsys).startswith(
        "not yet. masked_loss(log_probabilities: 3 4 6, target: 3 4, "
        "mask: 3 4) raised IndexError: index "
    )


def test_too_few_arguments_are_explained(capsys):
    class Alone(MultiHeadAttention):
        def forward(self, x, mask):
            return super().forward(x, x, mask)

    answer = printed(renamed(Alone, "MultiHeadAttention"), capsys)
    assert answer.startswith("not yet. forward(x: 2 3 8, source: 2 4 8")
    assert "raised TypeError" in answer


def test_results_of_another_kind_are_explained(capsys):
    class OnlyOutput(MultiHeadAttention):
        def forward(self, x, source, mask):
            return super().forward(x, source, mask)[0]

    assert printed(renamed(OnlyOutput, "MultiHeadAttention"), capsys) == (
        "not yet. Nothing hidden: expected a tuple of 2 (output, weights), got a "
        "tensor of shape (2, 3, 8)."
    )

    class Averaged(MultiHeadAttention):
        def forward(self, x, source, mask):
            output, weights = super().forward(x, source, mask)
            return output, weights.mean(1)

    assert printed(renamed(Averaged, "MultiHeadAttention"), capsys) == (
        "not yet. Nothing hidden: expected a tensor of shape (2, 2, 3, 4) as the "
        "weights, got a tensor of shape (2, 3, 4)."
    )

    def forgetful(log_probabilities, target, mask):
        log_probabilities.sum()

    assert printed(renamed(forgetful, "masked_loss"), capsys) == (
        "not yet. With padding: expected a tensor of shape (), got None."
    )


def test_an_unknown_mistake_is_narrowed_down(capsys):
    assert printed(renamed(broken_heads(), "MultiHeadAttention"), capsys) == (
        "not yet. The output differs, and none of the mistakes known here explains it."
    )

    class Partly(DotAttention):
        def forward(self, query, key, value, mask):
            context, weights = super().forward(query, key, value, mask)
            return context + (~mask).sum(), weights

    assert printed(renamed(Partly, "DotAttention"), capsys) == (
        "not yet. The context differs, and none of the mistakes known here explains "
        "it. Right: nothing hidden. Wrong: padding hidden, a mask for every query."
    )

    class Biased(DotAttention):
        def __init__(self, width):
            super().__init__(width)
            self.key = nn.Linear(width, width)
            self.query = nn.Linear(width, width)

    assert printed(renamed(Biased, "DotAttention"), capsys).endswith(
        "Its weights are not those expected: 2 too many of shape (8,)."
    )


def test_a_missing_weight_does_not_hide_the_mistake(capsys):
    class Unmixed(MultiHeadAttention):
        def __init__(self, width, heads):
            super().__init__(width, heads)
            del self.output
            self.q, self.k, self.v = self.query, self.key, self.value
            del self.query, self.key, self.value

        def forward(self, x, source, mask):
            q, k, v = self.split(self.q(x)), self.split(self.k(source)), self.v(source)
            scores = q @ k.mT / math.sqrt(q.shape[-1])
            weights = scores.masked_fill(~mask[:, None], -torch.inf).softmax(dim=-1)
            return (weights @ self.split(v)).transpose(1, 2).flatten(2), weights

    assert printed(renamed(Unmixed, "MultiHeadAttention"), capsys) == (
        "not yet. The output layer is missing."
    )


def test_a_start_that_a_rotation_lacks_is_not_asked_for(capsys):
    def always_from_the_first(x):
        return rotate(x)

    assert printed(renamed(always_from_the_first, "rotate"), capsys) == "right"


def test_an_unknown_name_is_refused():
    class Transformer2: ...

    with pytest.raises(ValueError, match=r"Transformer2 is not known .* GRUCell"):
        blank_page(Transformer2)
    with pytest.raises(
        ValueError, match=r"DotAttention is not known here: give the cl"
    ):
        blank_page(DotAttention(8))


@pytest.mark.parametrize(
    "alike, other",
    [
        (torch.ones(2), torch.ones(2) + 1e-6),
        ((torch.ones(1), None), (torch.ones(1), torch.zeros(3))),
        ([1, 2], (1, 2)),
        (torch.tensor([5.0, 1.0]), torch.tensor([torch.nan, 1.0])),
        (0.5, 0.5000001),
    ],
)
def test_results_that_are_the_same(alike, other):
    assert same(alike, other)


@pytest.mark.parametrize(
    "one, other",
    [
        (torch.ones(2), torch.ones(2, 1)),
        (torch.ones(2), torch.ones(2) + 1e-2),
        ((None, torch.ones(1)), (torch.ones(1), torch.ones(1))),
        (None, torch.ones(1)),
        (3, 4),
        ("3", 0.3),
    ],
)
def test_results_that_are_not(one, other):
    assert not same(one, other)


@pytest.mark.parametrize("alpha", [0.0, 0.75, 1.0])
@pytest.mark.parametrize("seed", SEEDS)
def test_right_beams_of_all_kinds_agree(seed, alpha):
    decoder, encoded = ScriptedDecoder(seed), encoded_nothing()
    (best,) = exhaustive_search(decoder, encoded, max_length=LENGTH, alpha=alpha)
    (found,) = library_beam(
        decoder, encoded, width=WIDTH, max_length=LENGTH, alpha=alpha
    )
    assert found.best.tokens == best.best.tokens
    for search in (beam_search, plain_beam_search):
        answer = search(decoder, encoded, WIDTH, LENGTH)[0]
        assert symbols_of(answer) == list(best.best.tokens)


def test_a_beam_may_return_scores_and_tensors_too(capsys):
    def scored(decoder, encoded, k, most):
        return [
            (-1.0, torch.tensor(answer[1:]).tolist())
            for answer in beam_search(decoder, encoded, k, most)
        ]

    assert printed(renamed(scored, "beam_search"), capsys) == "right"

    def tensors(decoder, encoded, width, max_length, alpha=0.75):
        answers = plain_beam_search(decoder, encoded, width, max_length, alpha=alpha)
        return [torch.tensor(answer) for answer in answers]

    assert printed(renamed(tensors, "beam_search"), capsys) == "right"


def test_a_beam_that_returns_something_else_is_explained(capsys):
    def one(decoder, encoded, width, max_length):
        return beam_search(decoder, encoded, width, max_length)[0]

    assert "an answer is an int" in printed(renamed(one, "beam_search"), capsys)

    def none(decoder, encoded, width, max_length):
        beam_search(decoder, encoded, width, max_length)

    assert "it returned None" in printed(renamed(none, "beam_search"), capsys)


def test_a_beam_of_batched_tensors_with_a_mistake_of_its_own(capsys):
    """Written as a page does; only the state is forgotten."""

    def tensor_beam(decoder, encoded, width, max_length, *, forget):
        state = reorder(
            decoder.init_state(encoded), torch.zeros(width, dtype=torch.long)
        )
        prefixes = torch.ones(width, 1, dtype=torch.long)
        totals = torch.tensor([0.0] + [-torch.inf] * (width - 1))
        finished = []
        for _ in range(max_length):
            scores, state = decoder.step(prefixes[:, -1], state)
            totals, best = (totals[:, None] + scores).flatten().topk(width)
            rows, symbols = best // scores.shape[1], best % scores.shape[1]
            prefixes = torch.cat([prefixes[rows], symbols[:, None]], dim=1)
            if not forget:
                state = reorder(state, rows)
            for row in (symbols == 2).nonzero().flatten().tolist():
                finished.append((totals[row].item(), prefixes[row].tolist()))
                totals[row] = -torch.inf
        return [answer for _, answer in sorted(finished, reverse=True)]

    def right(decoder, encoded, width, max_length):
        return tensor_beam(decoder, encoded, width, max_length, forget=False)

    def wrong(decoder, encoded, width, max_length):
        return tensor_beam(decoder, encoded, width, max_length, forget=True)

    assert printed(renamed(right, "beam_search"), capsys) == "right"
    assert printed(renamed(wrong, "beam_search"), capsys).startswith("not yet. ")


def test_weights_are_matched_by_layers_and_in_every_order():
    reference = nn.Sequential(nn.Linear(2, 2), nn.LayerNorm(2), nn.Linear(2, 2))
    randomize(reference)

    class Other(nn.Module):
        def __init__(self):
            super().__init__()
            self.norm = nn.LayerNorm(2)
            self.a, self.b = nn.Linear(2, 2), nn.Linear(2, 2)

    other = Other()
    first, second = ways_to_match(reference, other)
    assert [theirs is reference[0].weight for mine, theirs in first] == [
        mine is other.a.weight for mine, _ in first
    ]
    assert {id(a): id(b) for a, b in second}[id(other.a.weight)] == id(
        reference[2].weight
    )
    for pairs in (first, second):
        assert len(pairs) == 6
        assert any(
            mine is other.norm.bias and theirs is reference[1].bias
            for mine, theirs in pairs
        )
