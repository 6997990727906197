import base64
import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2seq_lib.data.subwords import SubwordVocabulary
from seq2seq_lib.data.vocabulary import BOS, EOS, PAD, SPECIAL, UNK, Vocabulary
from seq2seq_lib.models.saved import read_vocabulary

TEXT = [
    "Zwei Hunde laufen über die Wiese.",
    "Two dogs run across the meadow.",
    "Ein Hund läuft, eine Frau lacht.",
    "A dog runs, a woman laughs.",
] * 5


@pytest.fixture(scope="module")
def pieces():
    return SubwordVocabulary.train(TEXT, size=80)


def test_the_special_symbols_have_the_same_numbers_everywhere(pieces):
    assert len(pieces) == 80
    assert pieces.symbols[:4] == SPECIAL
    assert pieces.decode([PAD, BOS, EOS, UNK]) == list(SPECIAL)
    assert not {PAD, BOS, EOS, UNK} & set(pieces.encode(" ".join(TEXT)))


@given(st.lists(st.sampled_from([*" ".join(TEXT)]), max_size=30).map("".join))
def test_text_comes_back_with_single_spaces(pieces, text):
    assert pieces.text(pieces.encode(text)) == " ".join(text.split())


def test_the_first_join_is_the_most_frequent_pair():
    # q and z stand together six times, every other pair once
    vocabulary = SubwordVocabulary.train(["qz xqz yqz", "wqz vqz uqz"], size=14)
    assert vocabulary.symbols[4] == "qz"


def test_frequent_words_are_one_piece_and_unseen_ones_several(pieces):
    assert pieces.decode(pieces.encode("Hund")) == ["▁Hund"]
    assert len(pieces.encode("sunshine")) > 2


def test_text_may_come_in_parts(pieces):
    assert pieces.encode(("Ein ", "Hund")) == pieces.encode("Ein Hund")
    assert pieces.encode(tuple("Ein Hund")) == pieces.encode("Ein Hund")


def test_both_ways_to_write_an_umlaut_are_one(pieces):
    apart = unicodedata.normalize("NFD", "läuft über")
    assert apart != "läuft über"
    assert pieces.encode(apart, strict=True) == pieces.encode("läuft über")


def test_characters_never_seen(pieces):
    assert UNK in pieces.encode("Hund 漢")
    assert pieces.text(pieces.encode("Ein 漢 Hund")) == "Ein Hund"
    with pytest.raises(ValueError, match=r"unknown characters \['漢'\] in 'Hund 漢'"):
        pieces.encode("Hund 漢", strict=True)
    with pytest.raises(ValueError, match=r"numbers \[80\]: expected 0 to 79"):
        pieces.text([80])


def test_the_same_text_gives_the_same_model(pieces):
    assert SubwordVocabulary.train(iter(TEXT), size=80).model == pieces.model


def test_json_brings_back_either_kind(pieces, tmp_path):
    assert read_vocabulary(pieces.to_json()) == pieces
    letters = Vocabulary("abc")
    assert read_vocabulary(letters.to_json()) == letters
    pieces.save(tmp_path / "pieces.json")
    assert SubwordVocabulary.load(tmp_path / "pieces.json") == pieces


def test_equal_only_to_the_same_model(pieces):
    other = SubwordVocabulary.train(TEXT, size=79)
    assert pieces != other
    assert pieces != Vocabulary(pieces.symbols[4:])
    assert Vocabulary(pieces.symbols[4:]) != pieces
    assert len({pieces, other, SubwordVocabulary(pieces.model)}) == 2


@pytest.mark.parametrize(
    "text, complaint",
    [
        ('{"kind": "bytes"}', "of the kind 'bytes': expected 'subwords'"),
        ('{"model": ""}', "no subword vocabulary"),
        ('{"kind": "subwords"}', "no subword vocabulary"),
        ('{"kind": "subwords", "model": "?"}', "no subword vocabulary"),
        ('{"kind": "subwords", "model": "YWJj"}', "3 bytes are no sentencepiece"),
        ("{", "no subword vocabulary"),
        ("[1]", "JSON list of symbols"),
    ],
)
def test_other_json_is_refused(text, complaint):
    with pytest.raises(ValueError, match=complaint):
        read_vocabulary(text)


def test_a_model_with_other_special_symbols_is_refused(pieces):
    stored = base64.b64decode(json.loads(pieces.to_json())["model"])
    with pytest.raises(ValueError, match="first pieces are"):
        SubwordVocabulary(stored.replace(b"<bos>", b"<bot>"))


def test_too_little_text():
    with pytest.raises(ValueError, match="no 500 pieces can be learned"):
        SubwordVocabulary.train(["ab"], size=500)
