"""Chapter 1: tasks whose outputs are lists of symbols, scored in WER and PER."""

from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from seq2seq_lib.data.examples import Example
from seq2seq_lib.data.vocabulary import SPECIAL, Vocabulary
from seq2seq_lib.metrics import (
    bootstrap_interval,
    count_errors,
    error_counts,
    error_rates,
)
from seq2seq_lib.tasks.task import DRAWS, Task


class SymbolTask(Task[Sequence[str]]):
    """A word is read letter by letter, and the output is one of its references."""

    metrics = ("wer", "per")
    higher_is_better = False
    tolerance: ClassVar[Mapping[str, float]] = {"wer": 0.01, "per": 0.004}
    lengths = (1, 5, 7, 9, 11, 100)
    words = True

    def prepare(self, line: str) -> str:
        """Lower case, with the apostrophe of the dictionary."""
        return line.lower().replace("’", "'")

    def refusal(self, source: str, vocabulary: Vocabulary) -> str:
        """Names the letters that were never seen."""
        unknown = sorted({letter for letter in source if letter not in vocabulary})
        if not unknown:
            return ""
        known = "".join(vocabulary.symbols[len(SPECIAL) :])
        return f"no letter {' or '.join(map(repr, unknown))} among those known, {known}"

    def output(self, tokens: Sequence[int], vocabulary: Vocabulary) -> list[str]:
        """The symbols."""
        return vocabulary.decode(tokens)

    def text(self, output: Sequence[str]) -> str:
        """The symbols with spaces between."""
        return " ".join(output)

    def length(self, example: Example) -> int:
        """In letters."""
        return len(example.source)

    def length_ratio(
        self, outputs: Sequence[Sequence[str]], examples: Sequence[Example]
    ) -> float:
        """Symbols for each symbol of the first reference."""
        return sum(map(len, outputs)) / sum(len(e.references[0]) for e in examples)

    def score(
        self, outputs: Sequence[Sequence[str]], examples: Sequence[Example]
    ) -> dict[str, float]:
        """WER and PER, as shares."""
        return error_rates(count_errors(outputs, [e.references for e in examples]))

    def intervals(
        self, outputs: Sequence[Sequence[str]], examples: Sequence[Example]
    ) -> dict[str, dict[str, Any]]:
        """WER and PER, as shares."""
        errors = count_errors(outputs, [example.references for example in examples])
        how = f"any reference|bootstrap over words:{DRAWS}|seed:0"
        rates = error_rates(errors)
        return {
            name: {
                "value": rates[name],
                "interval": bootstrap_interval(parts, wholes, samples=DRAWS),
                "signature": f"{name}|{how}",
            }
            for name, (parts, wholes) in error_counts(errors).items()
        }

    def counts(
        self, outputs: Sequence[Sequence[str]], examples: Sequence[Example]
    ) -> list[dict[str, int]]:
        """Words and wrong ones, edits and symbols."""
        errors = count_errors(outputs, [example.references for example in examples])
        (wrong, words), (edits, symbols) = error_counts(errors).values()
        return [
            {"words": w, "wrong": x, "edits": e, "symbols": s}
            for w, x, e, s in zip(words, wrong, edits, symbols, strict=True)
        ]

    def of_counts(self, counts: Mapping[str, int]) -> float:
        """WER."""
        return float(counts["wrong"] / counts["words"])
