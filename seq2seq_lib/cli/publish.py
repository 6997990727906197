"""The command ``seq2seq publish``."""

import argparse
import dataclasses
import json
from pathlib import Path

from seq2seq_lib import pretrained
from seq2seq_lib.cli.options import add_store
from seq2seq_lib.files import write_whole
from seq2seq_lib.models.saved import load_model
from seq2seq_lib.recipes import load_recipe
from seq2seq_lib.recipes.running import training_log


def publish(command: argparse.ArgumentParser) -> None:
    """Store a trained model, or the mean of several."""
    command.description = (
        "Store trained weights in half precision with a card and, if a run is given, "
        "its log. Several models that were trained alike are averaged; the log is that "
        "of the first."
    )
    command.add_argument("name", help="under which the model will be loaded")
    command.add_argument(
        "models", nargs="+", type=Path, help="model files, or directories of runs"
    )
    command.add_argument("--recipe", required=True, help="what trained them")
    add_store(command, "weights/NAME and results/trainings/NAME.json", required=True)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    recipe = load_recipe(options.recipe)
    paths = [p / "model.safetensors" if p.is_dir() else p for p in options.models]
    models = [load_model(path) for path in paths]
    for path, saved in zip(paths, models, strict=True):
        config = recipe.model_config(saved.source_vocabulary, saved.target_vocabulary)
        if saved.split != recipe.data.corpus or saved.model.config != config:
            raise ValueError(
                f"{path} was not trained by {recipe.name}: its split is {saved.split} "
                f"and its model {saved.model.config}, expected {recipe.data.corpus} "
                f"and {config}."
            )
    run = options.models[0]
    log = training_log(recipe, run) if run.is_dir() else None
    card = pretrained.publish(
        models,
        options.name,
        recipe=recipe.name,
        search=dataclasses.asdict(recipe.search),
        also_learned_from=recipe.learned_from(),
        directory=options.store / "weights",
    )
    print(json.dumps(dataclasses.asdict(card), indent=2, ensure_ascii=False))
    if log:
        logs = options.store / "results" / "trainings"
        write_whole(logs / f"{options.name}.json", log.to_json())
    return 0
