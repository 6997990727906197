"""Final scores, written to small files from which everything else quotes.

A file belongs to one model that comes with the library and is tied to its weights by
their checksum. It also holds the score of a sample, which a test computes again.
"""

import dataclasses
import json
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

from seq2seq_lib.data import CorpusName, load_corpus
from seq2seq_lib.data.examples import Example
from seq2seq_lib.evaluation.decoding import decode
from seq2seq_lib.files import write_whole
from seq2seq_lib.metrics import (
    Score,
    bleu,
    bootstrap_interval,
    chrf,
    count_errors,
    word_bleu,
)
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.pretrained import results
from seq2seq_lib.pretrained.weights import PretrainedModel
from seq2seq_lib.search import SearchConfig
from seq2seq_lib.tasks.translation import translate, translates

DIRECTORY = Path(str(resources.files(results))) / "evaluations"
SAMPLE = 300
"""How many of the first test examples are scored again by a test."""
OTHERS = DIRECTORY / "others"
"""Where scores of other programs are."""
DRAWS = 1000
"""How often the examples are drawn anew for an interval."""

TOLERANCE = {"wer": 0.01, "per": 0.004, "bleu": 0.5, "chrf": 0.5}
"""How far a score of the sample may move: another machine rounds differently, so now
and then another of two nearly equal outputs is the best."""

LETTERS = (1, 5, 7, 9, 11, 100)
WORDS = (1, 9, 12, 15, 100)

KINDS: Mapping[str, Callable[[Example], bool]] = {
    "ends in s": lambda word: word.source[-1] == "s",
    "ends in ed or ing": lambda word: "".join(word.source).endswith(("ed", "ing")),
    "has an apostrophe": lambda word: "'" in word.source,
    "has a doubled letter": lambda word: any(a == b for a, b in pairwise(word.source)),
    "a sound for each letter": lambda word: _silent(word) == 0,
    "two letters more than sounds": lambda word: _silent(word) >= 2,
    "more sounds than letters": lambda word: _silent(word) < 0,
    "several pronunciations": lambda word: len(word.references) > 1,
}
"""Kinds of words that can be told from spelling and first pronunciation; they overlap,
and many words are of no kind."""


def outputs_of(
    saved: SavedModel, examples: Sequence[Example], search: SearchConfig
) -> list[Sequence[str]]:
    """A model's best outputs: sentences if it translates, else lists of symbols."""
    sources = ["".join(example.source) for example in examples]
    if translates(saved):
        return [*translate(saved, sources, search=search.search())]
    found = decode(saved, [e.source for e in examples], search=search.search())
    return [saved.target_vocabulary.decode(one.best.tokens) for one in found]


def score_pronunciations(
    outputs: Sequence[Sequence[str]], examples: Sequence[Example]
) -> dict[str, dict[str, Any]]:
    """WER and PER as shares, with their intervals and how they were computed."""
    errors = count_errors(outputs, [example.references for example in examples])
    ones = [1] * len(errors)
    wrong = [int(one.edits > 0) for one in errors]
    edits, symbols = [e.edits for e in errors], [e.symbols for e in errors]
    how = f"any reference|bootstrap over words:{DRAWS}|seed:0"
    return {
        name: {
            "value": sum(parts) / sum(wholes),
            "interval": bootstrap_interval(parts, wholes, samples=DRAWS),
            "signature": f"{name}|{how}",
        }
        for name, parts, wholes in (("wer", wrong, ones), ("per", edits, symbols))
    }


def score_translations(
    outputs: Sequence[str], examples: Sequence[Example]
) -> dict[str, dict[str, Any]]:
    """BLEU, chrF and the BLEU of lower-cased words, from 0 to 100, with intervals."""
    references = [["".join(one) for one in e.references] for e in examples]
    metrics: dict[str, Callable[..., Score]] = {
        "bleu": bleu,
        "chrf": chrf,
        "word_bleu": word_bleu,
    }
    return {
        name: dataclasses.asdict(metric(outputs, references, bootstrap=DRAWS))
        for name, metric in metrics.items()
    }


def score_pronouncer(
    pronounce: Callable[[str], Sequence[str]], examples: Sequence[Example]
) -> dict[str, Any]:
    """The error rates of any program that pronounces, on the same words as ours.

    Args:
        pronounce: gives the phonemes of a word. Digits of stress are taken off, and
            what is no letter then, such as spaces and punctuation, is left out.
        examples: words with every right pronunciation.
    """
    outputs = []
    for example in examples:
        said = (symbol.rstrip("012") for symbol in pronounce("".join(example.source)))
        outputs.append([symbol for symbol in said if symbol.isalpha()])
    return {
        "metrics": score_pronunciations(outputs, examples),
        "by_length": by_length(outputs, examples),
        "by_kind": by_kind(outputs, examples),
    }


def compare(name: str, path: Path, corpus: CorpusName) -> dict[str, Any]:
    """Score what another program said, which may live in another environment.

    Args:
        name: of the program, with its version.
        path: a file with a word, a tab and its phonemes on every line, as
            ``seq2seq pronounce --best`` writes it.
        corpus: whose test words are scored.

    Raises:
        ValueError: the corpus is not one of words, or words are missing in the file.
    """
    if "wer" not in corpus.metrics:
        raise ValueError(f"{corpus} is scored in {corpus.metrics}, not word by word.")
    lines = (line.partition("\t") for line in path.read_text("utf-8").splitlines())
    said = {word.lower(): phonemes.split() for word, _, phonemes in lines}
    examples = load_corpus(corpus).test
    words = ["".join(example.source) for example in examples]
    if missing := [word for word in words if word not in said]:
        raise ValueError(
            f"{path} lacks {len(missing)} of the {len(words)} test words, first "
            f"{missing[0]!r}: every word needs a line, with nothing behind the tab if "
            "the program has no answer."
        )
    scored = score_pronouncer(said.__getitem__, examples)
    about = {"model": name, "split": corpus.value, "part": "test"}
    return {**about, "examples": len(examples), **scored}


