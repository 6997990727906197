"""Stored results: every file is whole, belongs to something, and can be cited."""

import itertools
from pathlib import Path

import pytest

from seq2seq_lib.pretrained import weights
from seq2seq_lib.pretrained.results import read_result, result_text
from seq2seq_lib.training.history import History

RESULTS = Path(str(weights.__file__)).parent.parent / "results"
BIBLIOGRAPHY = Path(__file__).parents[2] / "book" / "bibliography.md"
PUBLISHED = read_result("published.json")


def test_every_shipped_model_has_its_log():
    logs = [path.stem for path in sorted((RESULTS / "trainings").glob("*.json"))]
    assert logs == sorted(weights.names())


@pytest.mark.parametrize("name", sorted(weights.names()))
def test_a_log_goes_forward(name):
    rows = History.from_json(result_text(f"trainings/{name}.json")).rows
    assert len(rows) > 3
    for before, after in itertools.pairwise(rows):
        assert before.step < after.step
        assert before.epoch <= after.epoch
        assert before.seconds < after.seconds
    assert all(row.metrics for row in rows)


@pytest.mark.parametrize("task, figures", [("pronunciation", 9), ("translation", 5)])
def test_published_figures_are_shares_or_points(task, figures):
    rows = PUBLISHED[task]
    assert len(rows) == figures
    for row in rows:
        assert row["link"].startswith("https://")
        assert isinstance(row["checked"], bool)
        if task == "pronunciation":
            assert 0.15 < row["wer"] < 0.3
            assert row["per"] is None or row["per"] < row["wer"] / 3
        else:
            assert 10 < row["word_bleu"] < 40


def test_papers_with_published_figures_are_in_the_bibliography():
    links = {row["link"] for rows in PUBLISHED.values() for row in rows}
    papers = {link for link in links if "github.com" not in link}
    known = BIBLIOGRAPHY.read_text("utf-8")
    assert len(papers) == 5
    assert [link for link in papers if link not in known] == []
