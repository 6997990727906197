"""The commands that use trained models: predict, pronounce and translate."""

import argparse
import dataclasses
import io
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from itertools import islice

from seq2seq_lib.data.examples import TaskName
from seq2seq_lib.evaluation import find_outputs
from seq2seq_lib.models.saved import SavedModel, source_symbols
from seq2seq_lib.pretrained import PretrainedModel, open_model
from seq2seq_lib.search import SearchConfig, beam_search
from seq2seq_lib.tasks import TASKS

PRONOUNCER = "pronunciation-transformer"
TRANSLATOR = "translation-de-en"
ALTERNATIVES = 3
LINES_READ = 4096
"""Lines of standard input that are read before outputs are searched."""
LONGEST = 200
"""Symbols of a line: far beyond any word or sentence the models have seen."""


@dataclass(frozen=True)
class Prediction:
    """What a model outputs for one line.

    Attributes:
        line: what was typed.
        outputs: as text with their scores, the best first; none if there is a problem.
        problem: why the line cannot be read; empty if it can.
    """

    line: str
    outputs: list[tuple[str, float]]
    problem: str = ""


def predict(command: argparse.ArgumentParser) -> None:
    """Any model, by default the one that pronounces."""
    _add_arguments(command, "knight", PRONOUNCER)


def pronounce(command: argparse.ArgumentParser) -> None:
    """A model that pronounces."""
    _add_arguments(command, "knight", PRONOUNCER, TaskName.PRONUNCIATION)


def translate(command: argparse.ArgumentParser) -> None:
    """A model that translates."""
    _add_arguments(command, '"Ein Hund läuft."', TRANSLATOR, TaskName.TRANSLATION)


def _add_arguments(
    command: argparse.ArgumentParser,
    example: str,
    model: str,
    task: TaskName | None = None,
) -> None:
    command.description = (
        f"Print the outputs of a trained model, as in: {command.prog} {example}. "
        "Without any words, standard input is read, one word or sentence on each line."
    )
    command.epilog = (
        "Exit code 1 if a line could not be read; standard error says which and why."
    )
    command.add_argument("lines", nargs="*", metavar="WORD", help="or a sentence")
    command.add_argument(
        "--model", default=model, help="its name, or a file (default: %(default)s)"
    )
    command.add_argument(
        "--best", action="store_true", help="one line of output for each input"
    )
    add_search(command)
    command.set_defaults(run=_run, task=task)


def add_search(command: argparse.ArgumentParser) -> None:
    """Add the options of the search, by default those on the model's card."""
    command.add_argument("--width", type=int, help="of the beam")
    command.add_argument("--alpha", type=float, help="more of it favours long outputs")
    command.add_argument("--max-length", type=int, help="symbols of an output, at most")


def chosen_search(saved: SavedModel, options: argparse.Namespace) -> SearchConfig:
    """The options given, for the rest those on the model's card or the usual ones."""
    card = saved.card.search if isinstance(saved, PretrainedModel) else {}
    names = [field.name for field in dataclasses.fields(SearchConfig)]
    given = {name: getattr(options, name) for name in names}
    given = {name: value for name, value in given.items() if value is not None}
    return SearchConfig(**{**card, **given})


def _run(options: argparse.Namespace) -> int:
    saved = open_model(options.model)
    if options.task not in (None, saved.task):
        raise ValueError(
            f"{options.model} was trained for {saved.task}, not for {options.task}: "
            "choose another --model, or use seq2seq predict."
        )
    words = TASKS[saved.task].words
    search = chosen_search(saved, options)
    best = options.best or (not words and not options.lines)
    found = predictions(
        saved,
        options.lines or read(sys.stdin),
        search=search,
        n_best=1 if best else ALTERNATIVES,
    )
    failed = False
    for one in found:
        for line in show(one, best=best, with_source=words):
            print(line)
        # an empty line of a text has an empty translation; nothing went wrong
        if one.problem and (one.line or words):
            print(f"{one.line[:60]!r}: {one.problem}", file=sys.stderr)
            failed = True
    return int(failed)


def predictions(
    saved: SavedModel, lines: Iterable[str], *, search: SearchConfig, n_best: int
) -> Iterator[Prediction]:
    """Search outputs line by line, in the order of the lines.

    Args:
        saved: a model with its vocabularies.
        lines: words or sentences.
        search: how outputs are found.
        n_best: how many outputs for each line, at most.
    """
    find = partial(
        beam_search,
        width=search.width,
        alpha=search.alpha,
        max_length=search.max_length,
        n_best=min(n_best, search.width),
    )
    task, vocabulary = TASKS[saved.task], saved.target_vocabulary
    remaining = iter(lines)
    while chunk := [line.strip() for line in islice(remaining, LINES_READ)]:
        encoded = [encode(saved, line) for line in chunk]
        readable = [numbers for numbers, problem in encoded if not problem]
        found = iter(find_outputs(saved.model, readable, search=find))
        for line, (_, problem) in zip(chunk, encoded, strict=True):
            hypotheses = [] if problem else next(found).hypotheses
            outputs = [
                (task.text(task.output(one.tokens, vocabulary)), one.score)
                for one in hypotheses
            ]
            yield Prediction(line, outputs, problem)


def encode(saved: SavedModel, line: str) -> tuple[list[int], str]:
    """The numbers of a line that was typed, and why it cannot be read, if so."""
    task, vocabulary = TASKS[saved.task], source_symbols(saved)
    source = task.prepare(line)
    if not source:
        return [], "an empty line"
    numbers = vocabulary.encode(source)
    if len(numbers) > LONGEST:
        problem = f"{len(numbers)} symbols, of which at most {LONGEST} are read at once"
        return numbers, problem
    return numbers, task.refusal(source, vocabulary)


def read(stream: Iterable[str]) -> Iterator[str]:
    """The lines of a text, whatever bytes it holds."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="replace")
    yield from stream


def show(one: Prediction, *, best: bool, with_source: bool) -> Iterator[str]:
    """The lines to print: outputs, maybe with the source before and scores behind.

    Args:
        one: what to show.
        best: the best output alone, without its score.
        with_source: the source stands before each output.
    """
    start = f"{one.line}\t" if with_source else ""
    if not one.outputs:
        yield start
    for text, score in one.outputs[: 1 if best else None]:
        yield start + text + ("" if best else f"\t{score:.3f}")
