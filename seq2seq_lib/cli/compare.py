"""The command ``seq2seq compare``."""

import argparse
from pathlib import Path

from seq2seq_lib.cli.options import add_store, print_and_store
from seq2seq_lib.data import CorpusName, load_corpus
from seq2seq_lib.evaluation.scores import read_pronunciations, score_pronouncer
from seq2seq_lib.tasks import TASKS


def compare(command: argparse.ArgumentParser) -> None:
    """Score what another program pronounced, on the same test words."""
    command.description = (
        "Score a file with a word, a tab and its phonemes on each line. Digits of "
        "stress are ignored."
    )
    command.add_argument("name", help="of the program, with its version")
    command.add_argument("file", type=Path, help="what it wrote")
    command.add_argument(
        "--corpus",
        choices=[name.value for name in CorpusName if TASKS[name.task].words],
        default=CorpusName.PRONALSYL.value,
    )
    add_store(command, "results/evaluations/others/NAME.json")
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    name = CorpusName(options.corpus)
    examples = load_corpus(name).test
    written = read_pronunciations(options.file, examples)
    about = {"model": options.name, "split": name.value, "part": "test"}
    scored = score_pronouncer(TASKS[name.task], written.__getitem__, examples)
    result = {**about, "examples": len(examples), **scored}
    return print_and_store(result, options, "evaluations/others")
