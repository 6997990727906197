import shutil
import subprocess
import sys

import pytest
from tiny_models import trained

import seq2seq_lib
from seq2seq_lib.models.saved import SavedModel, save_model
from seq2seq_lib.pretrained import load, names, open_model, publish
from seq2seq_lib.tasks import TASKS


@pytest.fixture
def stored(tmp_path):
    card = publish(
        [trained()], "tiny", recipe="r", search={"width": 3}, directory=tmp_path
    )
    return tmp_path, card


def test_a_changed_file_is_refused(stored):
    directory, _ = stored
    path = directory / "tiny.safetensors"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    with pytest.raises(ValueError, match=r"has the checksum .* but its card says"):
        load("tiny", directory=directory)


def test_a_missing_or_odd_card_is_refused(stored):
    directory, _ = stored
    path = directory / "tiny.json"
    for text in ("{", '{"name": "tiny"}'):
        path.write_text(text)
        with pytest.raises(ValueError, match=r"tiny\.json is no model card"):
            load("tiny", directory=directory)
    path.unlink()
    with pytest.raises(ValueError, match=r"tiny\.json is no model card"):
        load("tiny", directory=directory)


def test_an_unknown_name_lists_the_known_ones(stored):
    directory, _ = stored
    assert names(directory) == ["tiny"]
    with pytest.raises(ValueError, match="no model 'tyni': expected one of tiny"):
        load("tyni", directory=directory)
    with pytest.raises(ValueError, match="no model 'tyni': expected a file, or one"):
        open_model("tyni", directory=directory)
    with pytest.raises(ValueError, match="no model 'tyni'"):
        seq2seq_lib.load("tyni")


def test_a_model_is_opened_by_name_or_file(stored, tmp_path):
    directory, card = stored
    assert open_model("tiny", directory=directory).card == card
    save_model(tmp_path / "own", trained())
    assert type(open_model(str(tmp_path / "own"))) is SavedModel


@pytest.mark.parametrize("name", names())
def test_every_published_model_can_be_loaded(name):
    model = seq2seq_lib.load(name)
    assert model.card.name == name
    assert model.split == model.card.split
    assert model.card.results["split"] == model.split
    assert model.card.task == TASKS[model.task].about.task


def test_weights_can_be_copied_elsewhere(stored, tmp_path):
    directory, card = stored
    other = tmp_path / "copy"
    other.mkdir()
    for name in ("tiny.safetensors", "tiny.json"):
        shutil.copy(directory / name, other)
    assert load("tiny", directory=other).card == card


def test_the_library_does_not_load_what_few_need():
    program = (
        "import sys, seq2seq_lib;"
        "print([m for m in sys.modules if m in "
        "('seq2seq_lib.pretrained', 'seq2seq_lib.training', "
        "'sacrebleu', 'matplotlib')])"
    )
    command = [sys.executable, "-c", program]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"
