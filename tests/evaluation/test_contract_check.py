"""Models as pages write them, right ones and ones that break the contract."""

import pytest
import torch
from tiny_models import CONFIGS, build, example_batch
from torch import nn
from torch.nn import functional as F

from seq2seq_lib.data import Batch, Pair
from seq2seq_lib.evaluation import check_contract
from seq2seq_lib.interface import Decoder, Encoder, EncoderDecoder, EncoderOutput

PASSED = """\
steps = full pass: yes (differences below 0.0001)
padding changes nothing: yes (differences below 0.0001)
the future cannot change the past: yes (differences below 0.0001)
"""


class MeanEncoder(Encoder):
    """Embeddings and their mean, with flags for what can go wrong."""

    def __init__(self, symbols, width, *, masked=True, batch_norm=False):
        super().__init__()
        self.width = width
        self.embedding = nn.Embedding(symbols, width)
        self.masked = masked
        self.batch_norm = batch_norm

    def forward(self, source, mask):
        x = self.embedding(source)  # B S D
        if self.batch_norm:
            x = x - x[mask].mean(dim=0)
        if not self.masked:
            return EncoderOutput(x, mask, x.mean(dim=1))
        return EncoderOutput.averaged(x, mask)


class PageDecoder(Decoder):
    """Keeps a running sum of what it read in a plain tensor; attends to the source."""

    def __init__(self, symbols, width, *, mistake=""):
        super().__init__()
        self.encoder_width = width
        self.embedding = nn.Embedding(symbols, width)
        self.output = nn.Linear(width, symbols)
        self.dropout = nn.Dropout(0.5)
        self.mistake = mistake

    def init_state(self, encoded):
        state = encoded.summary + 0.1
        if self.mistake == "start":
            state = state * 2
        if self.mistake == "layers first":
            return state[None], encoded.states, encoded.mask
        if self.mistake == "kept aside":
            self.encoded = encoded
            return (state,)
        return state, encoded.states, encoded.mask

    def attend(self, hidden, states, mask):
        scores = (states @ hidden[..., None])[..., 0]  # B S
        if self.mistake != "reads padding":
            scores = scores.masked_fill(~mask, -torch.inf)
        return (scores.softmax(-1)[:, None] @ states)[:, 0]

    def step(self, token, state):
        if self.mistake == "kept aside":
            hidden, states, mask = state[0], self.encoded.states, self.encoded.mask
        else:
            hidden, states, mask = state
        if self.mistake == "layers first":
            hidden = hidden[0]
        x = self.embedding(token)
        if self.mistake == "deaf":
            x = torch.ones_like(x)
        new = self.dropout(torch.tanh(0.8 * hidden + x))
        logits = self.output(new + self.attend(new, states, mask))
        scores = logits if self.mistake == "logits" else logits.log_softmax(-1)
        match self.mistake:
            case "state not returned":
                return scores, state
            case "only scores":
                return scores
            case "layers first":
                return scores, (new[None], states, mask)
            case "kept aside":
                return scores, (new,)
            case "wrong shape":
                return scores[:, None], (new, states, mask)
        return scores, (new, states, mask)

    def forward(self, encoded, tokens):
        hidden, steps = encoded.summary + 0.1, []
        if self.mistake == "random":
            hidden = hidden + torch.rand_like(hidden)
        for t, x in enumerate(self.embedding(tokens).unbind(1)):
            if self.mistake == "deaf":
                x = torch.ones_like(x)
            if self.mistake == "leak" and t + 1 < tokens.shape[1]:
                x = x + 0.2 * self.embedding(tokens[:, t + 1])
            if self.mistake == "forgets the first" and t == 1:
                hidden = encoded.summary
            hidden = self.dropout(torch.tanh(0.8 * hidden + x))
            context = self.attend(hidden, encoded.states, encoded.mask)
            steps.append(self.output(hidden + context).log_softmax(-1))
        outputs = torch.stack(steps, dim=1)  # B T V
        if self.mistake == "nan":
            outputs = outputs.clone()
            outputs[1, 2] = torch.nan
        if self.mistake == "late":  # wrong from the fourth output of a row on
            outputs = torch.cat([outputs[:, :3], 2 * outputs[:, 3:]], dim=1)
        if self.mistake == "length of the target":
            outputs = outputs - tokens.shape[1]
        return (outputs, hidden) if self.mistake == "a tuple" else outputs


