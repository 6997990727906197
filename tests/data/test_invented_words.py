import pytest

from seq2seq_lib.data import invented_words
from seq2seq_lib.data.invented_words import LONGEST, LOOKS_BACK

WORDS = "station nation national ration rational passion nations stationary".split()


def test_every_stretch_of_letters_was_seen():
    marked = [f"{'^' * LOOKS_BACK}{word}$" for word in WORDS]
    size = LOOKS_BACK + 1
    seen = {m[i : i + size] for m in marked for i in range(len(m) - LOOKS_BACK)}
    found = invented_words(WORDS, count=5)
    for word in found:
        text = f"{'^' * LOOKS_BACK}{word}$"
        assert {text[i : i + size] for i in range(len(text) - LOOKS_BACK)} <= seen
    assert "stational" in invented_words(WORDS, count=5, known=WORDS)


def test_each_comes_once_and_none_is_known():
    found = invented_words(WORDS, count=5, known=WORDS)
    assert len(found) == len(set(found)) == 5
    assert not set(found) & set(WORDS)
    assert all(len(word) <= LONGEST for word in found)


def test_the_seed_decides():
    first = invented_words(WORDS, count=4, known=WORDS)
    assert invented_words(WORDS, count=4, known=WORDS) == first
    others = [invented_words(WORDS, count=4, known=WORDS, seed=s) for s in range(1, 9)]
    assert any(other != first for other in others)


def test_what_follows_often_is_drawn_often():
    words = ["maxa"] * 9 + ["maxo"]
    draws = [invented_words(words, count=1, seed=seed) for seed in range(200)]
    assert 150 < draws.count(["maxa"]) < 200


def test_letters_without_an_end_are_cut():
    # eeee may go on or end, so some words grow beyond any length
    found = invented_words(["e" * 30], count=5)
    assert all(len(word) <= LONGEST for word in found)


@pytest.mark.parametrize("words, count", [([], 1), (["knight"], 1), (WORDS, 200)])
def test_more_than_can_be_invented(words, count):
    with pytest.raises(ValueError, match="new ones, not"):
        invented_words(words, count=count, known=words)
