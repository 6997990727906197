"""Toy tasks, where difficulty is chosen: copy, reverse and sort a sequence."""

from enum import StrEnum
from string import ascii_lowercase

import torch

from seq2seq_lib.data.examples import Corpus, Example, TaskName
from seq2seq_lib.data.vocabulary import Vocabulary
from seq2seq_lib.seeds import generator


class ToyTask(StrEnum):
    """What to do with a sequence."""

    COPY = "copy"
    REVERSE = "reverse"
    SORT = "sort"

    def answer(self, source: tuple[str, ...]) -> tuple[str, ...]:
        """The right output.

        >>> ToyTask.REVERSE.answer(("a", "c", "b"))
        ('b', 'c', 'a')
        """
        match self:
            case ToyTask.COPY:
                return source
            case ToyTask.REVERSE:
                return source[::-1]
            case ToyTask.SORT:
                return tuple(sorted(source))


def toy_vocabulary(symbols: int) -> Vocabulary:
    """The first letters of the alphabet.

    Raises:
        ValueError: ``symbols`` is not between 1 and 26.
    """
    if not 1 <= symbols <= len(ascii_lowercase):
        raise ValueError(
            f"symbols={symbols}: the toy tasks use the letters a to z, so choose "
            f"1 to {len(ascii_lowercase)} of them."
        )
    return Vocabulary(ascii_lowercase[:symbols])


def toy_examples(
    task: ToyTask, *, count: int, lengths: tuple[int, int], symbols: int, seed: int
) -> list[Example]:
    """Draw random sequences with their answers, the same on every machine.

    Every length is equally likely as long as it has sequences that were not drawn yet:
    the examples are all different, unless ``count`` exceeds what the lengths and
    symbols allow. So one list can be cut into parts for training and testing; two lists
    with different seeds may share examples.

    Args:
        task: what the answers are. The sources depend on the other arguments only.
        count: how many examples.
        lengths: the shortest and the longest sequence.
        symbols: how many different letters.
        seed: of the random draws.

    Raises:
        ValueError: an argument leaves nothing to draw from.

    >>> toy_examples(ToyTask.COPY, count=1, lengths=(3, 3), symbols=1, seed=0)
    [Example(source=('a', 'a', 'a'), references=(('a', 'a', 'a'),))]
    """
    shortest, longest = lengths
    if count < 1 or not 1 <= shortest <= longest:
        raise ValueError(
            f"count={count}, lengths={lengths}: expected at least one example, and the "
            "shortest length (1 or more) before the longest."
        )
    letters = toy_vocabulary(symbols).symbols[-symbols:]
    random = generator(seed)
    unused = {length: symbols**length for length in range(shortest, longest + 1)}
    sources: list[tuple[str, ...]] = []
    seen: set[tuple[str, ...]] = set()
    while len(sources) < count:
        choices = [length for length, left in unused.items() if left] or list(unused)
        length = choices[int(torch.randint(len(choices), (), generator=random))]
        numbers = torch.randint(symbols, (length,), generator=random).tolist()
        source = tuple(letters[number] for number in numbers)
        if source not in seen:
            seen.add(source)
            unused[length] -= 1
        elif unused[length]:
            continue
        sources.append(source)
    return [Example(source, (task.answer(source),)) for source in sources]


def toy_corpus(
    task: ToyTask,
    *,
    train: int = 10_000,
    held_out: int = 500,
    lengths: tuple[int, int] = (3, 12),
    symbols: int = 10,
    seed: int = 0,
) -> Corpus:
    """Draw examples of a toy task and cut them into three parts.

    Args:
        task: what the answers are.
        train: examples to learn from.
        held_out: examples in each of the other two parts.
        lengths: the shortest and the longest sequence.
        symbols: how many different letters.
        seed: of the random draws.

    Raises:
        ValueError: there are fewer different sequences than examples, so that some
            would be learned and tested.
    """
    count = train + 2 * held_out
    examples = toy_examples(
        task, count=count, lengths=lengths, symbols=symbols, seed=seed
    )
    if (different := len({example.source for example in examples})) < count:
        raise ValueError(
            f"{symbols} letters make only {different:,} sequences of {lengths[0]} to "
            f"{lengths[1]}, but {count:,} were asked for: take fewer examples, more "
            "letters or longer sequences."
        )
    vocabulary = toy_vocabulary(symbols)
    return Corpus(
        name=f"toy-{task.value}",
        train=examples[:train],
        dev=examples[train : train + held_out],
        test=examples[train + held_out :],
        source_vocabulary=vocabulary,
        target_vocabulary=vocabulary,
        task=TaskName.TOY,
    )
