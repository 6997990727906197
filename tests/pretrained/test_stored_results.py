"""Stored results: every file is whole, belongs to something, and can be cited."""

import itertools
from pathlib import Path

import pytest

from seq2seq_lib.pretrained import (
    names,
    read_card,
    read_result,
    result_names,
    result_text,
)
from seq2seq_lib.training.history import History

BIBLIOGRAPHY = Path(__file__).parents[2] / "book" / "bibliography.md"
PUBLISHED = read_result("published.json")


@pytest.mark.parametrize("folder", ["trainings", "evaluations"])
def test_every_model_has_its_log_and_its_scores(folder):
    assert result_names(folder) == names()


@pytest.mark.parametrize(
    "folder, search", [("searches", "card"), ("analyses", "search")]
)
def test_stored_tables_belong_to_the_weights(folder, search):
    assert result_names(folder)
    for name in result_names(folder):
        stored, card = read_result(f"{folder}/{name}.json"), read_card(name)
        assert (stored["sha256"], stored[search]) == (card.sha256, card.search)


def test_an_unknown_result_says_where_to_look():
    with pytest.raises(ValueError, match="no result 'bench/speed"):
        read_result("bench/speed.json")


@pytest.mark.parametrize("name", names())
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
