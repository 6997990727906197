"""Chapter 1: how far outputs are from right, measured the same way everywhere.

Outputs are sequences of symbols, and every output has a list of references, because a
word may have several pronunciations. Rates are shares from 0 up, not percentages.
"""

from seq2seq_lib.metrics.errors import (
    Errors,
    Symbols,
    bootstrap_interval,
    count_errors,
    edit_distance,
    exact_match,
    perplexity,
    phoneme_error_rate,
    word_error_rate,
)
from seq2seq_lib.metrics.looking import (
    AlignmentScore,
    alignment_score,
    diagonal_baseline,
)
from seq2seq_lib.metrics.sentences import Score, bleu, chrf, word_bleu

__all__ = [
    "AlignmentScore",
    "Errors",
    "Score",
    "Symbols",
    "alignment_score",
    "bleu",
    "bootstrap_interval",
    "chrf",
    "count_errors",
    "diagonal_baseline",
    "edit_distance",
    "exact_match",
    "perplexity",
    "phoneme_error_rate",
    "word_bleu",
    "word_error_rate",
]
