import itertools
import math
from functools import cache, partial

import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st
from tiny_models import CONFIGS, build, example_batch

from seq2seq_lib.data.vocabulary import BOS, EOS
from seq2seq_lib.interface import Decoder, DecoderState, EncoderOutput
from seq2seq_lib.search import (
    beam_search,
    exhaustive_search,
    greedy_search,
    keep_probable,
    sample,
)

SEARCHES = {
    "greedy": greedy_search,
    "beam": beam_search,
    "exhaustive": exhaustive_search,
    "sample": sample,
}


class ScriptState(DecoderState):
    def __init__(self, rows, prefixes):
        self.rows, self.prefixes = rows, prefixes

    def reorder(self, rows):
        return ScriptState(self.rows[rows], self.prefixes[rows])


class ScriptDecoder(Decoder):
    """Says what a script tells it to, from the source's number and the whole prefix.

    Probabilities depend on everything that was said, so a search that mixes up its
    states cannot get away with it.
    """

    def __init__(self, script, symbols):
        super().__init__()
        self.script, self.symbols = script, symbols
        self.calls = 0

    def init_state(self, memory):
        rows = memory.summary[:, 0].long()
        return ScriptState(rows, torch.zeros(len(memory), 0, dtype=torch.long))

    def step(self, token, state):
        self.calls += len(token)
        prefixes = torch.cat([state.prefixes, token[:, None]], dim=1)
        scores = [
            self.script(row, tuple(prefix[1:]))
            for row, prefix in zip(state.rows.tolist(), prefixes.tolist(), strict=True)
        ]
        return torch.stack(scores), ScriptState(state.rows, prefixes)

    def forward(self, memory, tokens):
        raise NotImplementedError


def blank_memory(rows):
    """Nothing but the number of each source."""
    states = torch.arange(rows, dtype=torch.double)[:, None, None]
    return EncoderOutput(states, torch.ones(rows, 1, dtype=torch.bool), states[:, 0])


def random_script(symbols, seed, sharpness=2.0):
    """A different distribution after every prefix of every source."""

    @cache
    def script(row, prefix):
        generator = torch.Generator().manual_seed(hash((seed, row, prefix)) % 2**32)
        scores = torch.randn(symbols, generator=generator, dtype=torch.double)
        return (sharpness * scores).log_softmax(dim=-1)

    return ScriptDecoder(script, symbols)


def all_outputs(script, row, symbols, max_length, alpha):
    """Brute force without any of the library: every output and its score."""
    others = [s for s in range(symbols) if s != EOS]
    for length in range(1, max_length + 1):
        for prefix in itertools.product(others, repeat=length - 1):
            said = (*prefix, EOS)
            total = sum(
                float(script(row, said[:t])[token]) for t, token in enumerate(said)
            )
            yield total / length**alpha, prefix


@settings(max_examples=30)
@given(
    seed=st.integers(0, 10**6),
    alpha=st.sampled_from([0.0, 0.75, 1.0, 2.0]),
    max_length=st.integers(1, 4),
    n_best=st.integers(1, 3),
)
def test_exhaustive_and_a_wide_beam_find_the_best_of_all(
    seed, alpha, max_length, n_best
):
    symbols, rows = 5, 3
    decoder = random_script(symbols, seed)
    options = {"max_length": max_length, "alpha": alpha, "n_best": n_best}
    exhaustive = exhaustive_search(decoder, blank_memory(rows), **options)
    wide = beam_search(decoder, blank_memory(rows), width=symbols**4, **options)
    for row in range(rows):
        expected = sorted(
            all_outputs(decoder.script, row, symbols, max_length, alpha), reverse=True
        )[:n_best]
        for found in (exhaustive[row], wide[row]):
            assert [h.tokens for h in found.hypotheses] == [t for _, t in expected]
            assert [h.score for h in found.hypotheses] == pytest.approx(
                [score for score, _ in expected]
            )
            assert all(h.finished for h in found.hypotheses)


def textbook_beams(decoder, rows, width, max_length, alpha):
    """Beam search once more, one source at a time, with nothing but lists."""
    for row in range(rows):
        alive, ended = [(0.0, ())], []
        for length in range(1, max_length + 1):
            candidates = sorted(
                (
                    (total + float(score), prefix, token)
                    for total, prefix in alive
                    for token, score in enumerate(decoder.script(row, prefix))
                ),
                key=lambda candidate: -candidate[0],
            )
            ended += [
                (total / length**alpha, prefix)
                for total, prefix, token in candidates[:width]
                if token == EOS
            ]
            alive = [
                (total, (*prefix, token))
                for total, prefix, token in candidates
                if token != EOS
            ][:width]
        yield sorted(ended, reverse=True)


