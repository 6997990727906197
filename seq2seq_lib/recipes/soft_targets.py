"""Soft targets: the probabilities of a trained model, for a model that learns from it.

A teacher gives more than the right symbol: how probable it holds every other one.

Axes: B batch, T target, V vocabulary, R rows.
"""

import hashlib
from collections.abc import Callable, Sequence
from functools import cached_property
from pathlib import Path
from typing import TypeVar

import torch
from jaxtyping import Float
from torch import Tensor

from seq2seq_lib.data import Batch, Batches, Pair, encode_source, pad_sources
from seq2seq_lib.files import sweep
from seq2seq_lib.interface import EncoderDecoder, evaluating
from seq2seq_lib.models.saved import (
    SavedModel,
    read_tensors,
    weights_of,
    write_tensors,
)
from seq2seq_lib.training.distributed import all_gather, map_over_ranks, rank
from seq2seq_lib.training.objective import Teacher

FORMAT = "seq2seq_lib soft targets 1"
LARGEST = 2_000_000_000
"""Bytes of soft targets that are kept in memory."""

Result = TypeVar("Result")


def fingerprint(teacher: EncoderDecoder, *more: object) -> str:
    """A short name for a teacher's weights, and for what else decides its labels."""
    digest = hashlib.sha256(repr(more).encode())
    for name, tensor in sorted(weights_of(teacher).items()):
        digest.update(name.encode())
        digest.update(tensor.flatten().cpu().view(torch.uint8).numpy().tobytes())
    return digest.hexdigest()[:12]


def log_probabilities(
    saved: SavedModel,
    outputs: Sequence[tuple[Sequence[str], Sequence[str]]],
    *,
    budget: int = 4096,
) -> list[float]:
    """How probable a model holds whole outputs, as logarithms.

    Processes that train together divide the outputs among them; all have to call it.

    Args:
        saved: a trained model.
        outputs: each behind its source.
        budget: positions that are computed together.
    """
    pairs = [
        Pair(
            encode_source(s, saved.source_vocabulary), saved.target_vocabulary.encode(t)
        )
        for s, t in outputs
    ]

    def total(batch: Batch, found: Float[Tensor, "B T V"]) -> list[float]:
        right = found.gather(-1, batch.target[..., None])[..., 0]  # B T
        return list(torch.where(batch.target_mask, right, 0).sum(dim=1).tolist())

    totals = [0.0] * len(pairs)
    for rows, found in _computed(saved.model, pairs, total, budget=budget):
        for row, one in zip(rows, found, strict=True):
            totals[row] = one
    return totals


def _computed(
    teacher: EncoderDecoder,
    pairs: Sequence[Pair],
    read: Callable[[Batch, Float[Tensor, "B T V"]], Result],
    *,
    budget: int,
) -> list[tuple[list[int], Result]]:
    """Rows that were computed together, with what was read from their outputs."""

    def compute(groups: Sequence[list[int]]) -> list[Result]:
        found = []
        with evaluating(teacher):
            for rows in groups:
                batch = Batch.from_pairs([pairs[row] for row in rows])
                batch = batch.to(teacher.device)
                found.append(read(batch, teacher(batch)))
        return found

    groups = Batches(pairs, budget=budget).plan(0) if pairs else []
    return list(zip(groups, map_over_ranks(compute, groups), strict=True))


class SoftTargets(Teacher):
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
        self.starts: dict[tuple[bytes, ...], int] = {}
        start = 0
        for pair in pairs:
            source, _ = pad_sources([pair.source])
            self.starts[_key(source[0], pair.target)] = start
            start += len(pair.target) + 1
        if start != len(table):
            raise ValueError(
                f"soft targets of {len(table):,} symbols, but the outputs have "
                f"{start:,}: they are of other outputs."
            )

    @cached_property
    def sha256(self) -> str:
        """Checksum of the table, by which a run knows its teacher again."""
        return hashlib.sha256(self.table.numpy().tobytes()).hexdigest()

    def __call__(self, batch: Batch) -> Float[Tensor, "B T V"]:
        """Look up the rows of a batch on the CPU; what stands at padding is any row."""
        rows = zip(
            batch.source,
            batch.source_mask.sum(dim=1).tolist(),
            batch.target.tolist(),
            batch.target_mask.sum(dim=1).tolist(),
            strict=True,
        )
        starts = [
            self.starts[_key(source[:length], target[: symbols - 1])]
            for source, length, target, symbols in rows
        ]
        place = torch.tensor(starts)[:, None] + torch.arange(batch.target.shape[1])
        return self.table[place.clamp(max=len(self.table) - 1)].float()  # B T V

    @classmethod
    def kept(
        cls, directory: Path, teacher: EncoderDecoder, pairs: Sequence[Pair]
    ) -> "SoftTargets":
        """What a file holds of this teacher and these pairs, or compute and write it.

        Raises:
            ValueError: the file is damaged.
        """
        name = fingerprint(teacher, [tuple(pair) for pair in pairs])
        path = directory / f"soft-targets-{name}.safetensors"
        if not all(all_gather(path.exists())):
            targets = cls.of(teacher, pairs)
            if rank() == 0:
                sweep(path)
                write_tensors(path, {"table": targets.table}, {"format": FORMAT})
            return targets
        tensors, _ = read_tensors(path, FORMAT)
        return cls(pairs, tensors["table"])

    @classmethod
    def of(
        cls, teacher: EncoderDecoder, pairs: Sequence[Pair], *, budget: int = 4096
    ) -> "SoftTargets":
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
        symbols = int(starts[-1])

        def real(batch: Batch, found: Float[Tensor, "B T V"]) -> Float[Tensor, "R V"]:
            size = 2 * symbols * found.shape[-1]
            if size > LARGEST:
                raise ValueError(
                    f"soft targets of {symbols:,} symbols would take "
                    f"{size:,} bytes, more than {LARGEST:,}: learn from fewer pairs, "
                    "or with a smaller vocabulary."
                )
            return found.exp().half()[batch.target_mask].cpu()

        computed = _computed(teacher, pairs, real, budget=budget)
        order = [row for rows, _ in computed for row in rows]
        places = [torch.arange(*starts[row : row + 2].tolist()) for row in order]
        found = torch.cat([one for _, one in computed])
        table = torch.empty_like(found)
        table[torch.cat(places)] = found
        return cls(pairs, table)


def _key(source: Tensor, target: list[int]) -> tuple[bytes, ...]:
    """What tells a pair from all others; the source is one of symbols or frames."""
    return source.contiguous().numpy().tobytes(), bytes(str(target), "ascii")
