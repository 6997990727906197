"""The commands that pack a trained model: for the library, or for another engine."""

import argparse
import dataclasses
import json
import sys
from importlib import resources
from pathlib import Path

from seq2seq_lib.files import write_whole
from seq2seq_lib.models.saved import load_model
from seq2seq_lib.pretrained import results
from seq2seq_lib.pretrained.export import Quantization, export_ctranslate2, export_onnx
from seq2seq_lib.pretrained.weights import DIRECTORY, open_model, ship
from seq2seq_lib.recipes import load_recipe
from seq2seq_lib.recipes.running import training_log

LOGS = Path(str(resources.files(results))) / "trainings"


def add_commands(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add ship and export to the commands of the program."""
    command = commands.add_parser(
        "ship",
        help="put a trained model, or the mean of several, into the library",
        description="Store trained weights in half precision with a card and, if a run "
        "is given, its log. Several models that were trained alike are averaged; the "
        "log is that of the first.",
    )
    command.add_argument("name", help="under which the model will be loaded")
    command.add_argument(
        "models", nargs="+", type=Path, help="model files, or directories of runs"
    )
    command.add_argument("--recipe", required=True, help="what trained them")
    command.add_argument("--directory", type=Path, default=DIRECTORY, help="where to")
    command.set_defaults(run=_ship)

    command = commands.add_parser(
        "export",
        help="write a trained Transformer for another engine",
        description="Write a trained Transformer with its vocabularies in the format "
        "of CTranslate2, or as ONNX graphs of the encoder and of one decoder step.",
    )
    command.add_argument("model", help="the name of a model, or a file")
    command.add_argument("directory", type=Path, help="where to; made by the export")
    command.add_argument("--to", choices=("ctranslate2", "onnx"), required=True)
    command.add_argument(
        "--quantization",
        choices=[kind.value for kind in Quantization],
        default=Quantization.FLOAT32.value,
        help="int8 is smaller and faster, but rounds; for ctranslate2 only",
    )
    command.set_defaults(run=_export)


def _ship(options: argparse.Namespace) -> int:
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
    card = ship(
        models,
        options.name,
        recipe=recipe.name,
        search=dataclasses.asdict(recipe.search),
        also_learned_from=recipe.learned_from(),
        directory=options.directory,
    )
    print(json.dumps(dataclasses.asdict(card), indent=2, ensure_ascii=False))
    if options.directory == DIRECTORY and options.models[0].is_dir():
        log = training_log(recipe, options.models[0])
        write_whole(LOGS / f"{options.name}.json", log.to_json())
    return 0


def _export(options: argparse.Namespace) -> int:
    quantization = Quantization(options.quantization)
    if options.to == "onnx" and quantization is not Quantization.FLOAT32:
        raise ValueError(
            f"--quantization {quantization} with --to onnx: these graphs are written "
            "in float32 only. Leave it out, or use --to ctranslate2."
        )
    saved = open_model(options.model)
    if options.to == "onnx":
        export_onnx(saved, options.directory)
    else:
        export_ctranslate2(saved, options.directory, quantization=quantization)
    print(f"{options.model} written to {options.directory}", file=sys.stderr)
    return 0
