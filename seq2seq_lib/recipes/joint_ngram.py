"""A model that is no network: n-grams over pieces of spelling and sound at once.

Letters and sounds of every training word are aligned into pieces, such as ``p|h}F`` or
``e}_``, and an n-gram model counts which pieces follow each other (Bisani and Ney,
2008). It errs on other words than a network does, so it is a good second opinion.
Alignment, counting and search are those of Phonetisaurus (Novak et al., 2016).
"""

import hashlib
import importlib.util
import os
import platform
import subprocess
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from seq2seq_lib.data.examples import Example
from seq2seq_lib.files import sweep, write_whole
from seq2seq_lib.training.distributed import all_gather, rank

ORDER = 8
PROPOSALS = 8
WIDTH = 2000
"""Of the search for proposals."""
BEHIND = 3.0
"""A proposal this much less probable than the best one, in nats, is left out."""
LEFT_OUT = 99.0
"""What Phonetisaurus charges for a letter that it leaves out."""


class Proposal(NamedTuple):
    """One pronunciation; its score is the logarithm of a probability."""

    score: float
    sounds: tuple[str, ...]


class JointNGram:
    """Proposes pronunciations for words.

    Args:
        directory: where the model is kept.
        examples: what it learns from, when that is asked for.
    """

    def __init__(self, directory: Path, examples: Sequence[Example]) -> None:
        self.letters = frozenset(letter for one in examples for letter in one.source)
        self.lexicon = "".join(
            f"{''.join(example.source)}\t{' '.join(sounds)}\n"
            for example in examples
            for sounds in example.references
        )
        options = (ORDER, PROPOSALS, WIDTH, BEHIND)
        text = f"{options}\n{self.lexicon}"
        self.name = hashlib.sha256(text.encode()).hexdigest()[:12]
        self.model = directory / f"ngram-{self.name}.fst"

    def learn(self) -> None:
        """Learn, unless the model is there already.

        Of processes that train together, the first one learns; all have to call it.

        Raises:
            OSError: Phonetisaurus is not installed, or not for this machine.
            RuntimeError: it failed.
        """
        if rank() == 0 and not self.model.exists():
            sweep(self.model)
            write_whole(self.model, _learned(self.lexicon))
        all_gather(None)  # the others wait until it is written

    def propose(self, words: Sequence[str]) -> list[list[Proposal]]:
        """The most probable pronunciations of each word, the best first.

        A word has none if one of its letters was never seen, or only together with
        others; Phonetisaurus by itself would leave that letter out.

        Args:
            words: after ``learn``.

        Raises:
            OSError: Phonetisaurus is not installed, or not for this machine.
            RuntimeError: it failed.
        """
        found: dict[str, list[Proposal]] = {word: [] for word in words}
        readable = filter(self.letters.issuperset, found)
        with tempfile.TemporaryDirectory() as directory:
            file = Path(directory, "words")
            file.write_text("".join(f"{word}\n" for word in readable), encoding="utf-8")
            lines = _run(
                "phonetisaurus-g2pfst",
                f"--model={self.model}",
                f"--wordlist={file}",
                f"--nbest={PROPOSALS}",
                f"--beam={WIDTH}",
            ).splitlines()
        for word, score, *rest in (line.split("\t") for line in lines):
            sounds = tuple(" ".join(rest).split())
            if sounds and float(score) < LEFT_OUT:
                found[word].append(Proposal(-float(score), sounds))
        return [_near_the_best(found[word]) for word in words]


def _near_the_best(proposals: list[Proposal]) -> list[Proposal]:
    ranked = sorted(proposals, reverse=True)
    least = ranked[0].score - BEHIND if ranked else 0.0
    return [one for one in ranked if one.score >= least]


def _learned(lexicon: str) -> bytes:
    with tempfile.TemporaryDirectory() as directory:
        file = partial(Path, directory)
        file("lexicon").write_text(lexicon, encoding="utf-8")
        _run(
            "phonetisaurus-align",
            f"--input={file('lexicon')}",
            f"--ofile={file('pieces')}",
            "--seq1_del=false",  # every letter says something, if only silence
            "--seq2_del=true",
        )
        lines = file("pieces").read_text(encoding="utf-8").splitlines()
        longest = max(len(line.split()) for line in lines)
        # estimate-ngram ends with a segmentation fault if no line is that long
        order = min(ORDER, longest)
        _run(
            "estimate-ngram",
            *("-o", str(order)),
            *("-t", str(file("pieces"))),
            *("-wl", str(file("arpa"))),
        )
        _run(
            "phonetisaurus-arpa2wfst",
            f"--lm={file('arpa')}",
            f"--ofile={file('model')}",
        )
        return file("model").read_bytes()


def _run(program: str, *arguments: str) -> str:
    spec = importlib.util.find_spec("phonetisaurus")
    if spec is None:
        raise FileNotFoundError(
            "a joint n-gram model needs Phonetisaurus. Try: "
            'pip install "seq2seq_lib[distillation]"'
        )
    (home,) = map(Path, spec.submodule_search_locations or ())
    path = home / "bin" / platform.machine() / program
    if not path.exists():
        raise FileNotFoundError(
            f"Phonetisaurus at {home} has no {program} for {platform.system()} on "
            f"{platform.machine()}: learn from teachers without proposals here."
        )
    libraries = home / "lib" / platform.machine()
    done = subprocess.run(  # noqa: S603
        [path, *arguments],
        env={**os.environ, "LD_LIBRARY_PATH": str(libraries)},
        capture_output=True,
        encoding="utf-8",
        check=False,
    )
    if done.returncode:
        raise RuntimeError(
            f"{program} ended with {done.returncode}: {done.stderr.strip()[-300:]}"
        )
    return done.stdout
