"""Chapters 5, 6 and 12: outputs of a model on a corpus, and how good they are."""

from seq2seq_lib.evaluation.alignment import (
    AlignmentScore,
    alignment_score,
    diagonal_baseline,
)
from seq2seq_lib.evaluation.decoding import (
    GREEDY,
    best_outputs,
    decode,
    encode_sources,
    find_outputs,
    held_out_loss,
    measure,
)

__all__ = [
    "GREEDY",
    "AlignmentScore",
    "alignment_score",
    "best_outputs",
    "decode",
    "diagonal_baseline",
    "encode_sources",
    "find_outputs",
    "held_out_loss",
    "measure",
]
