import sys

import needs
import pytest

from seq2seq_lib.data.alignments import (
    ARPABET,
    Alignment,
    letter_alignments,
    read_alignment,
)
from seq2seq_lib.data.cmudict import PHONEMES, read_dictionary
from seq2seq_lib.evaluation import diagonal_baseline


def test_silent_letters_and_a_letter_with_two_sounds():
    assert read_alignment("knight", "k|n}n i}ˈaɪ g|h}_ t}t") == Alignment(
        "knight", ("N", "AY", "T"), ((0, 1), (2,), (5,))
    )
    assert read_alignment("box", "b}b o}ˈɑ x}k|s") == Alignment(
        "box", ("B", "AA", "K", "S"), ((0,), (1,), (2,), (2,))
    )
    assert read_alignment("union", "u}j|ˌu n}n i}j o}ə n}n") == Alignment(
        "union", ("Y", "UW", "N", "Y", "AH", "N"), ((0,), (0,), (1,), (2,), (3,), (4,))
    )


@pytest.mark.parametrize(
    "word, text",
    [
        ("no", ""),
        ("no", "n}n"),
        ("no", "n}n o}ˈoʊ t}t"),
        ("no", "n}n ooʊ"),
        ("no", "n}n o}x"),
        ("no", "n}n o}"),
        ("no", "n}n o}ˈoʊ|"),
        ("no", "n}_ o}_"),
    ],
)
def test_what_cannot_be_read_is_left_out(word, text):
    assert read_alignment(word, text) is None


def test_every_sound_has_a_sign():
    assert set(ARPABET.values()) == set(PHONEMES)


@pytest.fixture(scope="module")
def dictionary():
    needs.package("gruut_lang_en", "cmudict")
    return read_dictionary()


@pytest.fixture(scope="module")
def alignments(dictionary):
    return letter_alignments(dictionary)


@pytest.mark.usefixtures("dictionary")
class TestTheDatabase:
    def test_words_are_looked_up(self):
        found = letter_alignments(["knight", "rate", "qqqq", "knight"])
        assert set(found) == {"knight", "rate"}
        assert found["rate"] == Alignment("rate", ("R", "EY", "T"), ((0,), (1,), (2,)))
        assert letter_alignments([]) == {}

    def test_the_package_is_not_imported(self, alignments):
        assert "gruut_lang_en" not in sys.modules

    def test_nearly_every_word_is_there(self, alignments, dictionary):
        assert len(alignments) > 0.98 * len(dictionary)

    def test_positions_are_in_the_word_and_never_go_back(self, alignments):
        for word, alignment in alignments.items():
            assert alignment.word == word
            assert len(alignment.letters) == len(alignment.phonemes)
            flat = [position for letters in alignment.letters for position in letters]
            assert set(flat) <= set(range(len(word)))
            starts = [letters[0] for letters in alignment.letters]
            assert starts == sorted(starts)

    def test_the_sounds_are_those_of_the_dictionary(self, alignments, dictionary):
        """A wrong sign in the table would cost whole percents."""
        agree = sum(a.phonemes in dictionary[word] for word, a in alignments.items())
        assert 0.93 < agree / len(alignments) < 0.95

    @pytest.mark.parametrize("phoneme", PHONEMES)
    def test_each_sound_agrees_with_the_dictionary(
        self, phoneme, alignments, dictionary
    ):
        """Of the words said with a sound here, nearly all have it in the dictionary."""
        here = [word for word, a in alignments.items() if phoneme in a.phonemes]
        there = sum(any(phoneme in p for p in dictionary[word]) for word in here)
        assert there > 0.9 * len(here)

    def test_the_diagonal_is_right_for_about_78_percent(self, alignments):
        assert 0.775 < diagonal_baseline(list(alignments.values())) < 0.795
