"""The command line: from training a model to using it."""

import argparse
import dataclasses
import json
import os
import sys
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Any

import torch

from seq2seq_lib import analysis, answers, results, scores, tuning
from seq2seq_lib.data import Corpus
from seq2seq_lib.device import best_device
from seq2seq_lib.experiments import (
    experiment_names,
    load_experiment,
    missing_runs,
    run,
    store_run,
)
from seq2seq_lib.export import Quantization, export_ctranslate2, export_onnx
from seq2seq_lib.files import cache_directory, write_whole
from seq2seq_lib.grading import command as grading
from seq2seq_lib.recipes import (
    CorpusName,
    SearchConfig,
    load_corpus,
    load_recipe,
    recipe_names,
)
from seq2seq_lib.recipes.running import run_directory, train, training_log
from seq2seq_lib.training import SavedModel, load_model
from seq2seq_lib.training.distributed import process_group, processes, rank
from seq2seq_lib.translation import measure
from seq2seq_lib.weights import (
    DIRECTORY,
    ShippedModel,
    load,
    names,
    open_model,
    ship,
)

LOGS = Path(str(resources.files(results))) / "trainings"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; what the reader did wrong becomes one clear line."""
    options = _parser().parse_args(arguments)
    try:
        return int(options.run(options))
    except BrokenPipeError:  # the reader of our output, such as head, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError, FloatingPointError) as error:
        print(f"seq2seq {options.command}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(
        prog="seq2seq", description="Train, evaluate and use the models of the course."
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
    _add_device(command)
    command.set_defaults(run=_experiment)

    command = commands.add_parser(
        "evaluate",
        help="measure WER and PER, or BLEU and chrF, of a trained model",
        description="Measure a model on the split it was trained for. The test part "
        "is for the final model only: choose everything on the development part.",
    )
    command.add_argument("model", help="the name of a model, or a file")
    command.add_argument("--part", choices=("dev", "test"), default="dev")
    command.add_argument(
        "--corpus",
        choices=[name.value for name in CorpusName],
        help="the split expected; a model trained on another one is refused",
    )
    answers.add_search(command)
    command.add_argument(
        "--store",
        action="store_true",
        help="write the scores of a model that comes with the library, with intervals, "
        "into the library; needs --part test and all words",
    )
    command.add_argument("--words", type=int, help="only so many words (default: all)")
    _add_device(command)
    command.set_defaults(run=_evaluate)

    command = commands.add_parser(
        "analyze",
        help="count what a translator of the library gets wrong, and store it",
        description="Describe the corpus of a model that translates and its errors on "
        "the development part, as counts that are stored in the library.",
    )
    command.add_argument("model", help="the name of a model")
    _add_device(command)
    command.set_defaults(run=_analyze)

    command = commands.add_parser(
        "compare",
        help="score what another program pronounced, on the same test words",
        description="Score a file with a word, a tab and its phonemes on each line. "
        "Digits of stress are ignored.",
    )
    command.add_argument("name", help="of the program, with its version")
    command.add_argument("file", type=Path, help="what it said")
    command.add_argument(
        "--corpus",
        choices=[name.value for name in CorpusName if "wer" in name.metrics],
        default=CorpusName.PRONALSYL.value,
    )
    command.add_argument("--store", action="store_true", help="in the library")
    command.set_defaults(run=_compare)

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

    command = commands.add_parser(
        "tune",
        help="score a model on the development part with several searches",
        description="Score a model that comes with the library with beams of several "
        "widths and exponents of the length, on development examples only, and store "
        "the table in the library.",
    )
    command.add_argument("model", help="the name of a model")
    command.add_argument("--widths", type=int, nargs="+", default=tuning.WIDTHS)
    command.add_argument("--alphas", type=float, nargs="+", default=tuning.ALPHAS)
    command.add_argument(
        "--words",
        type=int,
        default=tuning.EXAMPLES,
        help="how many words or sentences (default: %(default)s)",
    )
    _add_device(command)
    command.set_defaults(run=_tune)
    answers.add_commands(commands)
    grading.add_commands(commands)
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
    directory = options.directory or run_directory(recipe.name)
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


def _experiment(options: argparse.Namespace) -> int:
    experiment = load_experiment(options.experiment)
    device = _device(options)
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


def _evaluate(options: argparse.Namespace) -> int:
    saved = open_model(options.model, device=_device(options))
    search = answers.chosen_search(saved, options)
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
    if options.store:
        return _store(saved, corpus, search, options)
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


def _store(
    saved: SavedModel, corpus: Corpus, search: SearchConfig, options: argparse.Namespace
) -> int:
    if type(saved) is not ShippedModel:
        raise ValueError(
            f"--store with {options.model}: only scores of models that come with the "
            f"library are stored, {', '.join(names()) or 'none yet'}. Use seq2seq ship."
        )
    if options.part != "test" or options.words:
        raise ValueError(
            "--store writes the score of the whole test part: give --part test, and "
            "leave --words out."
        )
    if search != SearchConfig(**saved.card.search):
        raise ValueError(
            f"--store with other search options than the card's, {saved.card.search}: "
            "leave them out, or choose them on the development part and ship again."
        )
    result = scores.evaluate(saved, corpus.test)
    print(json.dumps(result, indent=2, ensure_ascii=False))
    print(f"stored in {scores.store(result)}", file=sys.stderr)
    return 0


def _tune(options: argparse.Namespace) -> int:
    shipped = load(options.model, device=_device(options))
    if options.words < 1:
        raise ValueError(f"--words {options.words}: expected at least 1.")
    examples = load_corpus(CorpusName(shipped.split)).dev[: options.words]
    table = tuning.tune(shipped, examples, widths=options.widths, alphas=options.alphas)
    return _print_and_store(table, tuning.DIRECTORY)


def _analyze(options: argparse.Namespace) -> int:
    shipped = load(options.model, device=_device(options))
    found = analysis.analyze(shipped, load_corpus(CorpusName(shipped.split)))
    return _print_and_store(found, analysis.DIRECTORY)


def _print_and_store(result: dict[str, Any], directory: Path) -> int:
    print(json.dumps(result, indent=2, ensure_ascii=False))
    path = scores.store(result, directory=directory)
    print(f"stored in {path}", file=sys.stderr)
    return 0


def _compare(options: argparse.Namespace) -> int:
    result = scores.compare(options.name, options.file, CorpusName(options.corpus))
    print(json.dumps(result, indent=2, ensure_ascii=False))
    if options.store:
        path = scores.store(result, directory=scores.OTHERS)
        print(f"stored in {path}", file=sys.stderr)
    return 0


def _ship(options: argparse.Namespace) -> int:
    recipe = load_recipe(options.recipe)
    paths = [p / "model.safetensors" if p.is_dir() else p for p in options.models]
    models = [load_model(path) for path in paths]
    for path, saved in zip(paths, models, strict=True):
        config = recipe.model_config(
            len(saved.source_vocabulary), len(saved.target_vocabulary)
        )
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
