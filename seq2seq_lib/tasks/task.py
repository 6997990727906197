"""What a task is: its metrics, its outputs as text, and what its card says.

Models, searches and the commands ask a task; none of them tells tasks apart.
"""

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any, ClassVar, Generic, TypeVar

from seq2seq_lib.data.examples import Example
from seq2seq_lib.data.vocabulary import Vocabulary

Output = TypeVar("Output", bound=Sequence[str])
DRAWS = 1000
"""How often examples are drawn anew for an interval."""


@dataclass(frozen=True)
class About:
    """What the card of every model says that was trained for a task.

    Attributes:
        task: what the model does.
        data: what it learned from.
        licence: on what terms it may be used.
        limits: what not to expect of it.
    """

    task: str
    data: str
    licence: str
    limits: str


class Task(ABC, Generic[Output]):
    """How models of one task are used and judged.

    Attributes:
        about: for the card of a model.
        metrics: names of what ``score`` returns; choices follow the first.
        higher_is_better: the direction of all metrics.
        tolerance: how far each metric of a sample may move, because another machine
            rounds differently and then takes another of two nearly equal outputs.
        lengths: where sources of one group of lengths begin and those before end.
        words: whether a source is one word, so that more of them stand in any word
            list; otherwise sources are lines of a text.
        kinds: groups of examples that are also scored on their own; they may overlap.
    """

    about: ClassVar[About]
    metrics: ClassVar[tuple[str, ...]]
    higher_is_better: ClassVar[bool]
    tolerance: ClassVar[Mapping[str, float]]
    lengths: ClassVar[tuple[int, ...]]
    words: ClassVar[bool]
    kinds: ClassVar[Mapping[str, Callable[[Example], bool]]] = {}

    @abstractmethod
    def prepare(self, line: str) -> str:
        """What a user typed, in the spelling that models are trained on."""

    @abstractmethod
    def refusal(self, source: str, vocabulary: Vocabulary) -> str:
        """Why a prepared source cannot be read; empty if it can."""

    @abstractmethod
    def output(self, tokens: Sequence[int], vocabulary: Vocabulary) -> Output:
        """The numbers that a search found, in the form that is scored."""

    @abstractmethod
    def text(self, output: Output) -> str:
        """An output as it is shown."""

    @abstractmethod
    def length(self, example: Example) -> int:
        """Of the source, in the unit of ``lengths``."""

    @abstractmethod
    def length_ratio(
        self, outputs: Sequence[Output], examples: Sequence[Example]
    ) -> float:
        """How long outputs are, as a multiple of their first references."""

    @abstractmethod
    def score(
        self, outputs: Sequence[Output], examples: Sequence[Example]
    ) -> dict[str, float]:
        """The metrics of outputs.

        Raises:
            ValueError: nothing to compare, or not as many outputs as examples.
        """

    @abstractmethod
    def intervals(
        self, outputs: Sequence[Output], examples: Sequence[Example]
    ) -> dict[str, dict[str, Any]]:
        """Final metrics, each with its interval and how it was computed."""

    @abstractmethod
    def counts(
        self, outputs: Sequence[Output], examples: Sequence[Example]
    ) -> list[dict[str, int]]:
        """For each example counts whose sums give the first metric of all."""

    @abstractmethod
    def of_counts(self, counts: Mapping[str, int]) -> float:
        """The first metric from such sums."""

    def by_length(
        self, outputs: Sequence[Output], examples: Sequence[Example]
    ) -> list[dict[str, Any]]:
        """The metrics of short and of long sources; empty groups are left out."""
        rows = []
        for low, high in pairwise(self.lengths):
            found = self._group(outputs, examples, partial(self._within, low, high))
            if found:
                rows.append({"from": low, "below": high, **found})
        return rows

    def by_kind(
        self, outputs: Sequence[Output], examples: Sequence[Example]
    ) -> dict[str, dict[str, Any]]:
        """The metrics of examples of one kind; empty kinds are left out."""
        groups = {
            kind: self._group(outputs, examples, belongs)
            for kind, belongs in self.kinds.items()
        }
        return {kind: found for kind, found in groups.items() if found}

    def counts_by_length(
        self, outputs: Sequence[Output], examples: Sequence[Example]
    ) -> list[dict[str, int]]:
        """Summed counts of the sources of every length."""
        sums: dict[int, Counter[str]] = {}
        for example, one in zip(examples, self.counts(outputs, examples), strict=True):
            row = sums.setdefault(self.length(example), Counter(dict.fromkeys(one, 0)))
            row.update(one)
        return [{"length": length, **sums[length]} for length in sorted(sums)]

    def _within(self, low: int, high: int, example: Example) -> bool:
        return low <= self.length(example) < high

    def _group(
        self,
        outputs: Sequence[Output],
        examples: Sequence[Example],
        belongs: Callable[[Example], bool],
    ) -> dict[str, Any]:
        pairs = [
            (output, example)
            for output, example in zip(outputs, examples, strict=True)
            if belongs(example)
        ]
        if not pairs:
            return {}
        some, those = map(list, zip(*pairs, strict=True))
        return {"examples": len(pairs), **self.score(some, those)}
