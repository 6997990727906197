"""The command line: from training a model to using it.

A command is a function that adds its arguments to a parser and says what runs. Its
module is imported only when the command is chosen.
"""

import argparse
import os
import sys
from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import NamedTuple


class Command(NamedTuple):
    """Where a command is defined, and what it does in a line."""

    module: str
    function: str
    help: str


USERS: Mapping[str, Command] = {
    "predict": Command("predict", "predict", "outputs of a model for words or lines"),
    "pronounce": Command("predict", "pronounce", "how words are pronounced"),
    "translate": Command("predict", "translate", "translations of sentences"),
    "train": Command("train", "train", "run a recipe, or go on with it"),
    "evaluate": Command("evaluate", "evaluate", "the metrics of a trained model"),
    "export": Command("export", "export", "write a Transformer for another engine"),
    "grade": Command("grade", "grade", "score the notebooks of an exercise"),
    "autograder": Command("grade", "autograder", "write the zip for Gradescope"),
}
AUTHORS: Mapping[str, Command] = {
    "publish": Command("publish", "publish", "store a trained model with its card"),
    "experiment": Command("experiment", "experiment", "run seeds of an experiment"),
    "tune": Command("tune", "tune", "try several searches on development examples"),
    "analyze": Command("analyze", "analyze", "count what a translator gets wrong"),
    "compare": Command("compare", "compare", "score what another program pronounced"),
}
COMMANDS = {**USERS, **AUTHORS}


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the command line; what the reader did wrong becomes one clear line."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    name = _name(given[:1])
    command = COMMANDS[name]
    module = import_module(f"seq2seq_lib.cli.{command.module}")
    parser = argparse.ArgumentParser(prog=f"seq2seq {name}")
    getattr(module, command.function)(parser)
    options = parser.parse_args(given[1:])
    try:
        return int(options.run(options))
    except BrokenPipeError:  # the reader of our output, such as head, has enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except (ValueError, OSError, FloatingPointError) as error:
        print(f"{parser.prog}: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("\nstopped", file=sys.stderr)
        return 130


def _name(first: Sequence[str]) -> str:
    """The name of a command, unless help is asked for or due."""
    groups = {"commands": USERS, "for authors of the library": AUTHORS}
    lines = []
    for title, commands in groups.items():
        lines += ["", f"{title}:"]
        lines += [f"  {name:<11} {one.help}" for name, one in commands.items()]
    parser = argparse.ArgumentParser(
        prog="seq2seq",
        usage="seq2seq COMMAND …  (seq2seq --help lists the commands)",
        description="Train, evaluate and use the models of the course.",
        epilog="\n".join([*lines[1:], "", "seq2seq COMMAND --help says more."]),
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("command", choices=COMMANDS, help=argparse.SUPPRESS)
    return str(parser.parse_args(first).command)
