import gzip
import importlib

import pytest

from seq2seq_lib.data.download import find_local
from seq2seq_lib.data.multi30k import FILES, Multi30kPart, multi30k


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
    if not all(find_local(file) for file in FILES[part]):
        pytest.skip("the corpus is neither in SEQ2SEQ_DATA nor in the cache")
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