@settings(max_examples=40)
@given(
    seed=st.integers(0, 10**6),
    width=st.integers(1, 5),
    alpha=st.sampled_from([0.0, 0.75, 1.5]),
    sharpness=st.sampled_from([0.5, 2.0, 5.0]),
)
def test_the_batched_beam_equals_the_textbook_one(seed, width, alpha, sharpness):
    decoder, rows = random_script(7, seed, sharpness), 4
    found = beam_search(
        decoder,
        blank_memory(rows),
        width=width,
        max_length=6,
        alpha=alpha,
        n_best=width,
    )
    expected = textbook_beams(decoder, rows, width, 6, alpha)
    for mine, theirs in zip(found, expected, strict=True):
        if not theirs:
            assert not mine.best.finished
            assert len(mine.best.tokens) == 6
        else:
            assert [h.tokens for h in mine.hypotheses] == [t for _, t in theirs[:width]]


@pytest.mark.parametrize("name", CONFIGS)
def test_every_model_is_searched_alike(name, device):
    dtype = torch.float if device.type == "mps" else torch.double
    model, batch = build(CONFIGS[name], dtype).to(device), example_batch().to(device)
    memory = model.encode(batch)
    exhaustive = exhaustive_search(model.decoder, memory, max_length=3)
    beam = beam_search(model.decoder, memory, max_length=3, width=9**3)
    for narrow, all_of_them in zip(beam, exhaustive, strict=True):
        assert narrow.best.score == pytest.approx(all_of_them.best.score, abs=1e-10)
    greedy = greedy_search(model.decoder, memory, max_length=8)
    for row, found in (*enumerate(beam), *enumerate(greedy)):
        best = found.best
        said = [BOS, *best.tokens]
        outputs = [*best.tokens, EOS] if best.finished else list(best.tokens)
        tokens = torch.tensor([said[: len(outputs)]], device=device)
        one = memory.reorder(torch.tensor([row], device=device))
        scores = model.decoder(one, tokens)[0].detach()
        total = sum(float(scores[t, token]) for t, token in enumerate(outputs))
        assert best.log_probability == pytest.approx(total, rel=1e-5, abs=1e-10)


@pytest.mark.parametrize("search", [greedy_search, partial(beam_search, width=3)])
def test_a_row_alone_gives_what_it_gives_in_a_batch(search):
    model, batch = build(CONFIGS["gru"]), example_batch()
    memory = model.encode(batch)
    together = search(model.decoder, memory, max_length=9)
    for row in range(3):
        alone = search(model.decoder, memory.reorder(torch.tensor([row])), max_length=9)
        assert alone[0].best.tokens == together[row].best.tokens


def test_greedy_can_miss_the_best():
    # the likelier first symbol 3 leads into a tie, the other one is then certain
    def script(row, prefix):
        table = {(): {3: 0.6, 4: 0.4}, (3,): {EOS: 0.5, 3: 0.5}, (4,): {EOS: 1.0}}
        probabilities = torch.zeros(5, dtype=torch.double)
        for token, p in table.get(prefix, {EOS: 1.0}).items():
            probabilities[token] = p
        return probabilities.log()

    decoder, memory = ScriptDecoder(script, 5), blank_memory(1)
    greedy = greedy_search(decoder, memory, max_length=3, alpha=0.0)[0].best
    beam = beam_search(decoder, memory, max_length=3, alpha=0.0, width=2)[0].best
    best = exhaustive_search(decoder, memory, max_length=3, alpha=0.0)[0].best
    assert math.exp(greedy.log_probability) == pytest.approx(0.3)
    assert beam.tokens == best.tokens == (4,)
    assert math.exp(best.log_probability) == pytest.approx(0.4)


def test_alpha_moves_the_choice_to_longer_outputs():
    def script(row, prefix):
        probabilities = torch.full((5,), 1e-12, dtype=torch.double)
        going = {0: 0.5, 1: 0.3, 2: 0.4}.get(len(prefix), 0.0)
        probabilities[4], probabilities[EOS] = going, 1 - going
        return probabilities.log()

    decoder, memory = ScriptDecoder(script, 5), blank_memory(1)
    lengths = [
        len(
            exhaustive_search(decoder, memory, max_length=4, alpha=alpha)[0].best.tokens
        )
        for alpha in (0.0, 0.75, 3.0)
    ]
    assert lengths == [0, 1, 3]


