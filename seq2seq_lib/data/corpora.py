"""The corpora of the course and their names."""

import dataclasses
from enum import StrEnum

from seq2seq_lib.data.cmudict import cmudict
from seq2seq_lib.data.examples import Corpus
from seq2seq_lib.data.multi30k import Direction, multi30k_corpus
from seq2seq_lib.data.pronalsyl import pronalsyl
from seq2seq_lib.data.toy import ToyTask, toy_corpus


class CorpusName(StrEnum):
    """The data a recipe can ask for."""

    CMUDICT = "cmudict-course"
    PRONALSYL = "pronalsyl"
    DE_EN = "multi30k-de-en"
    EN_DE = "multi30k-en-de"
    COPY = "toy-copy"
    COPY_60 = "toy-copy-60"
    REVERSE = "toy-reverse"
    SORT = "toy-sort"

    @property
    def metrics(self) -> tuple[str, ...]:
        """What is measured on this data."""
        translation = self.startswith("multi30k-")
        return ("bleu", "chrf") if translation else ("wer", "per")


def load_corpus(name: CorpusName) -> Corpus:
    """Read or make the corpus of this name."""
    match name:
        case CorpusName.CMUDICT:
            return cmudict()
        case CorpusName.PRONALSYL:
            return pronalsyl()
        case CorpusName.DE_EN | CorpusName.EN_DE:
            return multi30k_corpus(Direction(name.removeprefix("multi30k-")))
        case CorpusName.COPY_60:  # four letters, up to 60 of them
            long = toy_corpus(
                ToyTask.COPY, train=20_000, held_out=3_000, lengths=(1, 60), symbols=4
            )
            return dataclasses.replace(long, name=name.value)
        case _:
            return toy_corpus(ToyTask(name.removeprefix("toy-")))
