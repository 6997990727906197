"""Several processes learn what one process learns, and share the work."""

import itertools
import json
import os
import subprocess
import sys

import needs
import pytest
import torch

from seq2seq_lib.cli import main
from seq2seq_lib.device import devices
from seq2seq_lib.training.distributed import (
    all_gather,
    all_reduce,
    map_over_ranks,
    process_group,
)

pytestmark = needs.system(
    sys.platform != "win32", "torchrun's store is not built for Windows"
)

# What every process does; it writes down all that it learned from, and wrote.
WORK = """
import json, sys
from pathlib import Path
import torch
from torch import nn
from seq2seq_lib.data.batch import Batches
from seq2seq_lib.data.examples import Pair
from seq2seq_lib.models.rnn_seq2seq import RNNSeq2SeqConfig
from seq2seq_lib.models import saved as checkpoint
from seq2seq_lib.training import TrainingConfig, fit
from seq2seq_lib.training.distributed import (
    SharedGradients, map_over_ranks, process_group, processes, rank
)
from seq2seq_lib.training.objective import Objective

seen, written = [], []
forward, write = Objective.forward, checkpoint.write_whole

def recording_forward(self, batch, *, symbols, sampling=0.0):
    loss = forward(self, batch, symbols=symbols, sampling=sampling)
    rows = zip(batch.source, batch.source_mask)
    seen.append([source[mask].tolist()[:-1] for source, mask in rows])
    return loss

def recording_write(path, content):
    written.append(path.name)
    write(path, content)

Objective.forward, checkpoint.write_whole = recording_forward, recording_write

# 37 short words in few batches, and one so long that it is a batch of its own
pairs = [Pair([4 + n % 5, 4 + n // 5], [4 + n % 5] * (1 + n % 4)) for n in range(37)]
pairs.append(Pair([4] * 30, [5] * 30))
folder = Path(sys.argv[1])

def work(accumulate):
    seen.clear()
    written.clear()
    torch.manual_seed(rank())  # all get the weights of the first process
    model = RNNSeq2SeqConfig(
        source_symbols=12, target_symbols=12, width=16, dropout=0.0
    ).build()
    shared = []

    def evaluate(model):
        def lengths(words):
            shared.append(len(words))
            return [len(word) for word in words]
        found = map_over_ranks(lengths, [pair.target for pair in pairs])
        return {"symbols": sum(found), "own": rank()}

    history = fit(
        model,
        Batches(pairs, budget=40),
        TrainingConfig(
            steps=12, accumulate=accumulate, learning_rate=1e-2,
            evaluate_every=1, checkpoint_every=5, label_smoothing=0.1,
        ),
        evaluate=evaluate,
        directory=folder / f"run {accumulate}",
        progress=True,
    )
    weights = {n: t.tolist() for n, t in model.state_dict().items()}
    record = {
        "rows": json.loads(history.to_json())["rows"], "weights": weights,
        "seen": seen, "written": written, "shared": shared,
    }
    (folder / f"{rank()} {accumulate}.json").write_text(json.dumps(record))

with process_group(torch.device("cpu")):
    work(1)
    work(2)
    if processes() > 1:
        model = nn.Sequential(nn.BatchNorm1d(1))
        model.device = torch.device("cpu")
        try:
            SharedGradients(Objective(model, TrainingConfig(steps=1)))
        except ValueError as error:
            print(error)
"""