def page_model(mistake="", **encoder):
    torch.manual_seed(1)
    return EncoderDecoder(
        MeanEncoder(11, 8, **encoder), PageDecoder(9, 8, mistake=mistake)
    )


@pytest.mark.parametrize("name", [name for name in CONFIGS if name != "lookup"])
def test_every_model_of_the_library_passes(name, capsys):
    model = build(CONFIGS[name], torch.float)
    check_contract(model, example_batch())
    check_contract(model)
    assert capsys.readouterr().out == PASSED * 2


def test_a_model_of_a_page_passes_and_is_left_as_it_was(capsys):
    model = page_model().train()
    model.decoder.output.eval()
    random = torch.get_rng_state()
    check_contract(model)
    assert capsys.readouterr().out == PASSED
    assert torch.equal(torch.get_rng_state(), random)
    assert model.training
    assert model.decoder.dropout.training
    assert not model.decoder.output.training
    assert all(parameter.grad is None for parameter in model.parameters())


def test_anything_with_an_encoder_and_a_decoder_will_do(capsys):
    class Couple:
        encoder = MeanEncoder(11, 8)
        decoder = PageDecoder(9, 8)

    check_contract(Couple(), example_batch())
    assert capsys.readouterr().out == PASSED


def test_float32_that_is_written_into_a_model_is_no_trouble(capsys):
    class Written(PageDecoder):
        def init_state(self, encoded):
            _, states, mask = super().init_state(encoded)
            assert states.dtype == torch.float32
            return encoded.summary + torch.full((1,), 0.1), states, mask

    check_contract(EncoderDecoder(MeanEncoder(11, 8), Written(9, 8)))
    assert capsys.readouterr().out == PASSED
    assert torch.get_default_dtype() is torch.float32


def test_an_error_of_the_model_is_its_own():
    class Crashing(PageDecoder):
        def forward(self, encoded, tokens):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        check_contract(EncoderDecoder(MeanEncoder(11, 8), Crashing(9, 8)))
    assert torch.get_default_dtype() is torch.float32


def test_of_a_large_batch_a_few_rows_are_tested(capsys):
    pairs = [Pair([4] * n, [5, 6]) for n in range(1, 40)]

    sizes = set()

    class Counting(MeanEncoder):
        def forward(self, source, mask):
            sizes.add(source.shape)
            return super().forward(source, mask)

    encoder = Counting(11, 8)
    check_contract(EncoderDecoder(encoder, PageDecoder(9, 8)), Batch.from_pairs(pairs))
    assert max(rows for rows, _ in sizes) == 8
    assert min(length for _, length in sizes) == 2  # a row alone, without padding


def test_a_source_may_be_frames(capsys):
    class Frames(Encoder):
        width = 8

        def __init__(self):
            super().__init__()
            self.layer = nn.Linear(3, 8)

        def forward(self, source, mask):
            return EncoderOutput.averaged(self.layer(source), mask)

    sources = [torch.randn(n, 3) for n in (4, 2, 5)]
    batch = Batch.from_pairs([Pair(source, [4, 5]) for source in sources])
    check_contract(EncoderDecoder(Frames(), PageDecoder(9, 8)), batch)
    assert capsys.readouterr().out == PASSED


