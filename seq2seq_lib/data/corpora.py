"""The corpora of the course and their names."""

import dataclasses
from enum import StrEnum

from seq2seq_lib.data.cmudict import cmudict
from seq2seq_lib.data.download import RemoteFile
from seq2seq_lib.data.examples import Corpus, TaskName
from seq2seq_lib.data.multi30k import FILES, Direction, multi30k_corpus
from seq2seq_lib.data.pronalsyl import TEST, TRAIN, pronalsyl
from seq2seq_lib.data.toy import ToyTask, toy_corpus


class CorpusName(StrEnum):
    """The data a recipe can ask for, each with the task that it is made for.

    >>> CorpusName("pronalsyl").task
    <TaskName.PRONUNCIATION: 'pronunciation'>
    """

    task: TaskName

    def __new__(cls, value: str, *tasks: TaskName) -> "CorpusName":
        """A member, equal to its name, that knows its one task."""
        member = str.__new__(cls, value)
        member._value_ = value
        (member.task,) = tasks
        return member

    CMUDICT = "cmudict-course", TaskName.PRONUNCIATION
    PRONALSYL = "pronalsyl", TaskName.PRONUNCIATION
    DE_EN = "multi30k-de-en", TaskName.TRANSLATION
    EN_DE = "multi30k-en-de", TaskName.TRANSLATION
    COPY = "toy-copy", TaskName.TOY
    COPY_60 = "toy-copy-60", TaskName.TOY
    REVERSE = "toy-reverse", TaskName.TOY
    SORT = "toy-sort", TaskName.TOY


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


def remote_files(name: CorpusName) -> tuple[RemoteFile, ...]:
    """What has to be downloaded before the corpus of this name can be read."""
    match name:
        case CorpusName.PRONALSYL:
            return TRAIN, TEST
        case CorpusName.DE_EN | CorpusName.EN_DE:
            return tuple(file for pair in FILES.values() for file in pair)
        case _:
            return ()
