"""Chapter 12: tasks whose outputs are sentences, scored in BLEU and chrF."""

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any, ClassVar

import sacrebleu

from seq2seq_lib.data.examples import Example, source_name
from seq2seq_lib.data.vocabulary import Vocabulary
from seq2seq_lib.metrics import Score, bleu, chrf, word_bleu
from seq2seq_lib.tasks.task import DRAWS, Task

ORDERS = (1, 2, 3, 4)
"""How long the runs of words are that BLEU counts."""


class SentenceTask(Task[str]):
    """A sentence is read as it is written; there are many good outputs."""

    metrics = ("bleu", "chrf")
    higher_is_better = True
    tolerance: ClassVar[Mapping[str, float]] = {"bleu": 0.5, "chrf": 0.5}
    lengths = (1, 9, 12, 15, 100)
    words = False

    def prepare(self, line: str) -> str:
        """As it was typed."""
        return line

    def refusal(self, source: str, vocabulary: Vocabulary) -> str:
        """Nothing: a character never seen becomes ``UNK``."""
        return ""

    def output(self, tokens: Sequence[int], vocabulary: Vocabulary) -> str:
        """The sentence."""
        return vocabulary.text(tokens)

    def text(self, output: str) -> str:
        """The sentence."""
        return output

    def length(self, example: Example) -> int:
        """In words."""
        return len(source_name(example.source).split())

    def length_ratio(
        self, outputs: Sequence[str], examples: Sequence[Example]
    ) -> float:
        """Words for each word of the first reference."""
        words = sum(len(output.split()) for output in outputs)
        return words / sum(len(_text(e.references[0]).split()) for e in examples)

    def score(
        self, outputs: Sequence[str], examples: Sequence[Example]
    ) -> dict[str, float]:
        """BLEU and chrF, from 0 to 100."""
        references = _references(examples)
        return {
            "bleu": bleu(outputs, references).value,
            "chrf": chrf(outputs, references).value,
        }

    def intervals(
        self, outputs: Sequence[str], examples: Sequence[Example]
    ) -> dict[str, dict[str, Any]]:
        """BLEU, chrF and the BLEU of lower-cased words, from 0 to 100."""
        references = _references(examples)
        metrics: dict[str, Callable[..., Score]] = {
            "bleu": bleu,
            "chrf": chrf,
            "word_bleu": word_bleu,
        }
        return {
            name: dataclasses.asdict(metric(outputs, references, bootstrap=DRAWS))
            for name, metric in metrics.items()
        }

    def counts(
        self, outputs: Sequence[str], examples: Sequence[Example]
    ) -> list[dict[str, int]]:
        """Words, those of the references, and runs of words with the right ones."""
        metric = sacrebleu.BLEU(effective_order=True)
        rows = []
        for output, those in zip(outputs, _references(examples), strict=True):
            one = metric.sentence_score(output, those)
            row = {"words": one.sys_len, "reference_words": one.ref_len}
            for n, right, runs in zip(ORDERS, one.counts, one.totals, strict=True):
                row |= {f"runs_{n}": runs, f"right_{n}": right}
            rows.append(row)
        return rows

    def of_counts(self, counts: Mapping[str, int]) -> float:
        """BLEU."""
        found = sacrebleu.BLEU.compute_bleu(
            [counts[f"right_{n}"] for n in ORDERS],
            [counts[f"runs_{n}"] for n in ORDERS],
            counts["words"],
            counts["reference_words"],
            smooth_method="exp",
        )
        return float(found.score)


def _references(examples: Sequence[Example]) -> list[list[str]]:
    return [[_text(one) for one in example.references] for example in examples]


def _text(symbols: Sequence[str]) -> str:
    return "".join(symbols)
