"""Chapter 1: from the letters of a word to its sounds."""

from collections.abc import Callable, Mapping
from itertools import pairwise
from typing import ClassVar

from seq2seq_lib.data.examples import Example
from seq2seq_lib.tasks.symbols import SymbolTask
from seq2seq_lib.tasks.task import About


class Pronunciation(SymbolTask):
    """Any pronunciation of the dictionary is right."""

    about = About(
        task="pronunciation of English words: letters to ARPAbet phonemes without "
        "stress",
        data="The CMU Pronouncing Dictionary, Carnegie Mellon University",
        licence="weights: Apache-2.0; data: BSD-2-Clause",
        limits="North American English. Many entries are names, some of them foreign. "
        "One word at a time, so words spelled alike are not told apart; no digits or "
        "abbreviations.",
    )
    # told from the spelling and the first pronunciation; many words are of no kind
    kinds: ClassVar[Mapping[str, Callable[[Example], bool]]] = {
        "ends in s": lambda word: word.source[-1] == "s",
        "ends in ed or ing": lambda word: "".join(word.source).endswith(("ed", "ing")),
        "has an apostrophe": lambda word: "'" in word.source,
        "has a doubled letter": lambda w: any(a == b for a, b in pairwise(w.source)),
        "a sound for each letter": lambda word: _silent(word) == 0,
        "two letters more than sounds": lambda word: _silent(word) >= 2,
        "more sounds than letters": lambda word: _silent(word) < 0,
        "several pronunciations": lambda word: len(word.references) > 1,
    }


def _silent(word: Example) -> int:
    """How many letters a word has more than its first pronunciation has sounds."""
    return len(word.source) - len(word.references[0])
