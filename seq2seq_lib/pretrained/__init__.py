"""Models that come with the library, their stored results, and export to others."""

from seq2seq_lib.pretrained.loading import (
    Card,
    PretrainedModel,
    load,
    names,
    open_model,
    read_card,
)
from seq2seq_lib.pretrained.publishing import publish
from seq2seq_lib.pretrained.stored_results import read_result, result_names, result_text

__all__ = [
    "Card",
    "PretrainedModel",
    "load",
    "names",
    "open_model",
    "publish",
    "read_card",
    "read_result",
    "result_names",
    "result_text",
]
