import pytest
import torch
from tiny_models import CONFIGS, build, example_batch
from torch.testing import assert_close

from seq2seq_lib.data import Batch, Pair, Vocabulary
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.recipes import soft_targets as module
from seq2seq_lib.recipes.soft_targets import SoftTargets, fingerprint, log_probabilities

PAIRS = [
    Pair([4, 5, 6, 7, 10], [4, 5]),
    Pair([8, 9], [6, 7, 8, 4, 5]),
    Pair([8, 9], [6]),  # the same source again
    Pair([10, 4, 4], [8]),
]


@pytest.fixture
def teacher(device):
    return build(CONFIGS["gru"], torch.float).to(device)


@pytest.fixture
def saved(teacher):
    return SavedModel(teacher, Vocabulary("abcdefg"), Vocabulary("vwxyz"), "toy-copy")


@pytest.mark.parametrize("budget", [12, 4096])
def test_soft_targets_are_what_the_teacher_says_about_these_rows(
    teacher, device, budget
):
    soft_targets = SoftTargets.of(teacher, PAIRS, budget=budget)
    for rows in ([0, 1], [3, 2, 1, 0], [2]):
        batch = Batch.from_pairs([PAIRS[row] for row in rows])
        with torch.no_grad():
            expected = teacher(batch.to(device)).exp().cpu()
        # kept in half precision
        mask = batch.target_mask
        assert_close(soft_targets(batch)[mask], expected[mask], rtol=0, atol=5e-4)


def test_soft_targets_are_asked_for_once(teacher, tmp_path, monkeypatch):
    first = SoftTargets.kept(tmp_path, teacher, PAIRS)
    monkeypatch.setattr(SoftTargets, "of", None)  # would not answer
    again = SoftTargets.kept(tmp_path, teacher, PAIRS)
    assert torch.equal(again.table, first.table)
    assert again.sha256 == first.sha256


def test_another_teacher_or_other_pairs_are_asked_anew(teacher, tmp_path, device):
    SoftTargets.kept(tmp_path, teacher, PAIRS)
    other = build(CONFIGS["rnn"], torch.float).to(device)
    for asked, pairs in ((other, PAIRS), (teacher, PAIRS[::-1])):
        kept = SoftTargets.kept(tmp_path, asked, pairs)
        assert torch.equal(kept.table, SoftTargets.of(asked, pairs).table)
    assert len([*tmp_path.iterdir()]) == 3


def test_a_fingerprint_changes_with_every_weight_and_option(teacher):
    before = fingerprint(teacher, "beam")
    assert fingerprint(teacher, "beam") == before
    assert fingerprint(teacher, "greedy") != before
    with torch.no_grad():
        next(teacher.parameters()).view(-1)[0] += 1e-3
    assert fingerprint(teacher, "beam") != before


def test_a_table_about_other_outputs_is_refused():
    with pytest.raises(ValueError, match="of other outputs"):
        SoftTargets(PAIRS, torch.zeros(3, 9))


def test_a_row_that_nobody_asked_about(teacher):
    soft_targets = SoftTargets.of(teacher, PAIRS[1:])
    with pytest.raises(KeyError):
        soft_targets(example_batch())


def test_more_than_fits_into_memory_is_refused(teacher, monkeypatch):
    monkeypatch.setattr(module, "LARGEST", 100)
    with pytest.raises(ValueError, match="would take 234 bytes, more than 100"):
        SoftTargets.of(teacher, PAIRS)


def test_what_a_killed_process_left_is_removed(teacher, tmp_path):
    SoftTargets.kept(tmp_path, teacher, PAIRS)
    (path,) = tmp_path.iterdir()
    path.unlink()
    half_written = path.with_name(f".{path.name}.0a1b")
    half_written.touch()
    SoftTargets.kept(tmp_path, teacher, PAIRS)
    assert [*tmp_path.iterdir()] == [path]


@pytest.mark.parametrize("budget", [12, 4096])
def test_how_probable_whole_outputs_are(saved, device, budget):
    outputs = [("abc", "vw"), ("g", "zyxwv"), ("abc", "x")]
    found = log_probabilities(saved, outputs, budget=budget)
    for (source, output), total in zip(outputs, found, strict=True):
        pair = Pair(
            saved.source_vocabulary.encode(source),
            saved.target_vocabulary.encode(output),
        )
        batch = Batch.from_pairs([pair]).to(device)
        with torch.no_grad():
            steps = saved.model(batch)[0]
        expected = sum(steps[t, s].item() for t, s in enumerate(batch.target[0]))
        assert total == pytest.approx(expected, abs=1e-4)
    assert log_probabilities(saved, []) == []