def by_length(
    outputs: Sequence[Sequence[str]], examples: Sequence[Example]
) -> list[dict[str, Any]]:
    """The scores of short and of long sources, without intervals.

    Sentences are as long as their words are many, words as their letters.
    """
    sentences = all(isinstance(output, str) for output in outputs)
    limits = WORDS if sentences else LETTERS
    rows = []
    for low, high in pairwise(limits):
        chosen = [
            (output, example)
            for output, example in zip(outputs, examples, strict=True)
            if low <= _length(example, sentences=sentences) < high
        ]
        if chosen:
            said, those = map(list, zip(*chosen, strict=True))
            row = {"from": low, "below": high, "examples": len(said)}
            rows.append({**row, **values(said, those)})
    return rows


def by_kind(
    outputs: Sequence[Sequence[str]], examples: Sequence[Example]
) -> dict[str, dict[str, Any]]:
    """The scores of words of one kind, without intervals; empty kinds are left out."""
    pairs = list(zip(outputs, examples, strict=True))
    found = {}
    for kind, belongs in KINDS.items():
        if chosen := [pair for pair in pairs if belongs(pair[1])]:
            said, those = map(list, zip(*chosen, strict=True))
            found[kind] = {"examples": len(said), **values(said, those)}
    return found


def _silent(word: Example) -> int:
    """How many letters a word has more than its first pronunciation has sounds."""
    return len(word.source) - len(word.references[0])


def _length(example: Example, *, sentences: bool) -> int:
    text = "".join(example.source)
    return len(text.split()) if sentences else len(text)


def values(outputs: Sequence[Any], examples: Sequence[Example]) -> dict[str, float]:
    """BLEU and chrF of sentences, WER and PER of other outputs, without intervals."""
    sentences = all(isinstance(output, str) for output in outputs)
    if sentences:
        references = [["".join(one) for one in e.references] for e in examples]
        return {
            "bleu": bleu(outputs, references).value,
            "chrf": chrf(outputs, references).value,
        }
    errors = count_errors(outputs, [example.references for example in examples])
    return {
        "wer": sum(e.edits > 0 for e in errors) / len(errors),
        "per": sum(e.edits for e in errors) / sum(e.symbols for e in errors),
    }


def evaluate(shipped: PretrainedModel, examples: Sequence[Example]) -> dict[str, Any]:
    """Everything a score file holds about a model that comes with the library.

    Args:
        shipped: the model; it is searched with the options of its card.
        examples: the test part of the split it was trained for.
    """
    card = shipped.card
    search = SearchConfig(**card.search)
    outputs = outputs_of(shipped, examples, search)
    sentences = translates(shipped)
    score: Callable[..., dict[str, Any]] = (
        score_translations if sentences else score_pronunciations
    )
    sample = slice(SAMPLE)
    return {
        "model": card.name,
        "split": card.split,
        "part": "test",
        "examples": len(examples),
        "recipe": card.recipe,
        "averaged": card.averaged,
        "parameters": card.parameters,
        "sha256": card.sha256,
        "search": dict(card.search),
        "metrics": score(outputs, examples),
        "by_length": by_length(outputs, examples),
        **({} if sentences else {"by_kind": by_kind(outputs, examples)}),
        "sample": {
            "examples": len(examples[sample]),
            **values(outputs[sample], examples[sample]),
        },
    }


def store(scores: dict[str, Any], *, directory: Path = DIRECTORY) -> Path:
    """Write a score file, whole or not at all."""
    path = directory / f"{scores['model']}.json"
    text = json.dumps(scores, indent=2, ensure_ascii=False)
    write_whole(path, text + "\n")
    return path


def check(shipped: PretrainedModel, scores: dict[str, Any]) -> None:
    """Score a sample again, and compare with what is stored.

    Args:
        shipped: the model.
        scores: the content of its score file.

    Raises:
        ValueError: the file belongs to other weights, or its figures are not those of
            this model.
    """
    name = shipped.card.name
    examples = load_corpus(CorpusName(shipped.split)).test
    sample = examples[:SAMPLE]
    for key, expected in (
        ("sha256", shipped.card.sha256),
        ("split", shipped.split),
        ("search", shipped.card.search),
        ("examples", len(examples)),
    ):
        if scores[key] != expected:
            raise ValueError(
                f"the score file of {name} has another {key}: {scores[key]}, expected "
                f"{expected}. Run seq2seq evaluate {name} --part test --store."
            )
    outputs = outputs_of(shipped, sample, SearchConfig(**scores["search"]))
    for metric, value in values(outputs, sample).items():
        stored = scores["sample"][metric]
        if not abs(stored - value) <= TOLERANCE[metric]:
            raise ValueError(
                f"{metric} of the first {len(sample)} test examples is {value:.4f}, "
                f"but the score file of {name} says {stored:.4f}."
            )
