import importlib

import needs
import pytest

from seq2seq_lib.data.cmudict import PHONEMES
from seq2seq_lib.data.pronalsyl import TEST, TRAIN, pronalsyl


def words(part):
    return {"".join(source) for source, _ in part}


@pytest.fixture(scope="module")
def corpus():
    needs.corpus("pronalsyl")
    return pronalsyl()


def test_the_published_sizes(corpus):
    assert len(corpus.train) + len(corpus.dev) == 106_837
    assert len(corpus.test) == 12_000
    assert 2_400 < len(corpus.dev) < 2_600
    pairs = sum(len(those) for _, those in corpus.train + corpus.dev)
    assert pairs == 113_438
    assert sum(len(those) for _, those in corpus.test) == 12_753


def test_the_parts_share_no_word(corpus):
    train, dev, test = map(words, (corpus.train, corpus.dev, corpus.test))
    assert len(train | dev | test) == 106_837 + 12_000
    assert corpus.name == "pronalsyl"


def test_the_first_words_of_dev_are_a_fair_sample(corpus):
    first = {source[0] for source, _ in corpus.dev[:200]}
    assert len(first) > 15  # in the file they all begin with an apostrophe or an a
    assert abs(mean_length(corpus.dev[:500]) - mean_length(corpus.dev)) < 0.2


def mean_length(examples):
    return sum(len(source) for source, _ in examples) / len(examples)


def test_the_symbols(corpus):
    examples = corpus.train + corpus.dev + corpus.test
    letters = {letter for source, _ in examples for letter in source}
    sounds = {s for _, those in examples for sounds in those for s in sounds}
    assert letters == set("'abcdefghijklmnopqrstuvwxyz")
    assert sounds == set(PHONEMES)
    assert corpus.source_vocabulary.symbols[4:] == tuple(sorted(letters))
    assert corpus.target_vocabulary.symbols[4:] == PHONEMES
    lengths = [len(source) for source, _ in examples]
    assert (min(lengths), max(lengths)) == (1, 22)


def test_a_small_file_by_hand(tmp_path, monkeypatch):
    module = importlib.import_module("seq2seq_lib.data.pronalsyl")
    train = [f"W{chr(65 + n % 26)}{chr(65 + n // 26)}\tW AH" for n in range(600)]
    (tmp_path / "train").write_text("\n".join([*train, "READ\tR EH D", "READ\tR IY D"]))
    (tmp_path / "test").write_text("DON'T\tD OW N T\n")
    files = {TRAIN: tmp_path / "train", TEST: tmp_path / "test"}
    monkeypatch.setattr(module, "fetch", files.__getitem__)
    corpus = pronalsyl()
    assert corpus.test == [(("d", "o", "n", "'", "t"), (("D", "OW", "N", "T"),))]
    both = corpus.train + corpus.dev
    assert len(both) == 601
    assert (tuple("read"), (("R", "EH", "D"), ("R", "IY", "D"))) in both
    # the words decide who is held out, not their order
    (tmp_path / "train").write_text("\n".join(reversed(train)))
    again = pronalsyl()
    assert words(again.dev) == words(corpus.dev) - {"read"}
    assert [e for e in corpus.dev if e in again.dev] == again.dev
    assert corpus.dev
