"""What trained models teach a model that learns from them.

A teacher gives more than the right answer: how probable it holds every other one. It
also answers where nobody wrote the answer down.

Axes: B batch, T target, V vocabulary, R rows.
"""

import hashlib
from collections.abc import Callable, Sequence
from enum import StrEnum
from functools import cached_property
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from seq2seq_lib.data import (
    Batch,
    Batches,
    Corpus,
    Example,
    Pair,
    frequent_words,
    invented_words,
    surnames,
)
from seq2seq_lib.data.vocabulary import EOS
from seq2seq_lib.evaluation import decode
from seq2seq_lib.files import sweep, write_whole
from seq2seq_lib.interface import EncoderDecoder, evaluating
from seq2seq_lib.joint_ngram import JointNGram
from seq2seq_lib.search import Search
from seq2seq_lib.training.checkpoint import (
    SavedModel,
    read_tensors,
    weights_of,
    write_tensors,
)
from seq2seq_lib.training.distributed import collected, in_shares, rank
from seq2seq_lib.training.objective import Teacher

FORMAT = "seq2seq_lib beliefs 1"
WEIGHT = 0.5
INVENTED = 400_000
TOGETHER = 20_000
"""Sources that are answered before the answers are written down."""
LARGEST = 2_000_000_000
"""Bytes of beliefs that are kept in memory."""


class Unanswered(StrEnum):
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
        if self is Unanswered.NONE:
            return []
        parts = (corpus.train, corpus.dev, corpus.test)
        known = {"".join(example.source) for part in parts for example in part}
        words = surnames()
        if self is Unanswered.WORDS:
            seen = ["".join(example.source) for example in corpus.train]
            invented = invented_words(seen, count=INVENTED, known=known, seed=seed)
            words = list(dict.fromkeys([*words, *frequent_words(), *invented]))
        return [word for word in words if word not in known]


def fingerprint(teacher: EncoderDecoder, *more: object) -> str:
    """A short name for a teacher's weights, and for what else decides an answer."""
    digest = hashlib.sha256(repr(more).encode())
    for name, tensor in sorted(weights_of(teacher).items()):
        digest.update(name.encode())
        digest.update(tensor.flatten().cpu().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:12]


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
        proposals = in_shares(ngram.propose, sources)
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


def log_probabilities(
    saved: SavedModel,
    said: Sequence[tuple[Sequence[str], Sequence[str]]],
    *,
    budget: int = 4096,
) -> list[float]:
    """How probable a model holds whole outputs, as logarithms.

    Processes that train together divide the outputs among them; all have to call it.

    Args:
        saved: a trained model.
        said: sources with an output each.
        budget: positions that are computed together.
    """
    pairs = [
        Pair(saved.source_vocabulary.encode(s), saved.target_vocabulary.encode(t))
        for s, t in said
    ]

    def ask(groups: Sequence[list[int]]) -> list[list[float]]:
        found = []
        with evaluating(saved.model):
            for rows in groups:
                batch = Batch.from_pairs([pairs[row] for row in rows])
                batch = batch.to(saved.model.device)
                right = saved.model(batch).gather(-1, batch.target[..., None])[..., 0]
                total = torch.where(batch.target_mask, right, 0).sum(dim=1)  # B
                found.append(total.tolist())
        return found

    groups = Batches(pairs, budget=budget).plan(0) if pairs else []
    totals = [0.0] * len(pairs)
    for rows, found in zip(groups, in_shares(ask, groups), strict=True):
        for row, total in zip(rows, found, strict=True):
            totals[row] = total
    return totals


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
    kept = path.read_text("utf-8").splitlines() if path.exists() else []
    lines = collected(kept)[0]
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
    pairs = (line.split("\t") for line in lines)
    return [
        Example(tuple(source), (tuple(said.split()),)) for source, said in pairs if said
    ]


