"""The command ``seq2seq analyze``."""

import argparse

from seq2seq_lib.cli.options import (
    add_device,
    add_store,
    chosen_device,
    print_and_store,
)
from seq2seq_lib.data import CorpusName, load_corpus
from seq2seq_lib.pretrained import load
from seq2seq_lib.pretrained.scoring import error_analysis


def analyze(command: argparse.ArgumentParser) -> None:
    """Count what a translator gets wrong."""
    command.description = (
        "Describe the corpus of a model that translates and its errors on the "
        "development part, as counts without a sentence of the corpus."
    )
    command.add_argument("model", help="the name of a model")
    add_store(command, "results/analyses/MODEL.json")
    add_device(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    model = load(options.model, device=chosen_device(options))
    found = error_analysis(model, load_corpus(CorpusName(model.split)))
    return print_and_store(found, options, "analyses")
