"""Chapter 1: from symbols to batches, and the tasks of the course."""

from seq2seq_lib.data.alignments import Alignment, letter_alignments
from seq2seq_lib.data.batch import Batch, Batches, pad, pad_sources, padding_share
from seq2seq_lib.data.cmudict import PHONEMES, VOWELS, cmudict
from seq2seq_lib.data.corpora import CorpusName, load_corpus
from seq2seq_lib.data.download import RemoteFile, fetch
from seq2seq_lib.data.examples import (
    Corpus,
    Example,
    Pair,
    TaskName,
    encode_pairs,
    encode_source,
    source_name,
)
from seq2seq_lib.data.frames import Frames, Source
from seq2seq_lib.data.frequent_words import frequent_words
from seq2seq_lib.data.invented_words import invented_words
from seq2seq_lib.data.multi30k import Direction, Multi30kPart, multi30k, multi30k_corpus
from seq2seq_lib.data.pronalsyl import pronalsyl
from seq2seq_lib.data.subwords import SubwordVocabulary
from seq2seq_lib.data.surnames import surnames
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
    "CorpusName",
    "Direction",
    "Example",
    "Frames",
    "Multi30kPart",
    "Pair",
    "RemoteFile",
    "Source",
    "SubwordVocabulary",
    "TaskName",
    "ToyTask",
    "Vocabulary",
    "cmudict",
    "encode_pairs",
    "encode_source",
    "fetch",
    "frequent_words",
    "invented_words",
    "letter_alignments",
    "load_corpus",
    "multi30k",
    "multi30k_corpus",
    "pad",
    "pad_sources",
    "padding_share",
    "pronalsyl",
    "source_name",
    "surnames",
    "toy_corpus",
    "toy_examples",
    "toy_vocabulary",
]