def launch(processes, code, *arguments, **environment):
    """Run a program with one process or, by torchrun, with several."""
    start = [sys.executable]
    if processes > 1:
        start += ["-m", "torch.distributed.run", "--standalone"]
        start += ["--nproc-per-node", str(processes)]
    return subprocess.run(
        [*start, *map(str, (code, *arguments))],
        env=os.environ | {"OMP_NUM_THREADS": "1"} | environment,
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """What was recorded, by the number of processes and of batches for an update."""
    found = {}
    for processes in (1, 2):
        folder = tmp_path_factory.mktemp("work")
        (folder / "work.py").write_text(WORK)
        done = launch(processes, folder / "work.py", folder)
        assert done.returncode == 0, done.stderr
        for accumulate in (1, 2):
            records = [
                json.loads((folder / f"{n} {accumulate}.json").read_text())
                for n in range(processes)
            ]
            found[processes, accumulate] = records, done
    return found


PAIRS = [((2, 1), (1, 1)), ((2, 2), (1, 2))]  # several processes, and one


@pytest.mark.parametrize("several, one", PAIRS)
def test_the_loss_of_every_step_is_that_of_one_process(results, several, one):
    (alone,), _ = results[one]
    expected = [row["loss"] for row in alone["rows"]]
    assert len(expected) == 12
    assert expected[-1] < expected[0] - 0.1  # something was learned
    for process in results[several][0]:
        assert [r["loss"] for r in process["rows"]] == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize("several, one", PAIRS)
def test_all_processes_end_with_the_same_weights(results, several, one):
    first, *others = (process["weights"] for process in results[several][0])
    assert all(other == first for other in others)
    (alone,), _ = results[one]
    for name, weight in first.items():
        torch.testing.assert_close(
            torch.tensor(weight), torch.tensor(alone["weights"][name])
        )


@pytest.mark.parametrize("several, one", PAIRS)
def test_every_row_is_learned_from_once_by_one_process(results, several, one):
    (alone,), _ = results[one]
    shares = [process["seen"] for process in results[several][0]]
    assert len({len(share) for share in shares}) == 1  # as many batches in each
    for number, rows in enumerate(alone["seen"]):
        parts = [share[number] for share in shares]
        if len(rows) < len(shares):  # some take a row that does not count
            parts = parts[: len(rows)]
        assert list(itertools.chain(*parts)) == rows
    assert any(len(rows) == 1 for rows in alone["seen"])
    first_epoch = list(itertools.chain(*alone["seen"]))[:38]
    assert len({tuple(row) for row in first_epoch}) == 38


def test_an_update_sums_up_several_batches(results):
    (single,), _ = results[1, 1]
    (double,), _ = results[1, 2]
    epoch = next(n for n, row in enumerate(single["rows"]) if row["epoch"] == 2)
    assert len(double["rows"]) == 12
    # an epoch takes half as many updates; an odd batch at its end has one of its own
    assert sum(row["epoch"] == 1 for row in double["rows"]) == -(-epoch // 2)


def test_metrics_come_from_all_processes_and_are_the_same_in_each(results):
    (alone,), _ = results[1, 1]
    (first, second), _ = results[2, 1]
    assert {row["metrics"]["symbols"] for row in first["rows"]} == {
        alone["rows"][0]["metrics"]["symbols"]
    }
    assert first["rows"][0]["metrics"] == second["rows"][0]["metrics"]
    assert first["shared"] == second["shared"] == [19] * 12  # half of the work each


def test_only_the_first_process_writes_and_speaks(results):
    (first, second), done = results[2, 1]
    assert first["written"] == ["checkpoint.safetensors"] * 3
    assert second["written"] == []
    assert done.stderr.count("kept in") == 2  # runs, not processes
    assert done.stderr.count("| 0/12") == 2
    assert "Warning" not in done.stderr


# With three terms the order of a sum matters, and with it how gradients are sent.
RESUME = """
import sys
from pathlib import Path
import torch
from seq2seq_lib.data.batch import Batches
from seq2seq_lib.data.examples import Pair
from seq2seq_lib.models.rnn_seq2seq import RNNSeq2SeqConfig
from seq2seq_lib.training import TrainingConfig, fit
from seq2seq_lib.training.distributed import process_group

pairs = [Pair([4 + n % 5, 4 + n // 5], [4 + n % 5] * (1 + n % 4)) for n in range(37)]

def run(directory, stop_at=None):
    torch.manual_seed(0)
    model = RNNSeq2SeqConfig(source_symbols=12, target_symbols=12, width=64).build()

    def evaluate(model):
        if stop_at in directory.iterdir():
            raise KeyboardInterrupt
        return {}

    config = TrainingConfig(
        steps=20, evaluate_every=7, checkpoint_every=3, learning_rate=1e-2
    )
    fit(model, Batches(pairs, budget=40), config, evaluate=evaluate,
        directory=directory, progress=False)
    return model.state_dict()

folder = Path(sys.argv[1])
with process_group(torch.device("cpu")):
    unbroken = run(folder / "unbroken")
    try:
        run(folder / "stopped", stop_at=folder / "stopped" / "checkpoint.safetensors")
    except KeyboardInterrupt:
        pass
    resumed = run(folder / "stopped")
    print(all(torch.equal(unbroken[name], resumed[name]) for name in unbroken))
"""


@pytest.mark.slow
def test_three_processes_go_on_as_if_nothing_had_happened(tmp_path):
    (tmp_path / "resume.py").write_text(RESUME)
    done = launch(3, tmp_path / "resume.py", tmp_path)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == ["True"] * 3


RECIPE = """
[data]
corpus = "toy-copy"
budget = 256
development_words = 20

[model]
model = "RNNSeq2Seq"
width = 16

[training]
steps = 3
evaluate_every = 3
"""


def test_a_model_that_needs_the_whole_batch_is_refused(results):
    _, done = results[2, 1]
    assert done.stdout.count("BatchNorm1d needs all rows") == 2


def test_processes_that_do_not_find_each_other_say_so(tmp_path, monkeypatch, capsys):
    (tmp_path / "tiny.toml").write_text(RECIPE)
    monkeypatch.setenv("WORLD_SIZE", "2")
    monkeypatch.setenv("RANK", "1")
    monkeypatch.delenv("MASTER_ADDR", raising=False)
    command = ["train", str(tmp_path / "tiny.toml"), "--directory", str(tmp_path)]
    assert main([*command, "--device", "cpu"]) == 2
    shown = capsys.readouterr().err
    assert "process 1 of 2 cannot join the others" in shown
    assert "MASTER_ADDR" in shown
    assert "torchrun" in shown


def test_a_device_that_cannot_be_shared_is_refused(monkeypatch):
    monkeypatch.setenv("WORLD_SIZE", "2")
    with (
        pytest.raises(ValueError, match="several processes cannot share mps"),
        process_group(torch.device("mps")),
    ):
        pass
    monkeypatch.setenv("LOCAL_RANK", "99")
    with (
        pytest.raises(ValueError, match=r"process 99 .* finds only \d+ GPUs"),
        process_group(torch.device("cuda")),
    ):
        pass


def test_one_process_needs_no_group():
    for device in devices():
        with process_group(device) as own:
            assert own == device
    assert all_reduce(torch.tensor(3.0)) == 3.0
    assert all_gather("a") == ["a"]
    assert map_over_ranks(lambda numbers: [n * n for n in numbers], [1, 2, 3]) == [
        1,
        4,
        9,
    ]
    assert map_over_ranks(lambda numbers: numbers, []) == []
