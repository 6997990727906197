import json
import math
import subprocess
import sys

import jaxtyping
import jiwer
import pytest
import sacrebleu
import torch
from hypothesis import given
from hypothesis import strategies as st
from rapidfuzz.distance import Levenshtein

from seq2seq_lib.data.alignments import Alignment
from seq2seq_lib.evaluation import AlignmentScore, alignment_score, diagonal_baseline
from seq2seq_lib.metrics import (
    Score,
    bleu,
    bootstrap_interval,
    chrf,
    edit_distance,
    exact_match,
    perplexity,
    phoneme_error_rate,
    word_bleu,
    word_error_rate,
)

sounds = st.sampled_from(["AH", "B", "K", "T"])
said = st.lists(sounds, max_size=8)
expected = st.lists(sounds, min_size=1, max_size=8)
single = st.lists(st.tuples(said, expected), min_size=1, max_size=8)
several = st.lists(
    st.tuples(said, st.lists(expected, min_size=1, max_size=4)), min_size=1, max_size=8
)


@pytest.fixture
def as_readers_have_it(monkeypatch):
    """Without the type checker of the tests, which would complain first."""
    monkeypatch.setattr(jaxtyping.config, "jaxtyping_disable", True)


class TestEditDistance:
    @given(said, said)
    def test_equals_rapidfuzz(self, first, second):
        assert edit_distance(first, second) == Levenshtein.distance(first, second)

    @pytest.mark.parametrize(
        "first, second, distance",
        [
            ("", "", 0),
            ("", "abc", 3),
            ("abc", "", 3),
            ("abc", "abc", 0),
            ("abc", "bc", 1),
            ("kitten", "sitting", 3),
        ],
    )
    def test_by_hand(self, first, second, distance):
        assert edit_distance(first, second) == distance


class TestErrorRates:
    @given(single)
    def test_one_reference_equals_jiwer(self, rows):
        outputs, references = zip(*rows, strict=True)
        theirs = jiwer.wer(
            [" ".join(reference) for reference in references],
            [" ".join(output) for output in outputs],
        )
        ours = phoneme_error_rate(outputs, [[reference] for reference in references])
        assert ours == pytest.approx(theirs, abs=1e-10)

    @given(several)
    def test_words_by_counting(self, rows):
        outputs, references = zip(*rows, strict=True)
        wrong = [output not in those for output, those in rows]
        assert word_error_rate(outputs, references) == pytest.approx(
            sum(wrong) / len(wrong), abs=1e-12
        )
        assert exact_match(outputs, references) == pytest.approx(
            wrong.count(False) / len(wrong), abs=1e-12
        )

    @given(several)
    def test_more_references_never_need_more_edits(self, rows):
        def edits(rows):
            return sum(min(edit_distance(o, r) for r in those) for o, those in rows)

        assert edits(rows) <= edits([(output, those[:1]) for output, those in rows])
        outputs, references = zip(*rows, strict=True)
        rate = phoneme_error_rate(outputs, references)
        assert (rate == 0) == (word_error_rate(outputs, references) == 0)

    def test_by_hand(self):
        outputs = ["N AY T".split(), "R EH D".split(), "T UW".split(), []]
        references = [
            ["N AY T".split()],
            ["R IY D".split(), "R EH D".split()],
            ["T AH".split()],
            ["B".split()],
        ]
        assert exact_match(outputs, references) == 0.5
        assert word_error_rate(outputs, references) == 0.5
        assert phoneme_error_rate(outputs, references) == (0 + 0 + 1 + 1) / (
            3 + 3 + 2 + 1
        )

    @pytest.mark.parametrize("order", [1, -1])
    def test_of_equally_near_references_the_longest_counts(self, order):
        references = ["T UW".split(), "T AH N AH".split(), "T AH".split()][::order]
        # T AH N is one edit from the last two, two from the first
        assert phoneme_error_rate(["T AH N".split()], [references]) == 1 / 4

    def test_the_rate_may_exceed_one(self):
        assert phoneme_error_rate(["K K K".split()], [["B".split()]]) == 3

    def test_tuples_and_lists_are_alike(self):
        assert exact_match([("T", "UW")], [[["T", "UW"]]]) == 1
        assert exact_match([["T", "UW"]], ((("T", "UW"),),)) == 1

    @pytest.mark.parametrize("rate", [exact_match, word_error_rate, phoneme_error_rate])
    @pytest.mark.parametrize(
        "outputs, references, complaint",
        [
            ([], [], "0 outputs and 0 lists"),
            ([["T"]], [], "1 outputs and 0 lists"),
            ([["T"], ["B"]], [[["T"]]], "2 outputs and 1 lists"),
            ([["T"], ["B"]], [[["T"]], []], "row 1 has no reference"),
            ([["T"], ["B"]], [[["T"]], [[]]], "row 1 has an empty reference"),
            (["T UW"], [[["T", "UW"]]], r"row 0 has the string 'T UW'.*split"),
            ([["T", "UW"]], [["T UW"]], r"row 0 has the string 'T UW'.*split"),
            ([["T", "UW"]], [["T", "UW"]], r"string 'T'.*list of references"),
        ],
    )
    def test_what_cannot_be_compared(self, rate, outputs, references, complaint):
        with pytest.raises(ValueError, match=complaint):
            rate(outputs, references)


