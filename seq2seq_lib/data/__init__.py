"""Chapter 1: from symbols to batches, and the tasks of the course."""

from seq2seq_lib.data.alignments import Alignment, letter_alignments
from seq2seq_lib.data.batch import (
    Batch,
    Batches,
    Corpus,
    Example,
    Pair,
    encode_pairs,
    pad,
    padding_share,
)
from seq2seq_lib.data.cmudict import PHONEMES, VOWELS, cmudict
from seq2seq_lib.data.download import RemoteFile, fetch
from seq2seq_lib.data.multi30k import Multi30kPart, multi30k
from seq2seq_lib.data.pronalsyl import pronalsyl
from seq2seq_lib.data.toy import ToyTask, toy_corpus, toy_examples, toy_vocabulary
from seq2seq_lib.data.vocabulary import BOS, EOS, PAD, SPECIAL, UNK, Vocabulary

__all__ = [
    "BOS",
    "EOS",
    "PAD",
    "PHONEMES",
    "SPECIAL",
    "UNK",
    "VOWELS",
    "Alignment",
    "Batch",
    "Batches",
    "Corpus",
    "Example",
    "Multi30kPart",
    "Pair",
    "RemoteFile",
    "ToyTask",
    "Vocabulary",
    "cmudict",
    "encode_pairs",
    "fetch",
    "letter_alignments",
    "multi30k",
    "pad",
    "padding_share",
    "pronalsyl",
    "toy_corpus",
    "toy_examples",
    "toy_vocabulary",
]
