"""Chapter 1: how far outputs are from right, measured the same way everywhere.

Outputs are sequences of symbols, and every output has a list of references, because a
word may have several pronunciations. Rates are shares from 0 up, not percentages.
BLEU and chrF of sentences (chapter 12) are sacrebleu's, from 0 to 100.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass

import sacrebleu
import torch

from seq2seq_lib.seeds import generator

Symbols = Sequence[str]


def edit_distance(first: Symbols, second: Symbols) -> int:
    """Count the insertions, deletions and replacements that turn one into the other.

    >>> edit_distance("N AY T".split(), "K N IH T".split())
    2
    """
    row = list(range(len(second) + 1))  # distances from nothing to each beginning
    for i, left in enumerate(first, start=1):
        diagonal, row[0] = row[0], i
        for j, right in enumerate(second, start=1):
            replaced = diagonal + (left != right)
            diagonal, row[j] = row[j], min(replaced, row[j] + 1, row[j - 1] + 1)
    return row[-1]


def exact_match(
    outputs: Sequence[Symbols], references: Sequence[Sequence[Symbols]]
) -> float:
    """The share of outputs that equal one of their references.

    Raises:
        ValueError: nothing to compare, different numbers of outputs and references, or
            strings where lists of symbols belong.

    >>> exact_match([["N", "AY", "T"], ["T"]], [[["N", "AY", "T"]], [["T", "UW"]]])
    0.5
    """
    _check(outputs, references)
    right = sum(
        tuple(output) in set(map(tuple, those))
        for output, those in zip(outputs, references, strict=True)
    )
    return right / len(outputs)


def word_error_rate(
    outputs: Sequence[Symbols], references: Sequence[Sequence[Symbols]]
) -> float:
    """The share of outputs that equal none of their references."""
    return error_rates(count_errors(outputs, references))["wer"]


def phoneme_error_rate(
    outputs: Sequence[Symbols], references: Sequence[Sequence[Symbols]]
) -> float:
    """The edits needed, as a share of the symbols that were expected.

    Every output is compared with its nearest reference; of equally near ones, with the
    longest. The edit distances are summed over all outputs and divided by the summed
    lengths of these references, so the rate can exceed 1.

    >>> phoneme_error_rate([["T"]], [[["T", "UW"], ["T", "AH", "D"]]])
    0.5
    """
    return error_rates(count_errors(outputs, references))["per"]


@dataclass(frozen=True)
class Errors:
    """What is wrong with one output.

    Attributes:
        edits: the distance to the nearest reference; 0 if the output is right.
        symbols: the length of that reference, of equally near ones the longest.
    """

    edits: int
    symbols: int


def count_errors(
    outputs: Sequence[Symbols], references: Sequence[Sequence[Symbols]]
) -> list[Errors]:
    """Compare every output with its nearest reference.

    >>> count_errors([["T"]], [[["T", "UW"], ["T", "AH", "D"]]])
    [Errors(edits=1, symbols=2)]
    """
    _check(outputs, references)
    nearest = (
        min((edit_distance(output, one), -len(one)) for one in those)
        for output, those in zip(outputs, references, strict=True)
    )
    return [Errors(edits, -minus_symbols) for edits, minus_symbols in nearest]


def error_counts(errors: Sequence[Errors]) -> dict[str, tuple[list[int], list[int]]]:
    """What is summed over the outputs: numerators and denominators of WER and of PER.

    >>> error_counts([Errors(edits=2, symbols=5), Errors(edits=0, symbols=3)])
    {'wer': ([1, 0], [1, 1]), 'per': ([2, 0], [5, 3])}
    """
    wrong, ones = [int(one.edits > 0) for one in errors], [1] * len(errors)
    edits, symbols = [one.edits for one in errors], [one.symbols for one in errors]
    return {"wer": (wrong, ones), "per": (edits, symbols)}


def error_rates(errors: Sequence[Errors]) -> dict[str, float]:
    """WER and PER of outputs whose errors were counted, as shares.

    >>> error_rates([Errors(edits=2, symbols=5), Errors(edits=0, symbols=3)])
    {'wer': 0.5, 'per': 0.25}
    """
    counts = error_counts(errors)
    return {name: sum(parts) / sum(wholes) for name, (parts, wholes) in counts.items()}


def bootstrap_interval(
    parts: Sequence[int | float],
    wholes: Sequence[int | float],
    *,
    samples: int = 1000,
    seed: int = 0,
) -> tuple[float, float]:
    """Where 95 % of the values of ∑ parts / ∑ wholes lie when rows are drawn anew.

    As many rows as there are, with repetition (Efron, 1979): the spread of the ratio
    over such draws estimates its spread over other words of the same kind.

    Args:
        parts: for every row its share of the numerator, such as its edits.
        wholes: for every row its share of the denominator, such as its symbols.
        samples: how many draws.
        seed: of the draws.

    Raises:
        ValueError: there are no rows, or not as many of one as of the other.

    >>> bootstrap_interval([1, 1, 1], [2, 2, 2])
    (0.5, 0.5)
    """
    if len(parts) != len(wholes) or not parts:
        raise ValueError(
            f"{len(parts)} parts and {len(wholes)} wholes: expected as many of one as "
            "of the other, and at least one."
        )
    table = torch.tensor([list(parts), list(wholes)], dtype=torch.double)
    random = generator(seed)
    ratios = torch.empty(samples, dtype=torch.double)
    for sample in range(samples):
        rows = torch.randint(len(parts), (len(parts),), generator=random)
        part, whole = table[:, rows].sum(dim=1)
        ratios[sample] = part / whole
    low, high = ratios.quantile(torch.tensor([0.025, 0.975], dtype=torch.double))
    return low.item(), high.item()


def perplexity(log_probability: float, symbols: int) -> float:
    """Between how many equally likely symbols a model hesitates, on average.

    exp(−log p / N), where p is the probability of N symbols together.

    Args:
        log_probability: natural logarithm, summed over all symbols.
        symbols: how many were summed, ``EOS`` included.

    Raises:
        ValueError: there are no symbols, or the logarithm is not one of a probability.

    >>> round(perplexity(3 * math.log(1 / 8), 3), 6)
    8.0
    """
    if symbols < 1:
        raise ValueError(f"symbols={symbols}: perplexity needs at least one symbol.")
    mean = log_probability / symbols
    if not mean < 1e-6:  # sums of many logarithms near 0 are rounded; NaN fails too
        raise ValueError(
            f"log_probability={log_probability}: the logarithm of a probability is not "
            "above 0. A loss has the opposite sign: pass its negative."
        )
    return math.exp(-mean) if mean > -700 else math.inf


def _check(outputs: Sequence[Symbols], references: Sequence[Sequence[Symbols]]) -> None:
    check_numbers(outputs, references)
    for row, (output, those) in enumerate(zip(outputs, references, strict=True)):
        if text := [s for s in (output, *those) if isinstance(s, str)]:
            raise ValueError(
                f"row {row} has the string {text[0]!r} where a list of symbols "
                "belongs: use .split() or list(), and give every output a list of "
                "references, even if there is one."
            )
        if not all(those):
            raise ValueError(f"row {row} has an empty reference: leave the row out.")


def check_numbers(
    outputs: Sequence[object], references: Sequence[Sequence[object]]
) -> None:
    """Refuse outputs without references, and none at all."""
    if len(outputs) != len(references) or not outputs:
        raise ValueError(
            f"{len(outputs)} outputs and {len(references)} lists of references: "
            "expected at least one output, and a list for each."
        )
    for row, those in enumerate(references):
        if not those:
            raise ValueError(f"row {row} has no reference: every output needs one.")


@dataclass(frozen=True)
class Score:
    """A figure together with how it was computed, so that others can compare.

    Attributes:
        value: from 0 to 100, higher is better.
        signature: sacrebleu's description of every choice behind it.
        interval: where 95 % of the scores of resampled corpora lie, if asked for.
    """

    value: float
    signature: str
    interval: tuple[float, float] | None = None

    def __str__(self) -> str:
        ends = self.interval or ()
        between = " [{:.1f}, {:.1f}]".format(*ends) if ends else ""
        return f"{self.value:.1f}{between} ({self.signature})"


def bleu(
    outputs: Sequence[str], references: Sequence[Sequence[str]], *, bootstrap: int = 0
) -> Score:
    """BLEU of a corpus: how many runs of one to four words the references share.

    Args:
        outputs: detokenized sentences.
        references: for every output one or more right sentences.
        bootstrap: how often the corpus is resampled for the interval; 0 for none.

    Raises:
        ValueError: nothing to compare, or different numbers of outputs and references.
    """
    return _sacrebleu(sacrebleu.BLEU(), outputs, references, bootstrap)


def word_bleu(
    outputs: Sequence[str], references: Sequence[Sequence[str]], *, bootstrap: int = 0
) -> Score:
    """BLEU of lower-cased words, as tutorials often report it.

    They compare lower-cased tokens of spaCy. Here sacrebleu's 13a rules cut the words,
    which differ in few of them; the figures compare roughly, not to the decimal.

    It takes and refuses what ``bleu`` does.
    """
    return _sacrebleu(sacrebleu.BLEU(lowercase=True), outputs, references, bootstrap)


def chrf(
    outputs: Sequence[str], references: Sequence[Sequence[str]], *, bootstrap: int = 0
) -> Score:
    """ChrF of a corpus: like ``bleu``, for runs of one to six characters."""
    return _sacrebleu(sacrebleu.CHRF(), outputs, references, bootstrap)


def _sacrebleu(
    metric: sacrebleu.BLEU | sacrebleu.CHRF,
    outputs: Sequence[str],
    references: Sequence[Sequence[str]],
    bootstrap: int,
) -> Score:
    check_numbers(outputs, references)
    if (
        not all(isinstance(output, str) for output in outputs)
        or any(isinstance(those, str) for those in references)
        or len(set(map(len, references))) > 1
    ):
        raise ValueError(
            "expected sentences as outputs, and a list of references for each, all "
            "equally many, as in bleu(['a dog'], [['one dog', 'a dog']])."
        )
    streams = list(zip(*references, strict=True))  # all first references, all second …
    if not bootstrap:
        value = metric.corpus_score(outputs, streams).score
        return Score(value, str(metric.get_signature()))
    score = metric.corpus_score(outputs, streams, n_bootstrap=bootstrap)
    signature = str(metric.get_signature())
    mean, half = float(score._mean), float(score._ci)  # noqa: SLF001, no other form
    return Score(score.score, signature, (mean - half, mean + half))