class TestPerplexity:
    @given(st.lists(st.floats(1e-6, 1), min_size=1, max_size=20))
    def test_is_the_inverse_geometric_mean(self, probabilities):
        total = sum(map(math.log, probabilities))
        product = math.prod(probabilities)
        assert perplexity(total, len(probabilities)) == pytest.approx(
            product ** (-1 / len(probabilities)), rel=1e-9
        )

    def test_a_uniform_guess_among_v_symbols_has_perplexity_v(self):
        log_probabilities = torch.zeros(5, 43, dtype=torch.double).log_softmax(-1)
        total = log_probabilities[:, 0].sum().item()
        assert perplexity(total, 5) == pytest.approx(43, rel=1e-12)

    def test_what_is_impossible(self):
        assert perplexity(-1e9, 3) == math.inf
        assert perplexity(-math.inf, 3) == math.inf

    @pytest.mark.parametrize("symbols", [0, -2])
    def test_no_symbols(self, symbols):
        with pytest.raises(ValueError, match=f"symbols={symbols}.*at least one"):
            perplexity(-1.0, symbols)

    @pytest.mark.parametrize("total", [2.0, math.nan])
    def test_a_loss_in_place_of_its_negative(self, total):
        with pytest.raises(ValueError, match=r"not above 0.*negative"):
            perplexity(total, 3)


OUTPUTS = ["Two men play football in the park.", "A dog runs.", "Nothing"]
FIRST = ["Two men are playing football in a park.", "A dog runs.", "A girl sings."]
SECOND = ["Two guys play football in the park!", "The dog is running.", "She sings."]


class TestBootstrap:
    def test_equals_the_binomial_formula(self):
        # the standard error of a share p among n rows is √(p(1−p)/n)
        n, wrong = 2_000, 500
        error = math.sqrt(0.25 * 0.75 / n)
        low, high = bootstrap_interval([1] * wrong + [0] * (n - wrong), [1] * n)
        assert low == pytest.approx(0.25 - 1.96 * error, abs=0.2 * error)
        assert high == pytest.approx(0.25 + 1.96 * error, abs=0.2 * error)

    def test_a_ratio_varies_as_its_linearization(self):
        # Var(∑a/∑b) ≈ Var(a − r·b) / (n·mean(b)²), the delta method
        random = torch.Generator().manual_seed(3)
        wholes = torch.randint(2, 12, (3_000,), generator=random).double()
        parts = (torch.rand(3_000, generator=random) * wholes * 0.2).round()
        ratio = parts.sum() / wholes.sum()
        spread = (parts - ratio * wholes).std() / math.sqrt(3_000) / wholes.mean()
        low, high = bootstrap_interval(parts.tolist(), wholes.tolist())
        assert (high - low) / 2 == pytest.approx(1.96 * spread.item(), rel=0.1)
        assert low < ratio < high

    def test_the_seed_decides(self):
        parts, wholes = [1, 0, 0, 1, 0, 1, 1], [1, 2, 3, 4, 5, 6, 7]
        draws = [bootstrap_interval(parts, wholes, seed=seed) for seed in (1, 1, 2)]
        assert draws[0] == draws[1] != draws[2]

    def test_rows_that_are_missing(self):
        with pytest.raises(ValueError, match="0 parts and 0 wholes"):
            bootstrap_interval([], [])
        with pytest.raises(ValueError, match="2 parts and 1 wholes"):
            bootstrap_interval([1, 2], [1])


