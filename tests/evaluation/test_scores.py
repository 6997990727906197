import copy

import pytest
from tiny_models import copier

from seq2seq_lib.data import Example, TaskName
from seq2seq_lib.evaluation import scores
from seq2seq_lib.metrics import phoneme_error_rate, word_error_rate
from seq2seq_lib.search import SearchConfig
from seq2seq_lib.tasks import TASKS

SEARCH = SearchConfig(width=2, alpha=0.5, max_length=30)


@pytest.fixture
def scored():
    saved, examples = copier(wrong=(5,))
    return saved, examples, scores.final_scores(saved, examples, search=SEARCH)


def test_final_scores_have_their_intervals(scored):
    saved, examples, result = scored
    letter = saved.source_vocabulary.symbols[5]
    spoiled = [letter in example.source for example in examples]
    wer = result["metrics"]["wer"]
    assert wer["value"] == pytest.approx(sum(spoiled) / len(examples))
    low, high = wer["interval"]
    assert 0 < low < wer["value"] < high < 1
    assert "bootstrap over words:1000" in wer["signature"]
    symbols = [symbol for example in examples for symbol in example.source]
    per = result["metrics"]["per"]["value"]
    assert per == pytest.approx(symbols.count(letter) / len(symbols))


def test_the_lengths_add_up_to_the_whole(scored):
    _, examples, result = scored
    rows = result["by_length"]
    assert sum(row["examples"] for row in rows) == len(examples)
    wrong = sum(row["examples"] * row["wer"] for row in rows)
    assert wrong / len(examples) == pytest.approx(result["metrics"]["wer"]["value"])
    assert rows[-1]["wer"] > rows[0]["wer"]  # a longer one has more chances to fail
    assert result["sample"]["examples"] == scores.SAMPLE


@pytest.mark.parametrize("wer", [0.0, float("nan")])
def test_a_sample_is_scored_again(scored, wer):
    saved, examples, result = scored
    scores.check_sample(saved, examples, result, search=SEARCH)
    other = copy.deepcopy(result)
    other["sample"]["wer"] = wer
    with pytest.raises(ValueError, match=f"wer of the first 300 .* is {wer:.4f}"):
        scores.check_sample(saved, examples, other, search=SEARCH)


def test_another_program_is_scored_on_the_same_words():
    examples = [
        Example(tuple("box"), (("B", "AA", "K", "S"),)),
        Example(tuple("two"), (("T", "UW"),)),
    ]
    written = {"box": ["B", "AA1", "K", "S"], "two": ["T", "W", "UW1", " ", "."]}
    scored = scores.score_pronouncer(
        TASKS[TaskName.PRONUNCIATION], written.__getitem__, examples
    )
    found = scored["metrics"]
    outputs = [["B", "AA", "K", "S"], ["T", "W", "UW"]]
    references = [example.references for example in examples]
    assert found["wer"]["value"] == word_error_rate(outputs, references) == 0.5
    assert found["per"]["value"] == phoneme_error_rate(outputs, references)
