"""Chapter 6: whether attention weights are high at the letters that make a sound."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from seq2seq_lib.data.alignments import Alignment


@dataclass(frozen=True)
class AlignmentScore:
    """How often the largest weight is at a letter of the sound, beside two yardsticks.

    Attributes:
        share: of phonemes whose highest-weighted letter is among those aligned to it.
        diagonal: the same share for a straight line from the first letter to the last.
        shifted: the best share when the same number is added to every position, because
            a bidirectional encoder may keep a letter's information beside it.
        shift: that number; positive if the weights lag behind.
    """

    share: float
    diagonal: float
    shifted: float
    shift: int


def alignment_score(
    weights: Tensor | Sequence[Tensor | Sequence[Sequence[float]]],
    alignments: Sequence[Alignment],
    *,
    largest_shift: int = 2,
) -> AlignmentScore:
    """Score attention against the letters that make each sound.

    Args:
        weights: for every word a T×S matrix, a row of weights for each phoneme. Rows
            after the last phoneme and columns after the last letter, such as those of
            ``EOS`` and padding, are ignored.
        alignments: for every word the right letters, of the pronunciation that the
            rows of its matrix belong to.
        largest_shift: how far the best constant shift is searched, in both directions.

    Raises:
        ValueError: nothing to score, different numbers of matrices and alignments, or a
            matrix too small for its word.

    >>> box = Alignment("box", ("B", "AA", "K", "S"), ((0,), (1,), (2,), (2,)))
    >>> weights = torch.tensor([[9, 1, 1], [9, 2, 1], [1, 1, 9], [1, 2, 3]])
    >>> alignment_score([weights], [box]).share
    0.75
    """
    if len(weights) != len(alignments):
        raise ValueError(
            f"{len(weights)} weight matrices for {len(alignments)} alignments: "
            "expected one for each word."
        )
    if largest_shift < 0:
        raise ValueError(f"largest_shift={largest_shift}: expected 0 letters or more.")
    largest = [_largest(m, a) for m, a in zip(weights, alignments, strict=True)]
    shares = {
        shift: _hits([[at + shift for at in row] for row in largest], alignments)
        for shift in range(-largest_shift, largest_shift + 1)
    }
    best = max(shares, key=lambda shift: (shares[shift], -abs(shift)))
    return AlignmentScore(shares[0], diagonal_baseline(alignments), shares[best], best)


def diagonal_baseline(alignments: Sequence[Alignment]) -> float:
    """The alignment score of weights that are all at letter ⌊(t+½)·S/T⌋ for phoneme t.

    Raises:
        ValueError: there are no alignments.
    """
    line = [
        [(2 * t + 1) * len(word) // (2 * len(sounds)) for t in range(len(sounds))]
        for word, sounds, _ in alignments
    ]
    return _hits(line, alignments)


def _largest(
    matrix: Tensor | Sequence[Sequence[float]], alignment: Alignment
) -> list[int]:
    """The position of the largest weight for each phoneme."""
    weights = torch.as_tensor(matrix)
    T, S = len(alignment.phonemes), len(alignment.word)
    if weights.ndim != 2 or weights.shape[0] < T or weights.shape[1] < S:
        raise ValueError(
            f"the weights of {alignment.word!r} have shape {tuple(weights.shape)}: "
            f"expected two axes, with {T} or more rows for its phonemes "
            f"{' '.join(alignment.phonemes)} and {S} or more columns for its letters."
        )
    positions: list[int] = weights[:T, :S].argmax(dim=1).tolist()
    return positions


def _hits(found: Sequence[Sequence[int]], alignments: Sequence[Alignment]) -> float:
    """The share of positions that are among the letters aligned to their phoneme."""
    hits = [
        position in letters
        for positions, alignment in zip(found, alignments, strict=True)
        for position, letters in zip(positions, alignment.letters, strict=True)
    ]
    if not hits:
        raise ValueError("no alignments to score: expected at least one word.")
    return sum(hits) / len(hits)
