"""The commands that train: one recipe, or every seed of an experiment."""

import argparse
import json
import sys
from pathlib import Path

from seq2seq_lib.cli.devices import add_device, chosen_device
from seq2seq_lib.data import load_corpus
from seq2seq_lib.files import cache_directory
from seq2seq_lib.recipes import load_recipe, recipe_names
from seq2seq_lib.recipes.experiments import (
    experiment_names,
    load_experiment,
    missing_runs,
    run,
    store_run,
)
from seq2seq_lib.recipes.running import run_directory, train
from seq2seq_lib.tasks.translation import measure
from seq2seq_lib.training.distributed import process_group, processes, rank


def add_commands(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add train and experiment to the commands of the program."""
    command = commands.add_parser(
        "train",
        help="run a recipe, or go on with it",
        description="Run a recipe to its end. A run that was stopped goes on from its "
        "last checkpoint. Start it with torchrun to use several processes or GPUs.",
        epilog=f"recipes that come with the library: {', '.join(recipe_names())}",
    )
    command.add_argument("recipe", help="name of a recipe, or a TOML file")
    command.add_argument(
        "--directory",
        type=Path,
        help="where the run is kept (default: the user's cache directory)",
    )
    command.add_argument("--quiet", action="store_true", help="no progress bar")
    add_device(command)
    command.set_defaults(run=_train)

    command = commands.add_parser(
        "experiment",
        help="run the seeds of an experiment that are not stored yet",
        description="Train every variant of an experiment with every seed, or go on "
        "with it, and store the scores of each run in the library.",
        epilog=f"experiments that come with the library: "
        f"{', '.join(experiment_names())}",
    )
    command.add_argument("experiment", help="name of an experiment, or a TOML file")
    command.add_argument("--seeds", type=int, nargs="+", default=[0, 1, 2])
    command.add_argument("--quiet", action="store_true", help="no progress bar")
    add_device(command)
    command.set_defaults(run=_experiment)


def _train(options: argparse.Namespace) -> int:
    recipe = load_recipe(options.recipe)
    directory = options.directory or run_directory(recipe.name)
    with process_group(chosen_device(options)) as device:
        if rank() == 0:
            where = device.type + (f" × {processes()}" if processes() > 1 else "")
            print(f"{recipe.name} on {where}, kept in {directory}", file=sys.stderr)
        saved, history = train(
            recipe, directory, device=device, progress=not options.quiet
        )
        corpus = load_corpus(recipe.data.corpus)
        rates = measure(saved, corpus.dev, search=recipe.search.search())
        if rank():
            return 0
    print(
        json.dumps(
            {
                "recipe": recipe.name,
                "model": str(directory / "model.safetensors"),
                "split": saved.split,
                "part": "dev",
                "steps": history.rows[-1].step,
                "seconds": round(history.rows[-1].seconds),
                **rates,
            },
            indent=2,
        )
    )
    return 0


def _experiment(options: argparse.Namespace) -> int:
    experiment = load_experiment(options.experiment)
    device = chosen_device(options)
    kept = cache_directory() / "experiments" / experiment.name
    for variant, seed in missing_runs(experiment, options.seeds):
        directory = kept / f"{variant}-{seed}"
        print(f"{variant}, seed {seed}, kept in {directory}", file=sys.stderr)
        done = run(
            experiment,
            variant,
            seed,
            directory,
            device=device,
            progress=not options.quiet,
        )
        path = store_run(experiment, done)
        print(f"{variant} {seed} wer {done['wer']:.4f} per {done['per']:.4f} {path}")
    return 0
