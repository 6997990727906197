import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2seq_lib.data.toy import ToyTask, toy_corpus, toy_examples, toy_vocabulary

tasks = st.sampled_from(ToyTask)


def draw(task=ToyTask.COPY, **changes):
    options = {"count": 50, "lengths": (2, 9), "symbols": 5, "seed": 0}
    return toy_examples(task, **{**options, **changes})


@pytest.mark.parametrize(
    "task, answer", [("copy", "bcab"), ("reverse", "bacb"), ("sort", "abbc")]
)
def test_answers_by_hand(task, answer):
    assert ToyTask(task).answer(tuple("bcab")) == tuple(answer)


@given(
    tasks, st.integers(1, 40), st.integers(1, 6), st.integers(0, 3), st.integers(1, 9)
)
def test_examples_are_what_was_asked_for(task, count, shortest, more, symbols):
    lengths = (shortest, shortest + more)
    examples = draw(task, count=count, lengths=lengths, symbols=symbols)
    assert len(examples) == count
    for source, (answer,) in examples:
        assert lengths[0] <= len(source) <= lengths[1]
        assert set(source) <= set(toy_vocabulary(symbols).symbols[4:])
        assert answer == task.answer(source)
    possible = sum(symbols**n for n in range(lengths[0], lengths[1] + 1))
    assert len({source for source, _ in examples}) == min(count, possible)


def test_repeats_begin_only_when_nothing_new_is_left():
    examples = draw(count=40, lengths=(1, 3), symbols=2)
    sources = [source for source, _ in examples]
    assert len(set(sources[:14])) == 14  # 2 + 4 + 8
    assert len(set(sources)) == 14
    assert {len(source) for source in sources[14:]} == {1, 2, 3}


def test_lengths_are_equally_likely():
    lengths = [len(source) for source, _ in draw(count=5000, lengths=(8, 12))]
    for length in range(8, 13):
        assert 800 < lengths.count(length) < 1200


def test_all_tasks_of_a_seed_share_their_sources():
    first, *others = (draw(task) for task in ToyTask)
    for other in others:
        assert [source for source, _ in other] == [source for source, _ in first]


def test_the_seed_decides():
    assert draw(seed=3) == draw(seed=3)
    assert draw(seed=3) != draw(seed=4)


def test_the_same_on_every_machine():
    sources = ["".join(source) for source, _ in draw(count=4, seed=1)]
    assert sources == ["accb", "ccabbcb", "edacb", "bddcacdbc"]


@pytest.mark.parametrize(
    "wrong",
    [{"count": 0}, {"lengths": (0, 3)}, {"lengths": (4, 3)}, {"lengths": (-1, 3)}],
)
def test_nothing_to_draw(wrong):
    with pytest.raises(ValueError, match="at least one example"):
        draw(**wrong)


@pytest.mark.parametrize("symbols", [0, 27, -3])
def test_the_alphabet_has_26_letters(symbols):
    with pytest.raises(ValueError, match=f"symbols={symbols}.*1 to 26"):
        toy_vocabulary(symbols)
    with pytest.raises(ValueError, match=f"symbols={symbols}.*1 to 26"):
        draw(symbols=symbols)


@pytest.mark.parametrize("task", ToyTask)
def test_the_parts_of_a_corpus_do_not_overlap(task):
    corpus = toy_corpus(task, train=300, held_out=50)
    parts = [
        {e.source for e in part} for part in (corpus.train, corpus.dev, corpus.test)
    ]
    assert [len(part) for part in parts] == [300, 50, 50]
    assert len(set.union(*parts)) == 400
    assert corpus.name == f"toy-{task.value}"
    for source, (answer,) in corpus.test:
        assert answer == task.answer(source)
        corpus.source_vocabulary.encode(source, strict=True)
        corpus.target_vocabulary.encode(answer, strict=True)


def test_a_corpus_needs_enough_different_sequences():
    with pytest.raises(ValueError, match=r"2 letters make only 6 sequences of 1 to 2"):
        toy_corpus(ToyTask.COPY, train=5, held_out=1, lengths=(1, 2), symbols=2)
