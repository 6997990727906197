import needs
import pytest
from tiny_models import SEARCH, copier, published

from seq2seq_lib.data import CorpusName, load_corpus
from seq2seq_lib.pretrained import load, names, scoring
from seq2seq_lib.pretrained.loading import checksum


@pytest.fixture
def scored(tmp_path):
    saved, examples = copier(wrong=(5,))
    model = published(saved, tmp_path)
    return model, examples, scoring.evaluation(model, examples)


def test_an_evaluation_says_what_was_scored(scored, tmp_path):
    _, examples, found = scored
    assert found["sha256"] == checksum(tmp_path / "model.safetensors")
    assert (found["search"], found["recipe"]) == (SEARCH, "r")
    assert (found["split"], found["part"]) == ("toy-copy", "test")
    assert found["examples"] == len(examples)
    assert 0 < found["metrics"]["wer"]["value"] < 1


@pytest.mark.parametrize(
    "change, complaint",
    [
        ({"sha256": "0"}, "have another sha256: 0"),
        ({"split": "toy-sort"}, "have another split"),
        ({"examples": 7}, "have another examples: 7"),
        ({"search": {**SEARCH, "width": 9}}, "have another search"),
        ({"sample": {"wer": 0.0, "per": 0.0}}, "wer of the first 300"),
    ],
)
def test_an_evaluation_of_something_else_is_refused(scored, change, complaint):
    model, examples, found = scored
    scoring.check_evaluation(model, found, examples)
    with pytest.raises(ValueError, match=complaint):
        scoring.check_evaluation(model, {**found, **change}, examples)


def test_a_table_of_searches_says_what_was_tried(scored):
    model, examples, _ = scored
    found = scoring.searches(model, examples[:60], widths=[1], alphas=[0.0, 1.0])
    assert (found["part"], found["examples"], found["card"]) == ("dev", 60, SEARCH)
    assert found["sha256"] == model.card.sha256
    assert [row["alpha"] for row in found["rows"]] == [0.0, 1.0]


@pytest.mark.parametrize("name", names())
def test_the_stored_scores_are_those_of_the_weights(name):
    model = load(name)
    stored = model.card.results  # fails if there is no file, or one of other weights
    needs.corpus(model.split)
    examples = load_corpus(CorpusName(model.split)).test
    scoring.check_evaluation(model, stored, examples)
