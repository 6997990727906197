"""The commands that score: evaluate, compare, tune and analyze."""

import argparse
import json
import sys
from pathlib import Path
from typing import Any

from seq2seq_lib.cli import predict as answers
from seq2seq_lib.cli.devices import add_device, chosen_device
from seq2seq_lib.data import Corpus, CorpusName, load_corpus
from seq2seq_lib.evaluation import analysis, scores, tuning
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.pretrained.weights import PretrainedModel, load, names, open_model
from seq2seq_lib.search import SearchConfig
from seq2seq_lib.tasks.translation import measure


def add_commands(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add evaluate, compare, tune and analyze to the commands of the program."""
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
    add_device(command)
    command.set_defaults(run=_evaluate)

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
    add_device(command)
    command.set_defaults(run=_tune)

    command = commands.add_parser(
        "analyze",
        help="count what a translator of the library gets wrong, and store it",
        description="Describe the corpus of a model that translates and its errors on "
        "the development part, as counts that are stored in the library.",
    )
    command.add_argument("model", help="the name of a model")
    add_device(command)
    command.set_defaults(run=_analyze)


def _evaluate(options: argparse.Namespace) -> int:
    saved = open_model(options.model, device=chosen_device(options))
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
            "cannot read: measure it with seq2seq_lib.tasks.translation.measure."
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
    if type(saved) is not PretrainedModel:
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


def _compare(options: argparse.Namespace) -> int:
    result = scores.compare(options.name, options.file, CorpusName(options.corpus))
    print(json.dumps(result, indent=2, ensure_ascii=False))
    if options.store:
        path = scores.store(result, directory=scores.OTHERS)
        print(f"stored in {path}", file=sys.stderr)
    return 0


def _tune(options: argparse.Namespace) -> int:
    shipped = load(options.model, device=chosen_device(options))
    if options.words < 1:
        raise ValueError(f"--words {options.words}: expected at least 1.")
    examples = load_corpus(CorpusName(shipped.split)).dev[: options.words]
    table = tuning.tune(shipped, examples, widths=options.widths, alphas=options.alphas)
    return _print_and_store(table, tuning.DIRECTORY)


def _analyze(options: argparse.Namespace) -> int:
    shipped = load(options.model, device=chosen_device(options))
    found = analysis.analyze(shipped, load_corpus(CorpusName(shipped.split)))
    return _print_and_store(found, analysis.DIRECTORY)


def _print_and_store(result: dict[str, Any], directory: Path) -> int:
    print(json.dumps(result, indent=2, ensure_ascii=False))
    path = scores.store(result, directory=directory)
    print(f"stored in {path}", file=sys.stderr)
    return 0
