"""The command ``seq2seq evaluate``."""

import argparse
import json

from seq2seq_lib.cli.options import (
    add_device,
    add_store,
    check_count,
    chosen_device,
    print_and_store,
)
from seq2seq_lib.cli.predict import add_search, chosen_search
from seq2seq_lib.data import Corpus, CorpusName, load_corpus
from seq2seq_lib.evaluation import measure
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.pretrained import PretrainedModel, names, open_model
from seq2seq_lib.pretrained.scoring import evaluation
from seq2seq_lib.search import SearchConfig


def evaluate(command: argparse.ArgumentParser) -> None:
    """Measure a model on the split it was trained for."""
    command.description = (
        "Measure a model on the split it was trained for, by the metrics of its task. "
        "The test part is for the final model only: choose everything on the "
        "development part."
    )
    command.add_argument("model", help="the name of a model, or a file")
    command.add_argument("--part", choices=("dev", "test"), default="dev")
    command.add_argument(
        "--corpus",
        choices=[name.value for name in CorpusName],
        help="the split expected; a model trained on another one is refused",
    )
    add_search(command)
    command.add_argument("--words", type=int, help="only so many words (default: all)")
    add_store(command, "results/evaluations/MODEL.json, with intervals,")
    add_device(command)
    command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    saved = open_model(options.model, device=chosen_device(options))
    search = chosen_search(saved, options)
    if options.corpus and options.corpus != saved.split:
        raise ValueError(
            f"{options.model} was trained on {saved.split}, not on {options.corpus}: "
            "the splits overlap, so the score would mean nothing. Leave --corpus out "
            "to use the right one."
        )
    if saved.split not in list(CorpusName):
        raise ValueError(
            f"{options.model} was trained on {saved.split!r}, which this command "
            "cannot read: measure it with seq2seq_lib.evaluation.measure."
        )
    check_count(options.words)
    corpus = load_corpus(CorpusName(saved.split))
    if options.store:
        return _store(saved, corpus, search, options)
    examples = getattr(corpus, options.part)[: options.words]
    metrics = measure(saved, examples, search=search.search())
    about = {
        "model": str(options.model),
        "split": saved.split,
        "part": options.part,
        "words": len(examples),
    }
    print(json.dumps({**about, **metrics}, indent=2))
    return 0


def _store(
    saved: SavedModel, corpus: Corpus, search: SearchConfig, options: argparse.Namespace
) -> int:
    if type(saved) is not PretrainedModel:
        raise ValueError(
            f"--store with {options.model}: only scores of models that come with the "
            f"library are stored, {', '.join(names()) or 'none yet'}. Use seq2seq "
            "publish."
        )
    if options.part != "test" or options.words:
        raise ValueError(
            "--store writes the score of the whole test part: give --part test, and "
            "leave --words out."
        )
    if search != SearchConfig(**saved.card.search):
        raise ValueError(
            f"--store with other search options than the card's, {saved.card.search}: "
            "leave them out, or choose them on the development part and publish again."
        )
    return print_and_store(evaluation(saved, corpus.test), options, "evaluations")
