"""Outputs of a model on a corpus, how good they are, and checks of readers' models."""

from seq2seq_lib.evaluation.alignment import (
    AlignmentScore,
    alignment_score,
    diagonal_baseline,
)
from seq2seq_lib.evaluation.blank_page import blank_page
from seq2seq_lib.evaluation.contract import check_contract
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
    "blank_page",
    "check_contract",
    "decode",
    "diagonal_baseline",
    "encode_sources",
    "find_outputs",
    "held_out_loss",
    "measure",
]
