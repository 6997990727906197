"""The command ``seq2seq experiment``."""

import argparse
import json
import sys

from seq2seq_lib.cli.options import add_device, add_store, chosen_device
from seq2seq_lib.files import cache_directory
from seq2seq_lib.recipes.experiments import (
    experiment_names,
    load_experiment,
    missing_runs,
    run,
    store_run,
)


def experiment(command: argparse.ArgumentParser) -> None:
    """Run the seeds of an experiment."""
    command.description = (
        "Train every variant of an experiment with every seed, or go on with it, and "
        "print the scores of each run. With --store, runs are added to those that are "
        "stored there, and only the missing ones are trained."
    )
    command.epilog = (
        f"experiments that come with the library: {', '.join(experiment_names())}"
    )
    command.add_argument("experiment", help="name of an experiment, or a TOML file")
    command.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    command.add_argument("--quiet", action="store_true", help="no progress bar")
    add_store(command, "results/experiments/EXPERIMENT.json")
    add_device(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    chosen = load_experiment(options.experiment)
    device = chosen_device(options)
    kept = cache_directory() / "experiments" / chosen.name
    stored = options.store / "results" / "experiments" if options.store else None
    for variant, seed in missing_runs(chosen, options.seeds, directory=stored):
        directory = kept / f"{variant}-{seed}"
        print(f"{variant}, seed {seed}, kept in {directory}", file=sys.stderr)
        done = run(
            chosen, variant, seed, directory, device=device, progress=not options.quiet
        )
        print(json.dumps({k: v for k, v in done.items() if type(v) is not list}))
        if stored:
            path = store_run(chosen, done, directory=stored)
            print(f"stored in {path}", file=sys.stderr)
    return 0
