"""What trained models teach a model that learns from them.

A teacher gives more than the right answer: how probable it holds every other one. It
also answers where nobody wrote the answer down.

Axes: B batch, T target, V vocabulary, N target symbols of all pairs together.
"""

from collections.abc import Sequence
from enum import StrEnum
from pathlib import Path

import torch
from jaxtyping import Float
from torch import Tensor

from seq2seq_lib.data import Batch, Batches, Corpus, Example, Pair, surnames
from seq2seq_lib.data.vocabulary import EOS
from seq2seq_lib.evaluation import decode
from seq2seq_lib.files import write_whole
from seq2seq_lib.interface import EncoderDecoder, evaluating
from seq2seq_lib.search import Search
from seq2seq_lib.training.checkpoint import SavedModel, read_tensors, write_tensors
from seq2seq_lib.training.distributed import collected, rank

FORMAT = "seq2seq_lib beliefs 1"


class Unanswered(StrEnum):
    """Sources without a reference that teachers may answer."""

    NONE = ""
    SURNAMES = "surnames"

    def sources(self, corpus: Corpus) -> list[str]:
        """Those that are in no part of the corpus, least of all in its test part."""
        if self is Unanswered.NONE:
            return []
        parts = (corpus.train, corpus.dev, corpus.test)
        known = {"".join(example.source) for part in parts for example in part}
        return [name for name in surnames() if name not in known]


def answered(
    path: Path, teacher: SavedModel, sources: Sequence[str], *, search: Search
) -> list[Example]:
    """Sources with what a teacher says to them, which is found once and kept.

    Args:
        path: a file with a line for each: the source, a tab, and the symbols of the
            answer. It is written if it is missing.
        teacher: answers.
        sources: without references.
        search: how answers are found.

    Raises:
        ValueError: the file is about other sources.
    """
    if not all(collected(path.exists())):  # so that all processes decide alike
        found = decode(teacher, sources, search=search)
        said = [teacher.target_vocabulary.decode(one.best.tokens) for one in found]
        lines = [f"{s}\t{' '.join(a)}\n" for s, a in zip(sources, said, strict=True)]
        if rank() == 0:
            write_whole(path, "".join(lines))
        collected(None)  # the others wait until it is written
    lines = path.read_text("utf-8").splitlines()
    examples = [
        Example(tuple(source), (tuple(answer.split()),))
        for source, _, answer in (line.partition("\t") for line in lines)
    ]
    if ["".join(example.source) for example in examples] != list(sources):
        raise ValueError(
            f"{path} answers other sources than these {len(sources):,}: delete it to "
            "have them answered anew."
        )
    return [example for example in examples if example.references[0]]


class Beliefs:
    """What a teacher holds probable at every position of outputs that are known.

    It is computed once and looked up while another model learns from it.

    Args:
        pairs: sources and outputs.
        table: for every symbol of every output, ``EOS`` included, the probabilities of
            all symbols in its place.
    """

    def __init__(self, pairs: Sequence[Pair], table: Float[Tensor, "N V"]) -> None:
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

    def __call__(self, batch: Batch) -> Float[Tensor, "B T V"]:
        """Look up the rows of a batch; what stands at padding does not matter."""
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
        found = self.table[place.clamp(max=len(self.table) - 1)]  # B T V
        return found.to(batch.target.device, torch.float32)

    @classmethod
    def kept(
        cls, path: Path, teacher: EncoderDecoder, pairs: Sequence[Pair]
    ) -> "Beliefs":
        """What a file holds about these pairs; if it is missing, ask and write it.

        Raises:
            ValueError: the file is damaged, or about other pairs.
        """
        if not path.exists() and rank() == 0:
            beliefs = cls.of(teacher, pairs)
            write_tensors(path, {"table": beliefs.table}, {"format": FORMAT})
        collected(None)  # the others wait until it is written
        tensors, _ = read_tensors(path, FORMAT)
        return cls(pairs, tensors["table"])

    @classmethod
    def of(
        cls, teacher: EncoderDecoder, pairs: Sequence[Pair], *, budget: int = 4096
    ) -> "Beliefs":
        """Ask a teacher about every symbol of every output.

        Args:
            teacher: a trained model.
            pairs: sources and outputs.
            budget: positions that are computed together.
        """
        starts = torch.tensor([0, *(len(pair.target) + 1 for pair in pairs)]).cumsum(0)
        table = torch.empty(0, 0, dtype=torch.float16)
        with evaluating(teacher):
            for rows in Batches(pairs, budget=budget).plan(0):
                batch = Batch.from_pairs([pairs[row] for row in rows])
                beliefs = teacher(batch.to(teacher.device)).exp().half().cpu()
                if not len(table):
                    table = beliefs.new_empty(int(starts[-1]), beliefs.shape[-1])
                for row, belief in zip(rows, beliefs, strict=True):
                    ends = starts[row : row + 2].tolist()
                    table[slice(*ends)] = belief[: ends[1] - ends[0]]
        return cls(pairs, table)


def _key(pair: Pair) -> tuple[int, ...]:
    return (*pair.source, EOS, *pair.target)
