"""Chapter 1: a corpus has examples in three parts; training reads pairs of numbers."""

from collections.abc import Iterable
from dataclasses import dataclass
from enum import StrEnum
from typing import NamedTuple

from torch import Tensor

from seq2seq_lib.data.frames import Frames, Source, checksum
from seq2seq_lib.data.vocabulary import Vocabulary


class TaskName(StrEnum):
    """What is to be learned; the room ``tasks`` says what each of them means."""

    PRONUNCIATION = "pronunciation"
    TRANSLATION = "translation"
    TOY = "toy"


class Example(NamedTuple):
    """One source, as symbols or frames, with every target that counts as right."""

    source: tuple[str, ...] | Tensor
    references: tuple[tuple[str, ...], ...]


@dataclass(frozen=True)
class Corpus:
    """Examples in three parts, with the vocabularies that number their symbols.

    Attributes:
        name: of the data and its split; trained weights carry it.
        train: what a model learns from.
        dev: what every choice is made on.
        test: what the final model is scored on, once.
        source_vocabulary: the symbols of the sources, or the size of their frames.
        target_vocabulary: the symbols of the references.
        task: what is to be learned from it.
        target_language: of the references, if they are sentences.
    """

    name: str
    train: list[Example]
    dev: list[Example]
    test: list[Example]
    source_vocabulary: Vocabulary | Frames
    target_vocabulary: Vocabulary
    task: TaskName
    target_language: str = ""


class Pair(NamedTuple):
    """One source and one target, as numbers, without ``BOS`` and ``EOS``.

    A source that is no sequence of symbols is a tensor of frames, of shape S F.
    """

    source: list[int] | Tensor
    target: list[int]


def encode_pairs(
    examples: Iterable[Example],
    source_vocabulary: Vocabulary | Frames,
    target_vocabulary: Vocabulary,
) -> list[Pair]:
    """Make one training pair of every reference of every example."""
    return [
        Pair(
            encode_source(example.source, source_vocabulary),
            target_vocabulary.encode(reference),
        )
        for example in examples
        for reference in example.references
    ]


def encode_source(
    source: Source, vocabulary: Vocabulary | Frames
) -> list[int] | Tensor:
    """A source as a model reads it: numbers of symbols, or frames.

    Raises:
        ValueError: symbols are given where frames are expected, or the opposite.
    """
    if isinstance(source, Tensor) and isinstance(vocabulary, Vocabulary):
        raise ValueError(  # noqa: TRY004, a reader's mistake
            f"a source is a tensor of shape {tuple(source.shape)}, but this model "
            "reads symbols: give it text, or use a model that was trained on frames."
        )
    return vocabulary.encode(source)


def source_name(source: Source) -> str:
    """What tells a source from all others: its text, or a checksum of its frames."""
    return checksum(source) if isinstance(source, Tensor) else "".join(source)