class TestTranslation:
    @pytest.mark.parametrize("streams", [[FIRST], [FIRST, SECOND]])
    @pytest.mark.parametrize("ours, name", [(bleu, "bleu"), (chrf, "chrf")])
    def test_equals_the_command_line_of_sacrebleu(self, ours, name, streams, tmp_path):
        files = []
        for number, sentences in enumerate([OUTPUTS, *streams]):
            files.append(tmp_path / f"{number}.txt")
            files[-1].write_text("\n".join(sentences) + "\n")
        command = [sys.executable, "-m", "sacrebleu", *files[1:], "-i", files[0]]
        run = subprocess.run(
            [*command, "-m", name, "--width", "10", "--format", "json"],
            capture_output=True,
            text=True,
            check=True,
        )
        theirs = json.loads(run.stdout)
        score = ours(OUTPUTS, list(zip(*streams, strict=True)))
        assert score.value == pytest.approx(theirs["score"], abs=1e-9)
        assert score.signature == theirs["signature"]
        assert 10 < score.value < 90

    def test_equals_the_functions_of_sacrebleu(self):
        references = [[sentence] for sentence in FIRST]
        theirs = sacrebleu.corpus_bleu(OUTPUTS, [FIRST]).score
        assert bleu(OUTPUTS, references).value == pytest.approx(theirs, abs=1e-10)
        theirs = sacrebleu.corpus_chrf(OUTPUTS, [FIRST]).score
        assert chrf(OUTPUTS, references).value == pytest.approx(theirs, abs=1e-10)

    @pytest.mark.parametrize("metric", [bleu, chrf])
    def test_perfect_and_hopeless(self, metric):
        references = [[sentence] for sentence in FIRST]
        assert metric(FIRST, references).value == pytest.approx(100)
        assert metric(["", "", ""], references).value == 0

    def test_words_of_tutorials_have_no_capitals(self):
        references = [[sentence.upper()] for sentence in FIRST]
        score = word_bleu(OUTPUTS, references)
        lower = [[sentence.lower()] for sentence in FIRST]
        plain = bleu([output.lower() for output in OUTPUTS], lower)
        assert score.value == pytest.approx(plain.value)
        assert "case:lc" in score.signature
        assert "tok:13a" in score.signature
        assert bleu(OUTPUTS, references).value < score.value

    def test_the_interval_is_the_one_sacrebleu_prints(self):
        references = [[sentence] for sentence in FIRST]
        score = bleu(OUTPUTS, references, bootstrap=200)
        metric = sacrebleu.BLEU()
        printed = metric.corpus_score(OUTPUTS, [FIRST], n_bootstrap=200)
        signature = str(metric.get_signature())
        text = printed.format(width=6, signature=signature, is_json=True)
        theirs = json.loads(text)
        low, high = score.interval
        assert (low + high) / 2 == pytest.approx(theirs["confidence_mean"], abs=1e-5)
        assert (high - low) / 2 == pytest.approx(theirs["confidence_var"], abs=1e-5)
        assert score.signature == signature
        assert "bs:200" in signature
        assert score == bleu(OUTPUTS, references, bootstrap=200)  # the seed is fixed
        assert score.value == bleu(OUTPUTS, references).value
        assert bleu(OUTPUTS, references).interval is None

    @pytest.mark.parametrize("metric", [bleu, word_bleu, chrf])
    def test_the_interval_of_equal_sentences_is_a_point(self, metric):
        same = ["two men play football in the park ."] * 20
        low, high = metric(same, [[s] for s in same], bootstrap=50).interval
        assert low == pytest.approx(high) == pytest.approx(100)

    def test_a_score_shows_its_signature(self):
        assert str(Score(38.449, "nrefs:1")) == "38.4 (nrefs:1)"
        shown = str(Score(38.449, "nrefs:1", (37.06, 39.94)))
        assert shown == "38.4 [37.1, 39.9] (nrefs:1)"
        assert f"version:{sacrebleu.__version__}" in str(bleu(["a"], [["a"]]))

    @pytest.mark.parametrize("metric", [bleu, chrf])
    @pytest.mark.parametrize(
        "outputs, references, complaint",
        [
            ([], [], "0 outputs and 0 lists"),
            (["a", "b"], [["a"]], "2 outputs and 1 lists"),
            (["a"], [[]], "row 0 has no reference"),
            (["a dog"], ["a dog"], "list of references for each"),
            (["a", "b"], [["a"], ["b", "c"]], "equally many"),
            ([["a", "dog"]], [["a dog"]], "expected sentences"),
        ],
    )
    def test_what_cannot_be_compared(
        self, metric, outputs, references, complaint, as_readers_have_it
    ):
        with pytest.raises(ValueError, match=complaint):
            metric(outputs, references)


KNIGHT = Alignment("knight", ("N", "AY", "T"), ((0, 1), (2,), (5,)))
BOX = Alignment("box", ("B", "AA", "K", "S"), ((0,), (1,), (2,), (2,)))


def looking_at(positions, columns):
    """Weights whose largest entry in each row stands at the given position."""
    weights = torch.full((len(positions), columns), 0.1)
    weights[torch.arange(len(positions)), torch.tensor(positions)] = 0.9
    return weights


