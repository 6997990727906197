"""Chapter 12: how near translated sentences come to their references, by sacrebleu."""

from collections.abc import Sequence
from dataclasses import dataclass

import sacrebleu

from seq2seq_lib.metrics.errors import check_numbers


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
        between = "" if self.interval is None else " [{:.1f}, {:.1f}]"
        return (
            f"{self.value:.1f}{between.format(*self.interval or ())} ({self.signature})"
        )


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

    Args:
        outputs: detokenized sentences.
        references: for every output one or more right sentences.
        bootstrap: how often the corpus is resampled for the interval; 0 for none.

    Raises:
        ValueError: nothing to compare, or different numbers of outputs and references.
    """
    return _sacrebleu(sacrebleu.BLEU(lowercase=True), outputs, references, bootstrap)


def chrf(
    outputs: Sequence[str], references: Sequence[Sequence[str]], *, bootstrap: int = 0
) -> Score:
    """ChrF of a corpus: how many runs of one to six characters the references share.

    Args:
        outputs: detokenized sentences.
        references: for every output one or more right sentences.
        bootstrap: how often the corpus is resampled for the interval; 0 for none.

    Raises:
        ValueError: nothing to compare, or different numbers of outputs and references.
    """
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
