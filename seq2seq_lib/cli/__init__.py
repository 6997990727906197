"""The command line: from training a model to using it."""

import argparse
import os
import sys
from collections.abc import Sequence

from seq2seq_lib.cli import grade, packing, predict, scoring, train


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
    for group in (train, scoring, packing, predict, grade):
        group.add_commands(commands)
    return parser
