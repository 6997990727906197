"""What a task is: its metrics, its outputs as text, and what its card says."""

from collections.abc import Mapping
from typing import Any

from seq2seq_lib.data.examples import TaskName
from seq2seq_lib.tasks.pronunciation import Pronunciation
from seq2seq_lib.tasks.sentences import SentenceTask
from seq2seq_lib.tasks.symbols import SymbolTask
from seq2seq_lib.tasks.task import About, Task
from seq2seq_lib.tasks.toy import Toy
from seq2seq_lib.tasks.translation import Translation

TASKS: Mapping[TaskName, Task[Any]] = {
    TaskName.PRONUNCIATION: Pronunciation(),
    TaskName.TRANSLATION: Translation(),
    TaskName.TOY: Toy(),
}
"""The task of every name: ``TASKS[corpus.task]``, ``TASKS[saved.task]``."""

__all__ = [
    "TASKS",
    "About",
    "Pronunciation",
    "SentenceTask",
    "SymbolTask",
    "Task",
    "Toy",
    "Translation",
]
