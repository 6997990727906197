"""The command ``seq2seq tune``."""

import argparse

from seq2seq_lib.cli.options import (
    add_device,
    add_store,
    check_count,
    chosen_device,
    print_and_store,
)
from seq2seq_lib.data import CorpusName, load_corpus
from seq2seq_lib.evaluation.tuning import ALPHAS, EXAMPLES, WIDTHS
from seq2seq_lib.pretrained import load
from seq2seq_lib.pretrained.scoring import searches


def tune(command: argparse.ArgumentParser) -> None:
    """Score a model on the development part with several searches."""
    command.description = (
        "Score a model that comes with the library with beams of several widths and "
        "exponents of the length, on development examples only."
    )
    command.add_argument("model", help="the name of a model")
    command.add_argument("--widths", type=int, nargs="+", default=WIDTHS)
    command.add_argument("--alphas", type=float, nargs="+", default=ALPHAS)
    command.add_argument(
        "--words",
        type=int,
        default=EXAMPLES,
        help="how many words or sentences (default: %(default)s)",
    )
    add_store(command, "results/searches/MODEL.json")
    add_device(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    model = load(options.model, device=chosen_device(options))
    check_count(options.words)
    examples = load_corpus(CorpusName(model.split)).dev[: options.words]
    table = searches(model, examples, widths=options.widths, alphas=options.alphas)
    return print_and_store(table, options, "searches")
