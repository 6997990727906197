"""Final scores: of a model on its test part, or of another program on the same words.

The score of a model holds that of a sample too, which a test computes again.
"""

from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from seq2seq_lib.data.examples import Example
from seq2seq_lib.evaluation.decoding import best_outputs, measure
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.search import SearchConfig
from seq2seq_lib.tasks import TASKS, Task

SAMPLE = 300
"""How many of the first examples are scored again by a test."""


def final_scores(
    saved: SavedModel, examples: Sequence[Example], *, search: SearchConfig
) -> dict[str, Any]:
    """All metrics with their intervals, by length and by kind, and those of a sample.

    Args:
        saved: a model with its vocabularies.
        examples: the test part of the split it was trained on.
        search: how outputs are found.
    """
    sources = [example.source for example in examples]
    outputs = best_outputs(saved, sources, search=search.search())
    task, sample = TASKS[saved.task], slice(SAMPLE)
    return {
        **scores_of(task, outputs, examples),
        "sample": {
            "examples": len(examples[sample]),
            **task.score(outputs[sample], examples[sample]),
        },
    }


def check_sample(
    saved: SavedModel,
    examples: Sequence[Example],
    stored: Mapping[str, Any],
    *,
    search: SearchConfig,
) -> None:
    """Score the sample again, and compare with what is stored.

    Args:
        saved: a model with its vocabularies.
        examples: those that ``final_scores`` was given.
        stored: what it returned.
        search: how outputs are found.

    Raises:
        ValueError: the figures are not those of this model.
    """
    sample = examples[:SAMPLE]
    for metric, value in measure(saved, sample, search=search.search()).items():
        expected = stored["sample"][metric]
        if not abs(expected - value) <= TASKS[saved.task].tolerance[metric]:
            raise ValueError(
                f"{metric} of the first {len(sample)} test examples is {value:.4f}, "
                f"but the stored one is {expected:.4f}."
            )


def scores_of(
    task: Task[Any], outputs: Sequence[Any], examples: Sequence[Example]
) -> dict[str, Any]:
    """Metrics with intervals, by length and, if the task has them, by kind."""
    kinds = {"by_kind": task.by_kind(outputs, examples)} if task.kinds else {}
    return {
        "metrics": task.intervals(outputs, examples),
        "by_length": task.by_length(outputs, examples),
        **kinds,
    }


def score_pronouncer(
    task: Task[Any],
    pronounce: Callable[[str], Sequence[str]],
    examples: Sequence[Example],
) -> dict[str, Any]:
    """The scores of any program that pronounces, on the same words as ours.

    Args:
        task: of the examples.
        pronounce: gives the phonemes of a word. Digits of stress are taken off, and
            what is no letter then, such as spaces and punctuation, is left out.
        examples: words with every right pronunciation.
    """
    outputs = []
    for example in examples:
        symbols = (s.rstrip("012") for s in pronounce("".join(example.source)))
        outputs.append([symbol for symbol in symbols if symbol.isalpha()])
    return scores_of(task, outputs, examples)


def read_pronunciations(
    path: Path, examples: Sequence[Example]
) -> dict[str, list[str]]:
    """What another program, maybe in another environment, wrote for these words.

    Args:
        path: a file with a word, a tab and its phonemes on every line, as
            ``seq2seq pronounce --best`` writes it.
        examples: the words.

    Raises:
        ValueError: words are missing in the file.
    """
    lines = (line.partition("\t") for line in path.read_text("utf-8").splitlines())
    written = {word.lower(): phonemes.split() for word, _, phonemes in lines}
    words = ["".join(example.source) for example in examples]
    if missing := [word for word in words if word not in written]:
        raise ValueError(
            f"{path} lacks {len(missing)} of the {len(words)} test words, first "
            f"{missing[0]!r}: every word needs a line, with nothing behind the tab if "
            "the program has no answer."
        )
    return written
