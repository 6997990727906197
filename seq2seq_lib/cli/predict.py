"""The commands that use trained models: pronounce and translate."""

import argparse
import dataclasses
import io
import sys
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import islice

from seq2seq_lib.data.subwords import SubwordVocabulary
from seq2seq_lib.evaluation import decode
from seq2seq_lib.models.saved import SavedModel, source_symbols
from seq2seq_lib.pretrained.weights import PretrainedModel, open_model
from seq2seq_lib.search import SearchConfig, beam_search
from seq2seq_lib.tasks.translation import translates

PRONOUNCER = "pronunciation-transformer"
TRANSLATOR = "translation-de-en"
ALTERNATIVES = 3
TOGETHER = 4096
"""Lines of standard input that are read before they are answered, shortest first."""
LONGEST = 200
"""Symbols of a line: far beyond any word or sentence the models have seen."""


@dataclass(frozen=True)
class Answer:
    """What a model says to one line.

    Attributes:
        line: what was asked.
        outputs: as text with their scores, the best first; none if it cannot answer.
        problem: why it cannot; empty if it can.
    """

    line: str
    outputs: list[tuple[str, float]]
    problem: str = ""


def chosen_search(saved: SavedModel, options: argparse.Namespace) -> SearchConfig:
    """The options given, for the rest those on the model's card or the usual ones."""
    card = saved.card.search if isinstance(saved, PretrainedModel) else {}
    names = [field.name for field in dataclasses.fields(SearchConfig)]
    given = {name: getattr(options, name) for name in names}
    given = {name: value for name, value in given.items() if value is not None}
    return SearchConfig(**{**card, **given})


def add_search(command: argparse.ArgumentParser) -> None:
    """Add the options of the search, by default those on the model's card."""
    command.add_argument("--width", type=int, help="of the beam")
    command.add_argument("--alpha", type=float, help="more of it favours long outputs")
    command.add_argument("--max-length", type=int, help="symbols of an output, at most")


def answers(
    saved: SavedModel, lines: Iterable[str], *, search: SearchConfig, n_best: int
) -> Iterator[Answer]:
    """Pronounce or translate line by line, in the order of the lines.

    Args:
        saved: what answers.
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
    remaining = iter(lines)
    while chunk := [line.strip() for line in islice(remaining, TOGETHER)]:
        problems = [problem(saved, line) for line in chunk]
        sources = [
            prepare(saved, line)
            for line, odd in zip(chunk, problems, strict=True)
            if not odd
        ]
        found = iter(decode(saved, sources, search=find) if sources else [])
        for line, odd in zip(chunk, problems, strict=True):
            hypotheses = [] if odd else next(found).hypotheses
            outputs = [(_text(saved, h.tokens), h.score) for h in hypotheses]
            yield Answer(line, outputs, odd)


def prepare(saved: SavedModel, line: str) -> str:
    """A line in the spelling that the model was trained on."""
    return line if translates(saved) else line.lower().replace("’", "'")


def problem(saved: SavedModel, line: str) -> str:
    """Why a line cannot be answered; empty if it can."""
    source = prepare(saved, line)
    if not source:
        return "an empty line"
    vocabulary = source_symbols(saved)
    length = len(vocabulary.encode(source))
    if length > LONGEST:
        return f"{length} symbols, of which at most {LONGEST} are read at once"
    if not translates(saved) and (
        odd := sorted({letter for letter in source if letter not in vocabulary})
    ):
        known = "".join(vocabulary.symbols[4:])
        return f"no letter {' or '.join(map(repr, odd))} among those known, {known}"
    return ""


def _text(saved: SavedModel, tokens: Sequence[int]) -> str:
    vocabulary = saved.target_vocabulary
    if isinstance(vocabulary, SubwordVocabulary):
        return vocabulary.text(tokens)
    return " ".join(vocabulary.decode(tokens))


def add_commands(
    commands: "argparse._SubParsersAction[argparse.ArgumentParser]",
) -> None:
    """Add both commands to those of the program."""
    for name, what, default, example in (
        ("pronounce", "words", PRONOUNCER, "knight"),
        ("translate", "sentences", TRANSLATOR, '"Ein Hund läuft."'),
    ):
        command = commands.add_parser(
            name,
            help=f"{name} {what} with a trained model",
            description=f"{name.capitalize()} {what}, as in: seq2seq {name} {example}. "
            "Without any, standard input is read, one on each line.",
            epilog="Exit code 1 if a line could not be answered; standard error says "
            "which and why.",
        )
        command.add_argument("lines", nargs="*", metavar=what, help="what to answer")
        command.add_argument("--model", default=default, help="its name, or a file")
        command.add_argument(
            "--best", action="store_true", help="one line of output for each input"
        )
        add_search(command)
        command.set_defaults(run=_run)


def _run(options: argparse.Namespace) -> int:
    saved = open_model(options.model)
    translating = options.command == "translate"
    if translates(saved) is not translating:
        raise ValueError(
            f"{options.model} was trained on {saved.split!r} and cannot "
            f"{options.command}: choose another --model."
        )
    search = chosen_search(saved, options)
    best = options.best or (translating and not options.lines)
    lines = options.lines or read(sys.stdin)
    failed = False
    for answer in answers(
        saved, lines, search=search, n_best=1 if best else ALTERNATIVES
    ):
        for line in show(answer, best=best, named=not translating):
            print(line)
        # an empty line has an empty translation; nothing went wrong
        if answer.problem and (answer.line or not translating):
            print(f"{answer.line[:60]!r}: {answer.problem}", file=sys.stderr)
            failed = True
    return int(failed)


def read(stream: Iterable[str]) -> Iterator[str]:
    """The lines of a text, whatever bytes it holds."""
    if isinstance(stream, io.TextIOWrapper):
        stream.reconfigure(encoding="utf-8", errors="replace")
    yield from stream


def show(answer: Answer, *, best: bool, named: bool) -> Iterator[str]:
    """The lines to print: the outputs, with the question before and scores behind.

    Args:
        answer: what to show.
        best: the best output alone, without its score.
        named: the question stands before the output.
    """
    start = f"{answer.line}\t" if named else ""
    if not answer.outputs:
        yield start
    for text, score in answer.outputs[: 1 if best else None]:
        yield start + text + ("" if best else f"\t{score:.3f}")