@pytest.mark.parametrize(
    "mistake, message",
    [
        (
            "leak",
            (
                "causal leak: another symbol at position 1 of the decoder's input "
                r"changes the output at position 0 \(row 0\). What comes later must "
                "not change an earlier output"
            ),
        ),
        (
            "reads padding",
            (
                "padding felt: 3 padded positions behind the source change the output "
                r"at position 0 \(row 0\). The encoder's real states are the same, so "
                "it is the decoder that reads the padding: does it use"
            ),
        ),
        (
            "length of the target",
            "padding felt: 3 padded positions behind the target",
        ),
        (
            "state not returned",
            (
                r"steps and full pass differ: at position 1 \(row 0\) step gives "
                "another output than forward. Every step gives what a first step would "
                "give: does step return the new state"
            ),
        ),
        (
            "start",
            (
                r"at position 0 \(row 0\) .* They differ from the first step on: "
                "compare init_state with forward"
            ),
        ),
        ("forgets the first", r"at position 1 \(row 0\) .* The first step is right"),
        ("logits", "one of them returns logits, the other log-probabilities"),
        (
            "deaf",
            (
                "the decoder ignores its input: another symbol at position 0 changes "
                "no output there or later"
            ),
        ),
        ("layers first", "the state does not follow its rows"),
        ("kept aside", "the state does not follow its rows"),
        ("only scores", "step returns a tensor of shape .*: expected two things"),
        ("wrong shape", r"step returns a tensor of shape \(3, 1, 9\) at position 0"),
        ("a tuple", "the decoder's forward returns a tuple of 2: expected a tensor"),
        ("nan", r"NaN in the decoder's output at position 2 \(row 1\)"),
        ("random", "the same input gives two different outputs"),
    ],
)
def test_a_mistake_is_named(mistake, message):
    with pytest.raises(AssertionError, match=message):
        check_contract(page_model(mistake))


def test_an_encoder_that_reads_padding_is_named():
    with pytest.raises(
        AssertionError,
        match=r"padding felt: .* behind the source .* \(row 0\). The encoder's summary "
        "of row 0 has changed already: does the encoder use its mask everywhere",
    ):
        check_contract(page_model(masked=False))


def test_rows_that_feel_each_other_are_named():
    with pytest.raises(
        AssertionError, match=r"row 0 alone gives another output .* the other rows"
    ):
        check_contract(page_model(batch_norm=True))


def test_padding_that_is_felt_only_where_it_is_counted_is_named():
    class Counts(MeanEncoder):
        def forward(self, source, mask):
            encoded = super().forward(source, mask)
            seen = min(source.shape[1], 6)  # appended padding lies beyond
            return EncoderOutput(encoded.states, mask, encoded.summary + seen)

    model = EncoderDecoder(Counts(11, 8), PageDecoder(9, 8))
    with pytest.raises(
        AssertionError,
        match=r"row 1 alone gives another output than in its batch, first at position 0"
        r" \(row 1\): padding felt",
    ):
        check_contract(model)


def test_all_three_lines_are_printed_before_a_mistake_is_named(capsys):
    with pytest.raises(AssertionError):
        check_contract(page_model("start"))
    assert capsys.readouterr().out == (
        "steps = full pass: no (differences above 1)\n"
        "padding changes nothing: yes (differences below 0.0001)\n"
        "the future cannot change the past: yes (differences below 0.0001)\n"
    )
    with pytest.raises(AssertionError):
        check_contract(page_model("deaf"))
    assert capsys.readouterr().out.endswith("change the past: no\n")


def test_a_row_of_the_whole_batch_is_named():
    """Of many rows a few are tested; the message numbers them as the batch does."""
    pairs = [Pair([4] * 3, [5, 6]) for _ in range(30)]
    pairs[29] = Pair([4, 5, 6, 7, 8], [5, 6, 7, 8])
    with pytest.raises(AssertionError, match=r"position 3 \(row 29\)"):
        check_contract(page_model("late"), Batch.from_pairs(pairs))


def test_infinite_scores_are_no_difference(capsys):
    class Certain(PageDecoder):
        def step(self, token, state):
            scores, state = super().step(token, state)
            return F.pad(scores[:, 1:], (1, 0), value=-torch.inf), state

        def forward(self, encoded, tokens):
            outputs = super().forward(encoded, tokens)
            return F.pad(outputs[..., 1:], (1, 0), value=-torch.inf)

    check_contract(EncoderDecoder(MeanEncoder(11, 8), Certain(9, 8)))
    assert capsys.readouterr().out == PASSED
