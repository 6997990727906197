import gzip
import importlib

import needs
import pytest

from seq2seq_lib.data.multi30k import (
    FILES,
    Direction,
    Multi30kPart,
    multi30k,
    multi30k_corpus,
)
from seq2seq_lib.data.vocabulary import UNK


@pytest.mark.parametrize(
    "part, size, beginning",
    [
        ("train", 29_000, ("Zwei junge weiße Männer", "Two young, White males")),
        ("val", 1_014, ("Eine Gruppe von Männern", "A group of men")),
        ("test2016", 1_000, ("Ein Mann mit einem", "A man in an orange hat")),
    ],
)
def test_the_parts(part, size, beginning):
    part = Multi30kPart(part)
    needs.corpus("multi30k-de-en")
    pairs = multi30k(part)
    assert len(pairs) == size
    for pair in pairs:
        for sentence in pair:
            assert sentence
            assert sentence == sentence.strip()
    for sentence, start in zip(pairs[0], beginning, strict=True):
        assert sentence.startswith(start)


@pytest.fixture
def write(tmp_path, monkeypatch):
    """Small files in place of the German and English ones."""

    def write(german, english):
        paths = {}
        for file, text in zip(FILES[Multi30kPart.VAL], (german, english), strict=True):
            paths[file] = tmp_path / file.name.replace("/", "-")
            paths[file].write_bytes(gzip.compress(text.encode()))
        module = importlib.import_module("seq2seq_lib.data.multi30k")
        monkeypatch.setattr(module, "fetch", paths.__getitem__)

    return write


def test_sentences_are_stripped_and_paired(write):
    write("Grüß Gott \nZwei\u2028Zeilen\n", "Good day\n two\x85lines")
    assert multi30k(Multi30kPart.VAL) == [
        ("Grüß Gott", "Good day"),
        ("Zwei\u2028Zeilen", "two\x85lines"),
    ]


def test_an_empty_line_keeps_its_place(write):
    write("eins\n\ndrei\n", "one\ntwo\nthree\n")
    pairs = multi30k(Multi30kPart.VAL)
    assert pairs == [("eins", "one"), ("", "two"), ("drei", "three")]


def test_both_sides_need_as_many_lines(write):
    write("eins\nzwei\n", "one\n")
    with pytest.raises(ValueError, match="shorter"):
        multi30k(Multi30kPart.VAL)


@pytest.fixture(scope="module")
def corpora():
    needs.corpus("multi30k-de-en")
    return {direction: multi30k_corpus(direction) for direction in Direction}


def test_a_corpus_of_each_direction(corpora):
    forth, back = corpora["de-en"], corpora["en-de"]
    assert (forth.name, back.name) == ("multi30k-de-en", "multi30k-en-de")
    for part, size in (("train", 29_000), ("dev", 1_014), ("test", 1_000)):
        assert len(getattr(forth, part)) == len(getattr(back, part)) == size
    first, mirrored = forth.test[0], back.test[0]
    assert first.source[0].startswith("Ein Mann mit einem")
    assert first.references[0][0].startswith("A man in an orange hat")
    assert mirrored.references == (first.source,)
    assert (mirrored.source,) == first.references


def test_both_directions_share_pieces_that_cover_the_sentences(corpora):
    pieces = corpora["de-en"].source_vocabulary
    assert len(pieces) == 4_000
    for corpus in corpora.values():
        assert corpus.source_vocabulary == corpus.target_vocabulary == pieces
    for example in corpora["de-en"].train[:2_000]:
        sentence = example.source[0]
        assert pieces.text(pieces.encode(sentence)) == " ".join(sentence.split())
    numbers = [n for e in corpora["de-en"].test for n in pieces.encode(e.source)]
    assert numbers.count(UNK) < 5