class TestAlignmentScore:
    @pytest.mark.parametrize(
        "knight, box, hits",
        [
            ([0, 2, 5], [0, 1, 2, 2], 7),
            ([1, 2, 5], [0, 1, 2, 2], 7),  # any of a sound's letters will do
            ([0, 2, 4], [0, 1, 2, 2], 6),  # h is silent
            ([5, 5, 5], [2, 2, 2, 2], 3),
            ([2, 0, 0], [1, 0, 0, 0], 0),
        ],
    )
    def test_by_hand(self, knight, box, hits):
        weights = [looking_at(knight, 6), looking_at(box, 3)]
        score = alignment_score(weights, [KNIGHT, BOX])
        assert score.share == hits / 7
        lists = [matrix.tolist() for matrix in weights]
        assert alignment_score(lists, [KNIGHT, BOX]) == score

    def test_the_end_and_the_padding_are_ignored(self):
        plain = [looking_at([0, 2, 4], 6), looking_at([0, 0, 2, 1], 3)]
        padded = torch.zeros(2, 6, 9)
        for row, weights in enumerate(plain):
            padded[row, : weights.shape[0], : weights.shape[1]] = weights
        padded[0, :, 6:] = 5.0  # looks at the end most of all
        padded[1, :, 3:] = 5.0
        padded[:, 4:, 0] = 7.0
        assert alignment_score(padded, [KNIGHT, BOX]) == alignment_score(
            plain, [KNIGHT, BOX]
        )

    def test_the_diagonal_by_hand(self):
        # knight: letters 1, 3, 5 for three sounds; box: letters 0, 1, 1, 2 for four
        assert diagonal_baseline([KNIGHT]) == 2 / 3
        assert diagonal_baseline([BOX]) == 3 / 4
        assert diagonal_baseline([KNIGHT, BOX]) == 5 / 7
        score = alignment_score([looking_at([0, 0, 0], 6)], [KNIGHT])
        assert score.diagonal == 2 / 3

    @given(st.integers(1, 12), st.integers(1, 12))
    def test_the_diagonal_is_the_formula(self, S, T):
        line = [math.floor((t + 0.5) * S / T) for t in range(T)]
        right = Alignment("a" * S, ("AH",) * T, tuple((at,) for at in line))
        wrong = Alignment("a" * S, ("AH",) * T, tuple((at + 1,) for at in line))
        assert diagonal_baseline([right]) == 1
        assert diagonal_baseline([wrong]) == 0

    @pytest.mark.parametrize("shift", [-2, -1, 0, 1, 2])
    def test_a_constant_shift_is_found(self, shift):
        word = "abcdefghij"
        centre = Alignment(word, ("B",) * 4, ((2,), (3,), (5,), (7,)))
        moved = looking_at([at - shift for (at,) in centre.letters], len(word))
        score = alignment_score([moved], [centre])
        assert score.shift == shift
        assert score.shifted == 1
        assert (score.share == 1) == (shift == 0)

    def test_a_shift_beyond_the_limit_is_not_found(self):
        centre = Alignment("abcdefghij", ("B", "D"), ((1,), (2,)))
        score = alignment_score([looking_at([5, 6], 10)], [centre])
        assert score == AlignmentScore(share=0.0, diagonal=0.0, shifted=0.0, shift=0)
        score = alignment_score([looking_at([5, 6], 10)], [centre], largest_shift=4)
        assert (score.shifted, score.shift) == (1, -4)

    def test_of_equal_shifts_the_smallest_counts(self):
        everywhere = Alignment("abc", ("B",), ((0, 1, 2),))
        assert alignment_score([looking_at([1], 3)], [everywhere]).shift == 0

    def test_a_shift_does_not_run_into_the_next_word(self):
        first, last = Alignment("ab", ("B",), ((1,),)), Alignment("ab", ("B",), ((0,),))
        score = alignment_score([looking_at([1], 2), looking_at([0], 2)], [first, last])
        assert score.share == score.shifted == 1

    @pytest.mark.parametrize(
        "weights, alignments, complaint",
        [
            ([], [], "no alignments"),
            ([torch.ones(3, 6)], [], "1 weight matrices for 0 alignments"),
            ([torch.ones(3, 6)], [KNIGHT, BOX], "1 weight matrices for 2"),
            ([torch.ones(2, 6)], [KNIGHT], r"'knight' have shape \(2, 6\).*3 or more"),
            ([torch.ones(3, 5)], [KNIGHT], r"'knight' have shape \(3, 5\).*6 or more"),
            (torch.ones(1, 6), [KNIGHT], r"shape \(6,\): expected two axes"),
        ],
    )
    def test_what_cannot_be_scored(self, weights, alignments, complaint):
        with pytest.raises(ValueError, match=complaint):
            alignment_score(weights, alignments)
        if not alignments:
            with pytest.raises(ValueError, match="no alignments"):
                diagonal_baseline(alignments)

    def test_a_limit_below_zero(self):
        with pytest.raises(ValueError, match="largest_shift=-1"):
            alignment_score([looking_at([0, 2, 5], 6)], [KNIGHT], largest_shift=-1)
