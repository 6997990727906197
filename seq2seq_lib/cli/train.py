"""The command ``seq2seq train``."""

import argparse
import json
import sys
from pathlib import Path

from seq2seq_lib.cli.options import add_device, chosen_device
from seq2seq_lib.data import load_corpus
from seq2seq_lib.recipes import load_recipe, recipe_names, running
from seq2seq_lib.recipes.running import measure_together, run_directory
from seq2seq_lib.training.distributed import process_group, processes, rank


def train(command: argparse.ArgumentParser) -> None:
    """Run a recipe, or go on with it."""
    command.description = (
        "Run a recipe to its end. A run that was stopped goes on from its last "
        "checkpoint. Start it with torchrun to use several processes or GPUs."
    )
    command.epilog = f"recipes that come with the library: {', '.join(recipe_names())}"
    command.add_argument("recipe", help="name of a recipe, or a TOML file")
    command.add_argument(
        "--directory",
        type=Path,
        help="where the run is kept (default: the user's cache directory)",
    )
    command.add_argument("--quiet", action="store_true", help="no progress bar")
    add_device(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    recipe = load_recipe(options.recipe)
    directory = options.directory or run_directory(recipe.name)
    with process_group(chosen_device(options)) as device:
        if rank() == 0:
            where = device.type + (f" × {processes()}" if processes() > 1 else "")
            print(f"{recipe.name} on {where}, kept in {directory}", file=sys.stderr)
        saved, history = running.train(
            recipe, directory, device=device, progress=not options.quiet
        )
        corpus = load_corpus(recipe.data.corpus)
        metrics = measure_together(saved, corpus.dev, search=recipe.search.search())
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
                **metrics,
            },
            indent=2,
        )
    )
    return 0
