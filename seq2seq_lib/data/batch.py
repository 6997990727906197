"""Chapter 1: sequences of different lengths become rectangular tensors.

Axes: B batch, S source, T target, F features of a frame. Masks are ``True`` where a
real symbol or frame stands.
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, fields

import torch
from jaxtyping import Bool, Float, Int, Num
from torch import Tensor

from seq2seq_lib.data.examples import Pair
from seq2seq_lib.data.vocabulary import BOS, EOS, PAD
from seq2seq_lib.device import fetches_pinned
from seq2seq_lib.seeds import generator


def pad(sequences: Sequence[Sequence[int]]) -> Int[Tensor, "B S"]:
    """Fill the shorter rows with ``PAD`` at the end.

    >>> pad([[4, 5, 6], [7]])
    tensor([[4, 5, 6],
            [7, 0, 0]])
    """
    width = max(map(len, sequences))
    rows = [[*row, *[PAD] * (width - len(row))] for row in sequences]
    return torch.tensor(rows, dtype=torch.long)  # a row without numbers has no type


def pad_frames(
    sources: Sequence[Float[Tensor, "_ F"]],
) -> tuple[Float[Tensor, "B S F"], Bool[Tensor, "B S"]]:
    """Fill the shorter rows with zeros at the end, and mark what is real.

    >>> pad_frames([torch.ones(2, 1), torch.ones(1, 1)])[1]
    tensor([[ True,  True],
            [ True, False]])
    """
    lengths = torch.tensor([len(source) for source in sources])
    padded = torch.nn.utils.rnn.pad_sequence(list(sources), batch_first=True)
    return padded, torch.arange(padded.shape[1]) < lengths[:, None]


def pad_sources(
    sources: Sequence[Sequence[int] | Tensor],
) -> tuple[Num[Tensor, "B S *F"], Bool[Tensor, "B S"]]:
    """Sources as a model reads them, with their mask; symbols end with ``EOS``.

    Args:
        sources: numbers of symbols, or a tensor S F of frames, for each row.

    Raises:
        ValueError: there is none, one is empty, holds ``PAD`` or is of another kind.

    >>> pad_sources([[4, 5], [6]])[0]
    tensor([[4, 5, 2],
            [6, 2, 0]])
    """
    if not sources or not all(map(len, sources)):
        raise ValueError(
            f"{len(sources)} sources, {sum(not len(s) for s in sources)} of them empty:"
            " expected at least one, and at least one symbol or frame in each."
        )
    frames = [source for source in sources if isinstance(source, Tensor)]
    if frames:
        shapes = {tuple(source.shape[1:]) for source in frames}
        if len(frames) < len(sources) or len(shapes) > 1 or len(shapes.pop()) != 1:
            raise ValueError(
                "sources of different kinds: expected symbols in all of them, or "
                "frames of shape (length, features) with equally many features."
            )
        return pad_frames(frames)
    if any(PAD in source for source in sources):
        raise ValueError(
            f"a source holds {PAD}, the number of <pad>, which the masks would hide: "
            "leave it out, because a batch pads itself."
        )
    source = pad([[*source, EOS] for source in sources])
    return source, source != PAD


@dataclass(frozen=True)
class Batch:
    """Sources and targets, padded, with their masks.

    A source is a row of symbols, or of frames, vectors of F features. Symbols end with
    ``EOS``, so that the end has a position of its own, at which
    a decoder can look when it is time to stop. The decoder reads its target one symbol
    late: ``decoder_input`` begins with ``BOS``, ``target`` ends with ``EOS``.

    Attributes:
        source: numbers of the source symbols, ``EOS`` last, or frames.
        source_mask: ``True`` at real source positions, ``EOS`` included.
        decoder_input: ``BOS`` and the target without its end.
        target: what the decoder should say at each step, ``EOS`` last.
        target_mask: ``True`` at real target symbols, ``EOS`` included.

    Raises:
        ValueError: shapes disagree, or a row has no real symbol.
    """

    source: Num[Tensor, "B S *F"]
    source_mask: Bool[Tensor, "B S"]
    decoder_input: Int[Tensor, "B T"]
    target: Int[Tensor, "B T"]
    target_mask: Bool[Tensor, "B T"]

    def __post_init__(self) -> None:
        for ids, mask in (("source", "source_mask"), ("target", "target_mask")):
            shape, mask_shape = getattr(self, ids).shape, getattr(self, mask).shape
            axes = (2, 3) if ids == "source" else (2,)
            if len(shape) not in axes or shape[:2] != mask_shape or 0 in shape:
                raise ValueError(
                    f"{ids} is {tuple(shape)} and {mask} is {tuple(mask_shape)}: "
                    "expected the same two axes, batch and length, neither of them 0."
                )
            if getattr(self, mask).dtype is not torch.bool:
                raise ValueError(
                    f"{mask} has the type {getattr(self, mask).dtype}: expected "
                    "torch.bool, True at real symbols."
                )
        if self.decoder_input.shape != self.target.shape:
            raise ValueError(
                f"decoder_input is {tuple(self.decoder_input.shape)}, target is "
                f"{tuple(self.target.shape)}: both need the same shape."
            )
        if len(self.source) != len(self.target):
            raise ValueError(
                f"{len(self.source)} sources but {len(self.target)} targets: a batch "
                "needs as many of one as of the other."
            )
        # Reading values from a GPU would stall it; batches enter on the CPU.
        if self.source.device.type == "cpu":
            self._check_rows()

    def _check_rows(self) -> None:
        for name in ("source_mask", "target_mask"):
            mask = getattr(self, name)
            holes = (
                (mask[:, 1:] & ~mask[:, :-1]).any(dim=1).nonzero().flatten().tolist()
            )
            if holes:
                raise ValueError(
                    f"{name} has a real symbol behind a hidden one in row {holes[0]}: "
                    "padding belongs at the end of a row."
                )
            empty = (~mask.any(dim=1)).nonzero().flatten().tolist()
            if empty:
                raise ValueError(
                    f"{name} hides every symbol of row {empty[0]}: a row needs at "
                    "least one real symbol. Leave empty sequences out of the batch."
                )

    @classmethod
    def from_pairs(cls, pairs: Sequence[Pair]) -> "Batch":
        """Add the special symbols, pad, and build the masks.

        Raises:
            ValueError: there are no pairs, or one has an empty source or target, or
                holds ``PAD``.

        >>> Batch.from_pairs([Pair([4], [5, 6]), Pair([4, 5], [7])]).decoder_input
        tensor([[1, 5, 6],
                [1, 7, 0]])
        """
        if not pairs:
            raise ValueError("a batch needs at least one pair, got none.")
        for row, pair in enumerate(pairs):
            empty = "source" if not len(pair.source) else "target"
            if not len(pair.source) or not pair.target:
                raise ValueError(
                    f"pair {row} has an empty {empty} ({pair.source} → {pair.target}): "
                    "leave it out; there is nothing to learn."
                )
            if PAD in pair.target or (type(pair.source) is list and PAD in pair.source):
                raise ValueError(
                    f"pair {row} ({pair.source} → {pair.target}) holds {PAD}, the "
                    "number of <pad>, which the masks would hide: leave it out, "
                    "because a batch pads itself."
                )
        source, source_mask = pad_sources([source for source, _ in pairs])
        target = pad([[*target, EOS] for _, target in pairs])
        decoder_input = pad([[BOS, *target] for _, target in pairs])
        return cls(source, source_mask, decoder_input, target, target != PAD)

    def __len__(self) -> int:
        return len(self.source)

    @property
    def symbols(self) -> int:
        """How many positions the larger side has, padding included."""
        return len(self) * max(self.source.shape[1], self.target.shape[1])

    def to(self, device: torch.device | str) -> "Batch":
        """The same batch on another device, or itself if it is there already."""
        device = torch.device(device)
        if self.source.device == device:
            return self
        tensors = [getattr(self, f.name) for f in fields(self)]
        if pins := self.source.device.type == "cpu" and fetches_pinned(device):
            tensors = [tensor.pin_memory() for tensor in tensors]
        # A copy back to the CPU has to be waited for: who reads it would not know when.
        return Batch(*(tensor.to(device, non_blocking=pins) for tensor in tensors))


class Batches:
    """Batches of similar lengths, in an order that depends on seed and epoch only.

    Pairs are sorted by length, those of equal length in a new random order every
    epoch, and cut into runs that fit the budget; then the runs are shuffled. Because
    nothing but ``seed`` and ``epoch`` decides the order, a resumed run sees the
    batches it would have seen.

    Args:
        pairs: the training pairs.
        budget: how many positions a batch may have, padding included, counted on
            its longer side.
        seed: of the shuffling.

    Raises:
        ValueError: there are no pairs, or a pair alone exceeds the budget.
    """

    def __init__(self, pairs: Sequence[Pair], *, budget: int, seed: int = 0) -> None:
        if not pairs:
            raise ValueError("no pairs to make batches of.")
        self.pairs = pairs
        self.budget = budget
        self.seed = seed
        # EOS adds one position to a side of symbols.
        self.lengths = torch.tensor(
            [[len(t) + 1, len(s) + (type(s) is list)] for s, t in pairs]
        )
        longest = int(self.lengths.max())
        if longest > budget:
            raise ValueError(
                f"budget={budget} symbols cannot hold a pair of length {longest}: "
                f"use at least {longest}, or drop the longest pairs."
            )

    def plan(self, epoch: int) -> list[list[int]]:
        """Which pairs stand together, in the order of this epoch."""
        random = generator(self.seed, epoch)
        order = torch.randperm(len(self.pairs), generator=random)
        for side in (1, 0):  # by source, then by target, which the last sort puts first
            order = order[self.lengths[order, side].argsort(stable=True)]
        groups: list[list[int]] = [[]]
        longest = 0
        for row, length in zip(
            order.tolist(), self.lengths[order].amax(dim=1).tolist(), strict=True
        ):
            longest = max(longest, length)
            if groups[-1] and longest * (len(groups[-1]) + 1) > self.budget:
                groups.append([])
                longest = length
            groups[-1].append(row)
        shuffled = torch.randperm(len(groups), generator=random).tolist()
        return [groups[i] for i in shuffled]

    def epoch(self, number: int, *, start: int = 0) -> Iterator[Batch]:
        """All pairs once, batch by batch, or from the batch ``start`` on."""
        for rows in self.plan(number)[start:]:
            yield Batch.from_pairs([self.pairs[row] for row in rows])


def padding_share(batches: Iterable[Batch]) -> float:
    """The share of positions, source and target together, that hold only padding.

    >>> padding_share([Batch.from_pairs([Pair([4], [4]), Pair([4, 4, 4], [4, 4, 4])])])
    0.25
    """
    masks = [mask for b in batches for mask in (b.source_mask, b.target_mask)]
    real = sum(int(mask.sum()) for mask in masks)
    return 1 - real / sum(mask.numel() for mask in masks)
