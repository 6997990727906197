"""Chapter 6: which letters make which sound, so that attention can be scored.

The PyPI package ``gruut-lang-en`` (MIT) holds an automatic alignment of nearly every
word of the CMU dictionary. ``knight`` reads ``k|n}n i}ˈaɪ g|h}_ t}t``: letters stand
before the brace, sounds behind it, and ``_`` is silence. The database is read without
importing the package.
"""

import sqlite3
from collections.abc import Iterable
from contextlib import closing
from typing import NamedTuple

from seq2seq_lib.data.cmudict import PHONEMES
from seq2seq_lib.data.download import installed_file

SHA256 = "f736287913499c93b493b42963b66f74d59e0c083d9bc6d914c1096bc27658fc"

# The International Phonetic Alphabet of the database, in the order of PHONEMES.
_IPA = (
    *("ɑ", "æ", "ə", "ɔ", "aʊ", "aɪ", "b", "t͡ʃ", "d", "ð", "ɛ", "ɚ", "eɪ"),
    *("f", "ɡ", "h", "ɪ", "i", "d͡ʒ", "k", "l", "m", "n", "ŋ", "oʊ", "ɔɪ", "p"),
    *("ɹ", "s", "ʃ", "t", "θ", "ʊ", "u", "v", "w", "j", "z", "ʒ"),
)
ARPABET = dict(zip(_IPA, PHONEMES, strict=True)) | {"ʌ": "AH"}  # ə when stressed


class Alignment(NamedTuple):
    """One pronunciation of a word, with the letters behind every sound.

    Attributes:
        word: its letters.
        phonemes: its sounds, as in the CMU dictionary without stress.
        letters: for each sound the positions of its letters, counted from 0. A silent
            letter belongs to no sound; a letter such as x may belong to two.
    """

    word: str
    phonemes: tuple[str, ...]
    letters: tuple[tuple[int, ...], ...]


def letter_alignments(words: Iterable[str]) -> dict[str, Alignment]:
    """Look up which letters make which sound.

    Args:
        words: in lower case.

    Returns:
        the alignment of every word that has a readable one.

    Raises:
        OSError: the package ``gruut-lang-en`` is not installed.
        ValueError: another version of it is installed.
    """
    wanted = set(words)
    path = installed_file("gruut_lang_en", "lexicon.db", sha256=SHA256)
    # immutable: SQLite neither writes nor locks, whoever owns the directory
    address = f"{path.absolute().as_uri()}?mode=ro&immutable=1"
    with closing(sqlite3.connect(address, uri=True)) as database:
        rows = database.execute("SELECT word, alignment FROM g2p_alignments")
        read = (read_alignment(word, text) for word, text in rows if word in wanted)
        return {found.word: found for found in read if found}


def read_alignment(word: str, text: str) -> Alignment | None:
    """Read one entry of the database.

    Args:
        word: its letters.
        text: groups of letters and sounds, as in ``x}k|s``.

    Returns:
        the alignment, or ``None`` if ``text`` has another form, an unknown sound or
        other letters than ``word``.

    >>> read_alignment("knight", "k|n}n i}ˈaɪ g|h}_ t}t")
    Alignment(word='knight', phonemes=('N', 'AY', 'T'), letters=((0, 1), (2,), (5,)))
    """
    phonemes: list[str] = []
    letters: list[tuple[int, ...]] = []
    spelled = ""
    for group in text.split():
        before, _, behind = group.partition("}")
        start, spelled = len(spelled), spelled + before.replace("|", "")
        sounds = [ARPABET.get(s.lstrip("ˈˌ"), "") for s in behind.split("|")]
        if behind == "_":
            sounds = []
        if not all(sounds):
            return None
        phonemes += sounds
        letters += [tuple(range(start, len(spelled)))] * len(sounds)
    if spelled != word or not phonemes:
        return None
    return Alignment(word, tuple(phonemes), tuple(letters))
