"""Answers of trained models to what nobody wrote an answer to."""

from collections.abc import Callable, Sequence
from enum import StrEnum
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
from seq2seq_lib.training.distributed import all_gather, map_over_ranks, rank

WEIGHT = 0.5
INVENTED = 400_000
TOGETHER = 20_000
"""Sources that are answered before the answers are written down."""


class Unlabelled(StrEnum):
    """Sources without a reference that teachers may answer."""

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


Answer = Callable[[Sequence[str]], Sequence[Sequence[str]]]
"""Gives the symbols of an answer to each source, none of them if there is no answer."""


def searched(teacher: SavedModel, search: Search) -> Answer:
    """Answers with what a search finds; what has no end is no answer."""

    def answer(sources: Sequence[str]) -> list[list[str]]:
        found = decode(teacher, sources, search=search)
        ended = [one.best.tokens if one.best.finished else [] for one in found]
        return [list(teacher.target_vocabulary.decode(tokens)) for tokens in ended]

    return answer


def chosen(teacher: SavedModel, ngram: JointNGram) -> Answer:
    """Answers with the proposal that two models together hold most probable.

    Args:
        teacher: a network.
        ngram: proposes; its scores count ``WEIGHT`` times.
    """

    def answer(sources: Sequence[str]) -> list[Sequence[str]]:
        ngram.learn()
        proposals = map_over_ranks(ngram.propose, sources)
        said = [
            (word, one.sounds)
            for word, several in zip(sources, proposals, strict=True)
            if len(several) > 1
            for one in several
        ]
        found = iter(log_probabilities(teacher, said))
        answers: list[Sequence[str]] = []
        for several in proposals:
            best = several[0] if several else None
            if len(several) > 1:  # else there is nothing to choose
                totals = [next(found) + WEIGHT * one.score for one in several]
                _, best = max(zip(totals, several, strict=True))
            answers.append(best.sounds if best else ())
        return answers

    return answer


def answered(path: Path, sources: Sequence[str], answer: Answer) -> list[Example]:
    """Sources with the answers to them, which are found once and kept.

    A source without an answer is left out. Of processes that train together, the file
    that the first one sees counts; all have to call it.

    Args:
        path: a file with a line for each: the source, a tab, and the symbols of the
            answer. What is missing at its end is found and added, many at a time.
        sources: without references.
        answer: finds the answers.

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
            f"{path} answers other sources than these {len(sources):,}: delete it to "
            "have them answered anew."
        )
    if rank() == 0:
        sweep(path)
    for start in range(len(lines), len(sources), TOGETHER):
        asked = sources[start : start + TOGETHER]
        said = answer(asked)
        lines += [f"{s}\t{' '.join(a)}" for s, a in zip(asked, said, strict=True)]
        if rank() == 0:
            write_whole(path, "".join(f"{line}\n" for line in lines))
    pairs = (line.partition("\t") for line in lines)
    return [
        Example(tuple(source), (tuple(said.split()),))
        for source, _, said in pairs
        if said
    ]
