import dataclasses
import pickle
import sys

import needs
import pytest
import safetensors.torch
import torch
from tiny_models import CONFIGS, build, example_batch
from torch import nn

from seq2seq_lib.data.examples import TaskName
from seq2seq_lib.data.subwords import SubwordVocabulary
from seq2seq_lib.data.vocabulary import Vocabulary
from seq2seq_lib.interface import EncoderDecoder
from seq2seq_lib.models.saved import (
    MODEL_FORMAT,
    SavedModel,
    load_model,
    load_weights,
    read_tensors,
    save_model,
    weights_of,
    write_tensors,
)


def saved(name="gru"):
    model = build(CONFIGS[name], torch.float)
    return SavedModel(model, Vocabulary("abcdefg"), Vocabulary("vwxyz"), "toy-copy")


@pytest.mark.parametrize("name", CONFIGS)
def test_a_model_comes_back_as_it_was(name, tmp_path, device):
    original = saved(name)
    save_model(tmp_path / "model.safetensors", original)
    torch.manual_seed(1)  # what is drawn while rebuilding must not matter
    loaded = load_model(tmp_path / "model.safetensors", device=device)
    found = weights_of(loaded.model)
    for weight, expected in weights_of(original.model).items():
        assert torch.equal(found[weight].cpu(), expected)
    # in double precision, because some of these models blow up what is rounded
    batch = example_batch()
    outputs = loaded.model.cpu().double()(batch)
    expected = original.model.double()(batch)
    torch.testing.assert_close(outputs, expected, rtol=0, atol=1e-6)
    assert loaded.source_vocabulary == original.source_vocabulary
    assert loaded.target_vocabulary == original.target_vocabulary
    assert loaded.split == "toy-copy"
    assert loaded.model.config == original.model.config
    assert not loaded.model.training


def without_task(path, **changes):
    """The file as earlier versions wrote it."""
    tensors, header = read_tensors(path, MODEL_FORMAT)
    del header["task"]
    write_tensors(path, tensors, {**header, **changes})
    return path


def test_a_model_knows_its_task(tmp_path):
    original = dataclasses.replace(saved(), split="cnn-dm", task=TaskName.PRONUNCIATION)
    save_model(tmp_path / "own", original)
    assert load_model(tmp_path / "own").task is TaskName.PRONUNCIATION
    assert saved().task is TaskName.TOY  # that of its split


def test_files_without_a_task_have_that_of_their_split(tmp_path):
    path = tmp_path / "model"
    save_model(path, saved())
    without_task(path, split="multi30k-en-de")
    assert load_model(path).task is TaskName.TRANSLATION
    save_model(path, saved())
    without_task(path, split="cnn-dm")
    with pytest.raises(ValueError, match=r"'cnn-dm' is not .* the task must be given"):
        load_model(path)
    assert load_model(path, task=TaskName.TOY).task is TaskName.TOY


def test_a_vocabulary_comes_back_as_its_kind(tmp_path):
    pieces = SubwordVocabulary.train(["a dog", "a cat", "two dogs"] * 3, size=20)
    model, letters = saved().model, saved().source_vocabulary
    save_model(tmp_path / "model", SavedModel(model, letters, pieces, "toy-copy"))
    loaded = load_model(tmp_path / "model")
    assert loaded.source_vocabulary == letters
    assert loaded.target_vocabulary == pieces
    assert type(loaded.target_vocabulary) is SubwordVocabulary


def test_the_same_model_makes_the_same_file(tmp_path):
    save_model(tmp_path / "a", saved())
    save_model(tmp_path / "b", saved())
    assert (tmp_path / "a").read_bytes() == (tmp_path / "b").read_bytes()


def test_shared_weights_are_stored_once_and_stay_shared(tmp_path):
    module = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.BatchNorm1d(3))
    module[1].weight = module[0].weight
    weights = {name: tensor.clone() for name, tensor in weights_of(module).items()}
    assert "1.weight" not in weights
    assert "2.running_mean" in weights
    other = nn.Sequential(nn.Linear(3, 3), nn.Linear(3, 3), nn.BatchNorm1d(3))
    other[1].weight = other[0].weight
    load_weights(other, weights, origin="memory")
    assert torch.equal(other[1].weight, module[0].weight)
    assert other[1].weight is other[0].weight


def test_a_model_without_configuration_cannot_be_saved(tmp_path):
    model = build(CONFIGS["gru"])
    bare = EncoderDecoder(model.encoder, model.decoder)
    with pytest.raises(ValueError, match="has no configuration, so a file could not"):
        save_model(
            tmp_path / "model",
            SavedModel(bare, Vocabulary("a"), Vocabulary("b"), "toy-copy"),
        )
    assert not list(tmp_path.iterdir())


def test_weights_of_another_model_are_refused_and_change_nothing():
    small, large = build(CONFIGS["gru"]), build(CONFIGS["lstm"])
    before = {name: tensor.clone() for name, tensor in weights_of(small).items()}
    with pytest.raises(ValueError, match=r"file\.x .* another model"):
        load_weights(small, weights_of(large), origin="file.x")
    for name, tensor in weights_of(small).items():
        assert torch.equal(tensor, before[name])


@pytest.mark.parametrize("keep", [0, 5, 100, -1])
def test_a_truncated_file_is_refused(tmp_path, keep):
    path = tmp_path / "model.safetensors"
    save_model(path, saved())
    path.write_bytes(path.read_bytes()[:keep])
    with pytest.raises(ValueError, match=r"model\.safetensors .* damaged"):
        load_model(path)


def test_a_foreign_safetensors_file_is_refused(tmp_path):
    path = tmp_path / "other.safetensors"
    safetensors.torch.save_file({"x": torch.zeros(1)}, path)
    with pytest.raises(ValueError, match="format None, expected 'seq2seq_lib"):
        load_model(path)


class Bomb:
    def __reduce__(self):
        return exec, ("import builtins; builtins.bomb_went_off = True",)


@pytest.mark.parametrize(
    "save", [torch.save, lambda o, p: p.write_bytes(pickle.dumps(o))]
)
def test_a_file_with_code_in_it_is_refused_and_runs_nothing(tmp_path, save):
    import builtins

    path = tmp_path / "model.pt"
    save({"weights": Bomb()}, path)
    with pytest.raises(ValueError, match="looks like a pickle, which can run code"):
        load_model(path)
    assert not hasattr(builtins, "bomb_went_off")


def test_the_bomb_is_real():
    import builtins

    pickle.loads(pickle.dumps(Bomb()))
    assert builtins.bomb_went_off
    del builtins.bomb_went_off


def test_a_missing_file_says_its_name(tmp_path):
    with pytest.raises(FileNotFoundError, match="nowhere"):
        load_model(tmp_path / "nowhere.safetensors")


@needs.system(sys.platform != "win32", "no file-size limit on Windows")
def test_a_full_disk_leaves_the_old_file(tmp_path):
    import resource

    path = tmp_path / "model.safetensors"
    save_model(path, saved())
    before = path.read_bytes()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (1000, limits[1]))
    try:
        with pytest.raises(OSError, match=r"could not write .* before is untouched"):
            save_model(path, saved("lstm"))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert path.read_bytes() == before
    assert [p.name for p in tmp_path.iterdir()] == ["model.safetensors"]
