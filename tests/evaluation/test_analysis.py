import dataclasses

import pytest
from tiny_models import copier

from seq2seq_lib.data import Corpus, Example, TaskName, toy_corpus
from seq2seq_lib.data.toy import ToyTask
from seq2seq_lib.evaluation import analysis
from seq2seq_lib.search import SearchConfig


def example(german, english):
    return Example((german,), ((english,),))


@pytest.fixture
def corpus(dictionary):
    """Two training pairs; the second development sentence has words never seen."""
    return Corpus(
        name="multi30k-de-en",
        train=[
            example("ein hund rennt", "a dog runs"),
            example("ein hund rennt im hund", "a dog runs in a dog"),
        ],
        dev=[
            example("Ein hund rennt im hund", "A dog runs in dog"),
            example("zwei hund rennt im zwei", "two red dogs run in two"),
        ],
        test=[example("ein", "a")],
        source_vocabulary=dictionary.source_vocabulary,
        target_vocabulary=dictionary.target_vocabulary,
        task=TaskName.TRANSLATION,
        target_language="en",
    )


def test_a_corpus_is_counted_on_both_sides(corpus):
    found = analysis.describe(corpus)
    assert found["pairs"] == {"train": 2, "dev": 2, "test": 1}
    source, target = found["source"], found["target"]
    assert (source["words"], target["words"]) == (8, 9)
    assert (source["different_words"], source["seen_once"]) == (4, 1)
    assert source["dev_words_never_seen"] == 2  # zwei, twice
    assert source["dev_sentences_with_such"] == 1
    assert target["dev_words_never_seen"] == 5  # two red dogs run … two
    assert source["dev_symbols"]["words"] == 10
    assert source["dev_symbols"]["characters"] == 45
    cut = dict(source["pieces_of_a_dev_word"])
    pieces = corpus.source_vocabulary
    assert cut == {1: 9, len(pieces.encode("Ein")): 1}  # the capital is a piece


def test_what_is_missing_is_counted_by_rarity_and_kind(corpus):
    outputs = ["a dog runs in dog", "two dog runs in"]
    found = analysis.errors(outputs, corpus)
    rows = {row["from"]: (row["words"], row["found"]) for row in found["by_times_seen"]}
    # never seen: two, red, dogs, run, two, of which one two was said
    assert rows[0] == (5, 1)
    # seen one to five times: a dog runs in dog, and in
    assert rows[1] == (6, 6)
    assert rows[6] == (0, 0)
    kinds = found["by_kind"]
    assert kinds["numbers"] == {"words": 2, "found": 1}
    assert kinds["colours"] == {"words": 1, "found": 0}
    assert kinds["prepositions"] == {"words": 2, "found": 2}
    assert found["words_too_many"] == [[-2, 1], [0, 1]]
    assert found["all_source_words_seen"]["examples"] == 1
    assert found["some_source_word_never_seen"]["examples"] == 1
    bleu = found["bleu"]
    assert (bleu["words"], bleu["reference_words"]) == (9, 11)
    # by hand, cased: dog runs in dog, and two in
    assert bleu["right"][:2] == [6, 3]
    assert bleu["generated"] == [9, 7, 5, 3]


def test_words_of_one_kind_are_those_of_the_target_language(corpus):
    def turned(examples):
        return [Example(e.references[0], (e.source,)) for e in examples]

    german = dataclasses.replace(
        corpus,
        name="multi30k-en-de",
        train=turned(corpus.train),
        dev=[example("a dog is in red", "ein Hund ist in roten an a is")],
        target_language="de",
    )
    kinds = analysis.errors(["Ein Hund in roten"], german)["by_kind"]
    assert kinds["articles"] == {"words": 1, "found": 1}  # ein, but not the English a
    assert kinds["colours"] == {"words": 1, "found": 1}
    assert kinds["prepositions"] == {"words": 2, "found": 1}  # an is one in German
    assert kinds["forms of be"] == {"words": 1, "found": 0}
    assert kinds.keys() == analysis.errors(["a", "a"], corpus)["by_kind"].keys()


def test_only_a_translator_of_this_corpus_is_analyzed(corpus, dictionary):
    search = SearchConfig()
    with pytest.raises(ValueError, match="was trained on toy-copy and the corpus is"):
        analysis.analyze(copier()[0], corpus, search=search)
    with pytest.raises(ValueError, match="was trained on multi30k-de-en and the"):
        analysis.analyze(dictionary, toy_corpus(ToyTask.COPY), search=search)
    with pytest.raises(ValueError, match="expected a model that translates into"):
        analysis.analyze(copier()[0], toy_corpus(ToyTask.COPY), search=search)