def test_finished_sources_leave_the_batch():
    def script(row, prefix):  # source n ends after n symbols
        scores = torch.full((5,), -20.0, dtype=torch.double)
        scores[EOS if len(prefix) >= row else 4] = 0.0
        return scores.log_softmax(-1)

    decoder = ScriptDecoder(script, 5)
    found = greedy_search(decoder, blank_memory(6), max_length=50)
    assert [len(f.best.tokens) for f in found] == list(range(6))
    assert decoder.calls == sum(range(1, 7))
    decoder.calls = 0
    found = beam_search(decoder, blank_memory(6), max_length=50, width=2, alpha=0.0)
    assert [len(f.best.tokens) for f in found] == list(range(6))
    assert decoder.calls <= 2 * sum(range(1, 7))


def test_what_never_ends_is_cut_and_says_so():
    def script(row, prefix):
        scores = torch.zeros(5, dtype=torch.double)
        scores[EOS] = -torch.inf
        return scores.log_softmax(-1)

    decoder, memory = ScriptDecoder(script, 5), blank_memory(2)
    for search in (greedy_search, beam_search, sample):
        for found in search(decoder, memory, max_length=4):
            assert len(found.hypotheses) == 1
            assert not found.best.finished
            assert len(found.best.tokens) == 4
    with pytest.raises(ValueError, match="no output ends within max_length"):
        exhaustive_search(decoder, memory, max_length=4)


def test_a_beams_trace_is_the_tree_it_walked():
    decoder, memory = random_script(6, seed=3), blank_memory(3)
    options = {"max_length": 5, "width": 3, "n_best": 3}
    plain = beam_search(decoder, memory, **options)
    for row, found in enumerate(beam_search(decoder, memory, **options, trace=True)):
        nodes = found.trace.nodes
        assert found.hypotheses == plain[row].hypotheses
        assert found.trace.attention is None

        def path(node, nodes=nodes):
            return (
                ()
                if node.parent < 0
                else (*path(nodes[node.parent]), nodes[node.parent].token)
            )

        for index, node in enumerate(nodes):
            assert node.parent < index
            before = nodes[node.parent].log_probability if node.parent >= 0 else 0.0
            gained = float(decoder.script(row, path(node))[node.token])
            assert node.log_probability == pytest.approx(before + gained)
            length = len(path(node)) + 1
            assert node.score == pytest.approx(node.log_probability / length**0.75)
            assert node.parent < 0 or nodes[node.parent].kept
        ended = [
            (path(n), n.log_probability) for n in nodes if n.kept and n.token == EOS
        ]
        for hypothesis in found.hypotheses:
            known = (hypothesis.tokens, hypothesis.log_probability)
            assert known in ended or not hypothesis.finished
        depth = max(len(path(node)) for node in nodes) + 1
        assert found.trace.candidates == 6 + (depth - 1) * 3 * 6  # W·V a step


@pytest.mark.parametrize("search", [greedy_search, sample, exhaustive_search])
def test_every_search_can_return_its_trace(search):
    decoder, memory = random_script(5, seed=1), blank_memory(2)
    for found in search(decoder, memory, max_length=4, trace=True):
        leaves = [
            n
            for n in found.trace.nodes
            if n.log_probability == found.best.log_probability
        ]
        assert leaves
        assert found.trace.candidates >= len(found.trace.nodes)


def test_attention_comes_with_the_trace():
    class Attending(ScriptDecoder):
        def attention(self, memory, tokens):
            steps = torch.arange(tokens.shape[1], dtype=torch.double)
            return steps[None, :, None].expand(len(memory), -1, memory.mask.shape[1])

    decoder = Attending(random_script(6, 0).script, 6)
    for search in (greedy_search, partial(beam_search, n_best=2)):
        for found in search(decoder, blank_memory(3), max_length=6, trace=True):
            for hypothesis, weights in zip(
                found.hypotheses, found.trace.attention, strict=True
            ):
                steps = len(hypothesis.tokens) + hypothesis.finished
                assert weights[:, 0].tolist() == list(range(steps))


def test_samples_follow_the_distribution():
    probabilities = torch.tensor([0.0, 0.0, 0.5, 0.2, 0.3], dtype=torch.double)
    decoder = ScriptDecoder(lambda *_: probabilities.log(), 5)
    generator = torch.Generator().manual_seed(0)

    def shares(**options):
        found = sample(
            decoder, blank_memory(4000), max_length=1, generator=generator, **options
        )
        said = [EOS if f.best.finished else f.best.tokens[0] for f in found]
        return [said.count(token) / 4000 for token in range(5)]

    # five standard deviations of a share estimated from 4000 draws
    close = partial(pytest.approx, abs=0.04)
    assert shares() == close([0, 0, 0.5, 0.2, 0.3])
    assert shares(top_k=2) == close([0, 0, 0.625, 0, 0.375])
    assert shares(top_p=0.4) == close([0, 0, 1, 0, 0])
    assert shares(temperature=0.5) == close(
        [0, 0, 0.25 / 0.38, 0.04 / 0.38, 0.09 / 0.38]
    )


