"""The command line: ``seq2seq train``, ``seq2seq evaluate``, ``seq2seq export``."""

import argparse
import json
import sys
from collections.abc import Sequence
from pathlib import Path

import torch

from seq2seq_lib.device import best_device
from seq2seq_lib.export import Quantization, export_ctranslate2, export_onnx
from seq2seq_lib.files import cache_directory
from seq2seq_lib.recipes import (
    CorpusName,
    SearchConfig,
    load_corpus,
    load_recipe,
    recipe_names,
    train,
)
from seq2seq_lib.training import load_model
from seq2seq_lib.training.distributed import process_group, processes, rank
from seq2seq_lib.translation import measure


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; what the reader did wrong becomes one clear line."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except (ValueError, OSError, FloatingPointError) as error:
        print(f"seq2seq {options.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="seq2seq", description="Train and evaluate the models of the course."
    )
    commands = parser.add_subparsers(dest="command", required=True)

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
    _add_device(command)
    command.set_defaults(run=_train)

    command = commands.add_parser(
        "evaluate",
        help="measure WER and PER, or BLEU and chrF, of a trained model",
        description="Measure a model on the split it was trained for. The test part "
        "is for the final model only: choose everything on the development part.",
    )
    command.add_argument("model", type=Path, help="a model.safetensors file")
    command.add_argument("--part", choices=("dev", "test"), default="dev")
    command.add_argument(
        "--corpus",
        choices=[name.value for name in CorpusName],
        help="the split expected; a model trained on another one is refused",
    )
    defaults = SearchConfig()
    command.add_argument(
        "--width", type=int, default=defaults.width, help="of the beam"
    )
    command.add_argument("--alpha", type=float, default=defaults.alpha)
    command.add_argument("--max-length", type=int, default=defaults.max_length)
    command.add_argument("--words", type=int, help="only so many words (default: all)")
    _add_device(command)
    command.set_defaults(run=_evaluate)

    command = commands.add_parser(
        "export",
        help="write a trained Transformer for another engine",
        description="Write a trained Transformer with its vocabularies in the format "
        "of CTranslate2, or as ONNX graphs of the encoder and of one decoder step.",
    )
    command.add_argument("model", type=Path, help="a model.safetensors file")
    command.add_argument("directory", type=Path, help="where to; made by the export")
    command.add_argument("--to", choices=("ctranslate2", "onnx"), required=True)
    command.add_argument(
        "--quantization",
        choices=[kind.value for kind in Quantization],
        default=Quantization.FLOAT32.value,
        help="int8 is smaller and faster, but rounds; for ctranslate2 only",
    )
    command.set_defaults(run=_export)
    return parser


def _add_device(command: argparse.ArgumentParser) -> None:
    command.add_argument(
        "--device", help="cuda, mps or cpu (default: the fastest there is)"
    )


def _device(options: argparse.Namespace) -> torch.device:
    if options.device is None:
        return best_device()
    try:
        device = torch.device(options.device)
        torch.empty(0, device=device)
    except (RuntimeError, AssertionError) as error:
        raise ValueError(
            f"--device {options.device} cannot be used here ({error}): try "
            f"{best_device().type}."
        ) from error
    return device


def _train(options: argparse.Namespace) -> int:
    recipe = load_recipe(options.recipe)
    directory = options.directory or cache_directory() / "runs" / recipe.name
    with process_group(_device(options)) as device:
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


def _evaluate(options: argparse.Namespace) -> int:
    search = SearchConfig(
        width=options.width, alpha=options.alpha, max_length=options.max_length
    )
    saved = load_model(options.model, device=_device(options))
    if options.corpus and options.corpus != saved.split:
        raise ValueError(
            f"{options.model} was trained on {saved.split}, not on {options.corpus}: "
            "the splits overlap, so the score would mean nothing. Leave --corpus out "
            "to use the right one."
        )
    if saved.split not in list(CorpusName):
        raise ValueError(
            f"{options.model} was trained on {saved.split!r}, which this command "
            "cannot read: measure it with seq2seq_lib.translation.measure."
        )
    if options.words is not None and options.words < 1:
        raise ValueError(f"--words {options.words}: expected at least 1.")
    corpus = load_corpus(CorpusName(saved.split))
    examples = getattr(corpus, options.part)[: options.words]
    rates = measure(saved, examples, search=search.search())
    print(
        json.dumps(
            {
                "model": str(options.model),
                "split": saved.split,
                "part": options.part,
                "words": len(examples),
                **rates,
            },
            indent=2,
        )
    )
    return 0


def _export(options: argparse.Namespace) -> int:
    quantization = Quantization(options.quantization)
    if options.to == "onnx" and quantization is not Quantization.FLOAT32:
        raise ValueError(
            f"--quantization {quantization} with --to onnx: these graphs are written "
            "in float32 only. Leave it out, or use --to ctranslate2."
        )
    saved = load_model(options.model)
    if options.to == "onnx":
        export_onnx(saved, options.directory)
    else:
        export_ctranslate2(saved, options.directory, quantization=quantization)
    print(f"{options.model} written to {options.directory}", file=sys.stderr)
    return 0
