"""Pseudo-labels: outputs of trained models for sources that have no reference."""

from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import partial
from pathlib import Path

from seq2seq_lib.data import (
    Corpus,
    Example,
    frequent_words,
    invented_words,
    surnames,
)
from seq2seq_lib.evaluation import decode
from seq2seq_lib.files import sweep, write_whole
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.recipes.joint_ngram import JointNGram
from seq2seq_lib.recipes.soft_targets import log_probabilities
from seq2seq_lib.search import Search
from seq2seq_lib.tasks import TASKS
from seq2seq_lib.training.distributed import all_gather, map_over_ranks, rank

WEIGHT = 0.5
"""How much the scores of a model that proposes count, beside those of the teacher."""
INVENTED = 400_000
"""How many words are invented."""
LABELS_BETWEEN_WRITES = 20_000
"""How many labels are lost, at most, if the process is killed."""


class Unlabelled(StrEnum):
    """Sources without a reference, to which teachers may give labels."""

    NONE = ""
    SURNAMES = "surnames"
    WORDS = "words"
    """Surnames, frequent words, and many more that imitate the training words."""

    def sources(self, corpus: Corpus, *, seed: int = 0) -> list[str]:
        """Those that are in no part of the corpus, least of all in its test part.

        Args:
            corpus: what must not come out, and what invented words imitate.
            seed: of the invented words.
        """
        if self is Unlabelled.NONE:
            return []
        parts = (corpus.train, corpus.dev, corpus.test)
        known = {"".join(example.source) for part in parts for example in part}
        words = surnames()
        if self is Unlabelled.WORDS:
            seen = ["".join(example.source) for example in corpus.train]
            invented = invented_words(seen, count=INVENTED, known=known, seed=seed)
            words = list(dict.fromkeys([*words, *frequent_words(), *invented]))
        return [word for word in words if word not in known]


Labels = Callable[[Sequence[str]], Sequence[Sequence[str]]]
"""Gives each source a label, as symbols; an empty one if it finds none."""


def label_by_search(teacher: SavedModel, search: Search) -> Labels:
    """Labels are what a search finds; an output without an end is none."""
    task = TASKS[teacher.task]

    def labels(sources: Sequence[str]) -> list[Sequence[str]]:
        found = map_over_ranks(partial(decode, teacher, search=search), sources)
        ended = [one.best.tokens if one.best.finished else () for one in found]
        return [task.output(tokens, teacher.target_vocabulary) for tokens in ended]

    return labels


def label_from_proposals(teacher: SavedModel, ngram: JointNGram) -> Labels:
    """Labels are the proposals that two models together hold most probable.

    Args:
        teacher: a network.
        ngram: proposes; its scores count ``WEIGHT`` times.
    """

    def labels(sources: Sequence[str]) -> list[Sequence[str]]:
        ngram.learn()
        proposals = map_over_ranks(ngram.propose, sources)
        outputs = [
            (word, one.sounds)
            for word, several in zip(sources, proposals, strict=True)
            if len(several) > 1
            for one in several
        ]
        found = iter(log_probabilities(teacher, outputs))
        chosen: list[Sequence[str]] = []
        for several in proposals:
            best = several[0] if several else None
            if len(several) > 1:  # else there is nothing to choose
                totals = [next(found) + WEIGHT * one.score for one in several]
                _, best = max(zip(totals, several, strict=True))
            chosen.append(best.sounds if best else ())
        return chosen

    return labels


def pseudo_labels(path: Path, sources: Sequence[str], labels: Labels) -> list[Example]:
    """Sources with their labels, which are found once and kept.

    A source without a label is left out. Of processes that train together, the file
    that the first one sees counts; all have to call it.

    Args:
        path: a file with a line for each: the source, a tab, and the symbols of the
            label. What is missing at its end is found and added, many at a time.
        sources: without references.
        labels: finds the labels.

    Raises:
        ValueError: the file is about other sources.
    """
    lines = []
    if rank() == 0 and path.exists():
        lines = path.read_text("utf-8").splitlines()
    lines = all_gather(lines)[0]
    known = [line.partition("\t")[0] for line in lines]
    if known != list(sources[: len(known)]):
        raise ValueError(
            f"{path} labels other sources than these {len(sources):,}: delete it to "
            "have them labelled anew."
        )
    if rank() == 0:
        sweep(path)
    for start in range(len(lines), len(sources), LABELS_BETWEEN_WRITES):
        some = sources[start : start + LABELS_BETWEEN_WRITES]
        found = labels(some)
        lines += [f"{s}\t{' '.join(a)}" for s, a in zip(some, found, strict=True)]
        if rank() == 0:
            write_whole(path, "".join(f"{line}\n" for line in lines))
    pairs = (line.partition("\t") for line in lines)
    return [
        Example(tuple(source), (tuple(label.split()),))
        for source, _, label in pairs
        if label
    ]
