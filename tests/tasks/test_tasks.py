import pytest
import sacrebleu

from seq2seq_lib.data import CorpusName, Example, TaskName, Vocabulary, load_corpus
from seq2seq_lib.evaluation import best_outputs
from seq2seq_lib.metrics import bleu, phoneme_error_rate, word_error_rate
from seq2seq_lib.tasks import TASKS


def test_every_name_has_a_task():
    assert set(TASKS) == set(TaskName)
    for task in TASKS.values():
        assert set(task.tolerance) == set(task.metrics)


@pytest.mark.parametrize("name", [n for n in CorpusName if n.task is TaskName.TOY])
def test_a_corpus_has_the_task_of_its_name(name):
    corpus = load_corpus(name)
    assert (corpus.name, corpus.task) == (name, name.task)


def test_typed_words_are_spelled_as_in_the_dictionary():
    task = TASKS[TaskName.PRONUNCIATION]
    assert task.prepare("Don’t") == "don't"
    letters = Vocabulary("'dnot")
    assert task.refusal("don't", letters) == ""
    assert task.refusal("xdy", letters).startswith("no letter 'x' or 'y' among those")
    assert task.text(task.output(letters.encode("do"), letters)) == "d o"


def test_typed_sentences_stay_as_they_are(dictionary):
    task, pieces = TASKS[TaskName.TRANSLATION], dictionary.target_vocabulary
    assert task.prepare("Don’t") == "Don’t"
    assert task.refusal("中", pieces) == ""
    assert task.text(task.output(pieces.encode("a dog"), pieces)) == "a dog"


SYMBOLS = [Example(("k", "n"), (("N",), ("K", "N"))), Example(("a",), (("A", "Y"),))]
SENTENCES = [
    Example(("ein hund rennt im hund",), (("a dog runs in a dog",),)),
    Example(("zwei",), (("two of them",),)),
]


@pytest.mark.parametrize(
    "name, examples, outputs, reference",
    [
        (TaskName.PRONUNCIATION, SYMBOLS, [["N"], ["A"]], word_error_rate),
        (TaskName.TRANSLATION, SENTENCES, ["a dog runs in dog", "two of"], bleu),
    ],
)
def test_counts_sum_up_to_the_first_metric(name, examples, outputs, reference):
    task = TASKS[name]
    counts = task.counts(outputs, examples)
    sums = {key: sum(row[key] for row in counts) for key in counts[0]}
    first = task.score(outputs, examples)[task.metrics[0]]
    assert task.of_counts(sums) == pytest.approx(first)
    assert 0 < first < 100
    rows = task.counts_by_length(outputs, examples)
    assert [row.pop("length") for row in rows] == sorted(map(task.length, examples))
    assert {key: sum(row[key] for row in rows) for key in rows[0]} == sums


def test_rates_by_hand():
    task = TASKS[TaskName.PRONUNCIATION]
    outputs = [["N"], ["A"]]
    references = [example.references for example in SYMBOLS]
    found = task.score(outputs, SYMBOLS)
    assert found == {"wer": 1 / 2, "per": 1 / 3}
    assert found["wer"] == word_error_rate(outputs, references)
    assert found["per"] == phoneme_error_rate(outputs, references)
    assert task.length_ratio(outputs, SYMBOLS) == 2 / 3


def test_lengths_of_sentences_are_counted_in_words():
    task = TASKS[TaskName.TRANSLATION]
    outputs = ["a dog runs in dog", "two of"]
    assert [row["length"] for row in task.counts_by_length(outputs, SENTENCES)] == [
        1,
        5,
    ]
    assert task.length_ratio(outputs, SENTENCES) == 7 / 9
    expected = sacrebleu.corpus_bleu(outputs, [["a dog runs in a dog", "two of them"]])
    assert task.score(outputs, SENTENCES)["bleu"] == expected.score


def test_translations_have_three_figures(dictionary):
    sources = ["ein hund rennt im hund", "zwei hund rennt im hund"] * 4
    right = ["a dog runs in dog", "two dog runs in a dog"] * 4
    examples = [Example((s,), ((r,),)) for s, r in zip(sources, right, strict=True)]
    outputs = best_outputs(dictionary, [example.source for example in examples])
    assert outputs[:2] == ["a dog runs in dog", "two dog runs in dog"]
    found = TASKS[TaskName.TRANSLATION].intervals(outputs, examples)
    assert list(found) == ["bleu", "chrf", "word_bleu"]
    assert found["bleu"]["signature"].startswith(
        "nrefs:1|bs:1000|seed:12345|case:mixed"
    )
    assert "case:lc" in found["word_bleu"]["signature"]
    for figure in found.values():
        low, high = figure["interval"]
        assert low <= figure["value"] <= high
    (row,) = TASKS[TaskName.TRANSLATION].by_length(outputs, examples)
    assert (row["from"], row["below"], row["examples"]) == (1, 9, 8)
    assert row["bleu"] == found["bleu"]["value"]


def test_words_are_scored_by_kind():
    words = {
        "oxen's": "AA K S AH N Z",  # a sound for each letter but one
        "knights": "N AY T S",
        "added": "AE D AH D",
        "box": "B AA K S",
        "a": "AH",
    }
    examples = [Example(tuple(w), ((*said.split(),),)) for w, said in words.items()]
    examples[-1] = Example(("a",), (("AH",), ("EY",)))
    outputs = [example.references[-1] for example in examples]
    outputs[1] = ("K", "N", "AY", "T", "S")
    found = TASKS[TaskName.PRONUNCIATION].by_kind(outputs, examples)
    assert {kind: row["examples"] for kind, row in found.items()} == {
        "ends in s": 2,
        "ends in ed or ing": 1,
        "has an apostrophe": 1,
        "has a doubled letter": 1,
        "a sound for each letter": 2,
        "two letters more than sounds": 1,
        "more sounds than letters": 1,
        "several pronunciations": 1,
    }
    assert found["ends in s"]["wer"] == 0.5
    assert found["two letters more than sounds"]["per"] == 1 / 4
    assert found["several pronunciations"]["wer"] == 0
    assert TASKS[TaskName.PRONUNCIATION].by_kind(outputs[:1], examples[:1]).keys() == {
        "ends in s",
        "has an apostrophe",
        "a sound for each letter",
    }
