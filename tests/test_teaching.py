from functools import partial

import pytest
import torch
from models import CONFIGS, build, example_batch
from torch.testing import assert_close

from seq2seq_lib.data import Batch, Corpus, Example, Pair, Vocabulary
from seq2seq_lib.search import greedy_search
from seq2seq_lib.teaching import Beliefs, Unanswered, answered
from seq2seq_lib.training import SavedModel

PAIRS = [
    Pair([4, 5, 6, 7, 10], [4, 5]),
    Pair([8, 9], [6, 7, 8, 4, 5]),
    Pair([8, 9], [6]),  # the same source again
    Pair([10, 4, 4], [8]),
]
SEARCH = partial(greedy_search, max_length=6)


@pytest.fixture
def teacher(device):
    return build(CONFIGS["gru"], torch.float).to(device)


@pytest.fixture
def saved(teacher):
    return SavedModel(teacher, Vocabulary("abcdefg"), Vocabulary("vwxyz"), "toy")


def test_beliefs_are_what_the_teacher_says_about_these_rows(teacher, device):
    beliefs = Beliefs.of(teacher, PAIRS, budget=12)
    for rows in ([0, 1], [3, 2, 1, 0], [2]):
        batch = Batch.from_pairs([PAIRS[row] for row in rows]).to(device)
        with torch.no_grad():
            expected = teacher(batch).exp()
        # kept in half precision
        mask = batch.target_mask
        assert_close(beliefs(batch)[mask], expected[mask], rtol=0, atol=5e-4)


def test_beliefs_are_asked_for_once(teacher, tmp_path, device):
    path = tmp_path / "run" / "beliefs.safetensors"
    first = Beliefs.kept(path, teacher, PAIRS)
    other = build(CONFIGS["rnn"], torch.float).to(device)
    assert torch.equal(Beliefs.kept(path, other, PAIRS).table, first.table)
    assert not torch.equal(Beliefs.of(other, PAIRS).table, first.table)


def test_beliefs_about_other_pairs_are_refused(teacher, tmp_path):
    path = tmp_path / "beliefs.safetensors"
    Beliefs.kept(path, teacher, PAIRS)
    with pytest.raises(ValueError, match="about other outputs"):
        Beliefs.kept(path, teacher, PAIRS[1:])


def test_a_row_that_nobody_asked_about(teacher):
    beliefs = Beliefs.of(teacher, PAIRS[1:])
    with pytest.raises(KeyError):
        beliefs(example_batch())


def test_the_teacher_answers_once(saved, tmp_path):
    path = tmp_path / "answers.tsv"
    words = ["abc", "gfe", "d"]
    examples = answered(path, saved, words, search=SEARCH)
    said = {"".join(source): " ".join(references[0]) for source, references in examples}
    lines = path.read_text().splitlines()
    assert [line.partition("\t")[0] for line in lines] == words
    for line in lines:  # where the teacher says nothing, there is nothing to learn
        word, _, answer = line.partition("\t")
        assert said.get(word, "") == answer
    assert any(said.values())
    path.write_text("".join(f"{word}\tv w\n" for word in words))
    kept = answered(path, saved, words, search=SEARCH)
    assert kept[0] == Example(("a", "b", "c"), (("v", "w"),))
    with pytest.raises(ValueError, match="answers other sources than these 2"):
        answered(path, saved, words[:2], search=SEARCH)


def test_no_word_of_the_corpus_is_answered():
    def part(*words):
        return [Example(tuple(word), (("v",),)) for word in words]

    letters = Vocabulary("abcdefghijklmnopqrstuvwxyz")
    corpus = Corpus(
        "toy", part("smith"), part("johnson"), part("williams"), letters, letters
    )
    names = Unanswered.SURNAMES.sources(corpus)
    assert len(names) > 80_000
    assert not {"smith", "johnson", "williams"} & set(names)
    assert Unanswered.NONE.sources(corpus) == []