class Beliefs(Teacher):
    """What a teacher holds probable at every position of outputs that are known.

    It is computed once and looked up while another model learns from it.

    Args:
        pairs: sources and outputs.
        table: a row for every symbol of every output, ``EOS`` included: the
            probabilities of all symbols in its place.

    Raises:
        ValueError: the table is about other outputs.
    """

    def __init__(self, pairs: Sequence[Pair], table: Float[Tensor, "R V"]) -> None:
        self.table = table
        self.starts: dict[tuple[int, ...], int] = {}
        start = 0
        for pair in pairs:
            self.starts[_key(pair)] = start
            start += len(pair.target) + 1
        if start != len(table):
            raise ValueError(
                f"beliefs about {len(table):,} symbols, but the outputs have {start:,}:"
                " they are about other outputs."
            )

    @cached_property
    def sha256(self) -> str:
        """Checksum of the table, by which a run knows its teacher again."""
        return hashlib.sha256(self.table.numpy().tobytes()).hexdigest()

    def __call__(self, batch: Batch) -> Float[Tensor, "B T V"]:
        """Look up the rows of a batch on the CPU; what stands at padding is any row."""
        rows = zip(
            batch.source.tolist(),
            batch.source_mask.sum(dim=1).tolist(),
            batch.target.tolist(),
            batch.target_mask.sum(dim=1).tolist(),
            strict=True,
        )
        starts = [
            self.starts[_key(Pair(source[: letters - 1], target[: symbols - 1]))]
            for source, letters, target, symbols in rows
        ]
        place = torch.tensor(starts)[:, None] + torch.arange(batch.target.shape[1])
        return self.table[place.clamp(max=len(self.table) - 1)].float()  # B T V

    @classmethod
    def kept(
        cls, directory: Path, teacher: EncoderDecoder, pairs: Sequence[Pair]
    ) -> "Beliefs":
        """What a file holds about this teacher and these pairs, or ask and write it.

        Raises:
            ValueError: the file is damaged.
        """
        name = fingerprint(teacher, [tuple(pair) for pair in pairs])
        path = directory / f"beliefs-{name}.safetensors"
        if not all(collected(path.exists())):
            beliefs = cls.of(teacher, pairs)
            if rank() == 0:
                sweep(path)
                write_tensors(path, {"table": beliefs.table}, {"format": FORMAT})
            return beliefs
        tensors, _ = read_tensors(path, FORMAT)
        return cls(pairs, tensors["table"])

    @classmethod
    def of(
        cls, teacher: EncoderDecoder, pairs: Sequence[Pair], *, budget: int = 4096
    ) -> "Beliefs":
        """Ask a teacher about every symbol of every output.

        Processes that train together divide the pairs among them; all have to call it.

        Args:
            teacher: a trained model.
            pairs: sources and outputs.
            budget: positions that are computed together.

        Raises:
            ValueError: there would be more than fits into memory.
        """
        starts = torch.tensor([0, *(len(pair.target) + 1 for pair in pairs)]).cumsum(0)

        def ask(groups: Sequence[list[int]]) -> list[Tensor]:
            found = []
            with evaluating(teacher):
                for rows in groups:
                    batch = Batch.from_pairs([pairs[row] for row in rows])
                    beliefs = teacher(batch.to(teacher.device)).exp().half().cpu()
                    size = 2 * int(starts[-1]) * beliefs.shape[-1]
                    if size > LARGEST:
                        raise ValueError(
                            f"a teacher's beliefs about {int(starts[-1]):,} symbols "
                            f"would take {size:,} bytes, more than {LARGEST:,}: learn "
                            "from fewer pairs, or with a smaller vocabulary."
                        )
                    found.append(beliefs[batch.target_mask])  # R V
            return found

        groups = Batches(pairs, budget=budget).plan(0)
        found = torch.cat(in_shares(ask, groups))
        places = [torch.arange(*starts[r : r + 2].tolist()) for g in groups for r in g]
        table = torch.empty_like(found)
        table[torch.cat(places)] = found
        return cls(pairs, table)


def _key(pair: Pair) -> tuple[int, ...]:
    return (*pair.source, EOS, *pair.target)