def test_samples_repeat_with_their_seed():
    decoder = random_script(9, seed=0, sharpness=0.1)

    def draw(seed):
        generator = torch.Generator().manual_seed(seed)
        found = sample(decoder, blank_memory(5), max_length=8, generator=generator)
        return [f.best for f in found]

    assert draw(1) == draw(1)
    assert draw(1) != draw(2)


@given(
    st.lists(st.floats(-8, 8), min_size=2, max_size=9),
    st.integers(1, 9),
    st.floats(0.05, 1),
)
def test_truncation_keeps_the_fewest_most_probable(scores, top_k, top_p):
    probabilities = torch.tensor([scores], dtype=torch.double).softmax(-1)[0]
    ranked = sorted(probabilities.tolist(), reverse=True)
    kept = keep_probable(probabilities[None].log(), top_k=top_k)[0].exp()
    assert int((kept > 0).sum()) == min(top_k, len(scores))
    assert max(kept.tolist()) == pytest.approx(ranked[0] / sum(ranked[:top_k]))
    kept = keep_probable(probabilities[None].log(), top_p=top_p)[0].exp()
    count = int((kept > 0).sum())
    assert kept.sum().item() == pytest.approx(1)
    assert sum(ranked[: count - 1]) < top_p + 1e-9
    assert count == len(scores) or sum(ranked[:count]) >= top_p - 1e-9


@pytest.mark.parametrize(
    "search, options, message",
    [
        (beam_search, {"width": 0}, "width=0: a beam needs"),
        (beam_search, {"width": 2, "n_best": 3}, "n_best=3 with width=2"),
        (beam_search, {"n_best": 0}, "n_best=0"),
        (exhaustive_search, {"n_best": 0}, "n_best=0"),
        *(
            (s, {"alpha": -0.1}, "alpha=-0.1 must not be negative")
            for s in SEARCHES.values()
        ),
        *((s, {"alpha": math.nan}, "alpha=nan") for s in SEARCHES.values()),
        *(
            (s, {"max_length": 0}, "max_length=0 leaves no room")
            for s in SEARCHES.values()
        ),
        (sample, {"temperature": 0.0}, "temperature=0.0 must be above 0.*greedy"),
        (sample, {"top_k": 0}, "top_k=0 leaves nothing"),
        (sample, {"top_p": 1.5}, "top_p=1.5 must be above 0 and at most 1"),
    ],
)
def test_options_out_of_range_are_refused(search, options, message):
    decoder = random_script(5, seed=0)
    with pytest.raises(ValueError, match=message):
        search(decoder, blank_memory(1), **({"max_length": 3} | options))


def test_too_many_outputs_to_try_them_all():
    model, batch = build(CONFIGS["gru"]), example_batch()
    with pytest.raises(ValueError, match=r"too many to try them all .* beam_search"):
        exhaustive_search(model.decoder, model.encode(batch), max_length=12)


def test_search_leaves_the_model_in_its_mode():
    model, batch = build(CONFIGS["gru"]), example_batch()
    model.train()
    beam_search(model.decoder, model.encode(batch), max_length=3)
    assert model.decoder.training
    assert model.decoder.dropout.training


def test_a_source_without_numbers_does_not_hurt_the_others():
    healthy = random_script(6, seed=0).script

    def script(row, prefix):
        return healthy(row, prefix) * (torch.nan if row == 1 else 1.0)

    decoder = ScriptDecoder(script, 6)
    found = beam_search(decoder, blank_memory(3), max_length=5)
    alone = beam_search(random_script(6, seed=0), blank_memory(3), max_length=5)
    assert [f.best for f in found[::2]] == [f.best for f in alone[::2]]
    assert len(found[1].hypotheses) == 1


def test_half_precision_is_summed_exactly():
    steps = torch.tensor([-0.01, -3.0, -5.0, -6.0, -7.0]).log_softmax(-1).bfloat16()
    decoder = ScriptDecoder(lambda *_: steps, 5)
    total = greedy_search(decoder, blank_memory(1), max_length=200)[
        0
    ].best.log_probability
    assert total == pytest.approx(200 * float(steps[0]), rel=1e-5)


def test_top_p_keeps_no_symbol_too_many_or_too_few():
    probabilities = torch.tensor([[0.4, 0.4, 0.2]])
    kept = keep_probable(probabilities.log(), top_p=0.8)
    assert kept.isfinite().tolist() == [[True, True, False]]
    many = torch.randn(1, 50_000)
    assert keep_probable(many, top_p=1.0).isfinite().all()
