"""Chapter 12: what a translator gets wrong, and what its corpus is made of.

Computed on the development part, so that the test part stays unseen, as counts and
rates without a sentence of the corpus.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import pairwise, product
from typing import Any

import sacrebleu
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from seq2seq_lib.data.examples import Corpus, Example
from seq2seq_lib.evaluation.decoding import best_outputs
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.search import SearchConfig
from seq2seq_lib.tasks import TASKS, Task

SEEN = (0, 1, 6, 51, 501, 1_000_000)
"""Limits of how often a word was seen in training."""
_COLOURS = "rot blau grün gelb schwarz weiß braun orange rosa lila grau"
_ENDINGS = ("", "e", "en", "er", "es", "em")
KINDS: Mapping[str, Mapping[str, frozenset[str]]] = {
    language: {kind: frozenset(words.split()) for kind, words in kinds.items()}
    for language, kinds in {
        "en": {
            "articles": "a an the",
            "numbers": "one two three four five six seven eight nine ten several many",
            "colours": "red blue green yellow black white brown orange pink purple "
            "gray",
            "people": "man men woman women boy boys girl girls child children person "
            "people",
            "prepositions": "in on at with of from to into through over by near under "
            "behind beside along around across down up off",
            "forms of be": "is are was were being",
        },
        "de": {
            "articles": "der die das den dem des ein eine einen einem einer eines",
            "numbers": "zwei drei vier fünf sechs sieben acht neun zehn mehrere viele",
            "colours": " ".join(map("".join, product(_COLOURS.split(), _ENDINGS))),
            "people": "mann männer männern frau frauen junge jungen mädchen kind "
            "kinder kindern person personen leute leuten menschen",
            "prepositions": "in im ins auf an am ans mit von vom aus zu zum zur durch "
            "über bei beim neben unter hinter vor entlang um nach",
            "forms of be": "ist sind war waren sein",
        },
    }.items()
}
"""Words of one kind in each language, all frequent in captions."""


def analyze(
    saved: SavedModel, corpus: Corpus, *, search: SearchConfig
) -> dict[str, Any]:
    """The corpus of a translator, and its errors on the development part.

    Args:
        saved: a model with its vocabularies.
        corpus: the one it was trained on.
        search: how translations are found.

    Raises:
        ValueError: the model was trained on something else, or not on sentences.
    """
    if saved.split != corpus.name or corpus.target_language not in KINDS:
        raise ValueError(
            f"this model was trained on {saved.split} and the corpus is {corpus.name}: "
            "expected a model that translates into one of the languages "
            f"{', '.join(KINDS)}, and its own corpus."
        )
    sources = [example.source for example in corpus.dev]
    outputs = best_outputs(saved, sources, search=search.search())
    return {"corpus": describe(corpus), **errors(outputs, corpus)}


def source_of(example: Example) -> str:
    """The sentence to translate."""
    return "".join(example.source)


def target_of(example: Example) -> str:
    """Its first translation."""
    return "".join(example.references[0])


def words_of(sentence: str) -> list[str]:
    """Lower-cased words, and punctuation by itself, as BLEU cuts them.

    >>> words_of("A dog, running.")
    ['a', 'dog', ',', 'running', '.']
    """
    cut = Tokenizer13a()(sentence.lower())  # type: ignore[no-untyped-call]
    return str(cut).split()


def describe(corpus: Corpus) -> dict[str, Any]:
    """How large a corpus of sentences is, and what the words of each side are like."""
    vocabulary = corpus.target_vocabulary  # both sides share it

    def side(text_of: Callable[[Example], str]) -> dict[str, Any]:
        seen = word_counts(corpus.train, text_of)
        dev = [text_of(example) for example in corpus.dev]
        cut = [words_of(sentence) for sentence in dev]
        words = [word for sentence in cut for word in sentence]
        symbols = {
            "words": len(words),
            "pieces": sum(len(vocabulary.encode(sentence)) for sentence in dev),
            "characters": sum(map(len, dev)),
        }
        # as they are written, because nouns are cut otherwise when lower-cased
        letters = (w for sentence in dev for w in sentence.split() if w.isalpha())
        pieces = Counter(len(vocabulary.encode(word)) for word in letters)
        return {
            "words": seen.total(),
            "different_words": len(seen),
            "seen_once": sum(count == 1 for count in seen.values()),
            "dev_symbols": symbols,
            "dev_words_never_seen": sum(not seen[word] for word in words),
            "dev_sentences_with_such": sum(not all(map(seen.get, s)) for s in cut),
            "pieces_of_a_dev_word": [[n, pieces[n]] for n in sorted(pieces)],
        }

    parts = {"train": corpus.train, "dev": corpus.dev, "test": corpus.test}
    return {
        "pairs": {name: len(part) for name, part in parts.items()},
        "pieces": len(vocabulary),
        "source": side(source_of),
        "target": side(target_of),
    }


def word_counts(
    examples: Sequence[Example], text_of: Callable[[Example], str]
) -> Counter[str]:
    """How often each word occurs on one side."""
    return Counter(word for example in examples for word in words_of(text_of(example)))


def errors(outputs: Sequence[str], corpus: Corpus) -> dict[str, Any]:
    """What is missing in translations, by length, by rarity and by kind of word.

    Args:
        outputs: the translations of the development part.
        corpus: what the model has seen, and what was translated.
    """
    task: Task[Any] = TASKS[corpus.task]
    examples = corpus.dev
    whole = sacrebleu.BLEU().corpus_score(outputs, [[*map(target_of, examples)]])
    targets = word_counts(corpus.train, target_of)
    sources = word_counts(corpus.train, source_of)
    known = [all(map(sources.get, words_of(source_of(e)))) for e in examples]
    longer = Counter(
        len(words_of(output)) - len(words_of(target_of(example)))
        for output, example in zip(outputs, examples, strict=True)
    )

    def group(*, seen: bool) -> dict[str, Any]:
        chosen = [n for n, one in enumerate(known) if one is seen]
        if not chosen:
            return {"examples": 0}
        found = task.score([outputs[n] for n in chosen], [examples[n] for n in chosen])
        return {"examples": len(chosen), **found}

    return {
        "bleu": {
            "value": whole.score,
            "right": whole.counts,
            "generated": whole.totals,
            "words": whole.sys_len,
            "reference_words": whole.ref_len,
        },
        "words_too_many": [[n, longer[n]] for n in sorted(longer)],
        "by_length": task.by_length(outputs, examples),
        "all_source_words_seen": group(seen=True),
        "some_source_word_never_seen": group(seen=False),
        "by_times_seen": [
            {"from": low, "below": high, **recall(outputs, examples, chosen)}
            for low, high in pairwise(SEEN)
            for chosen in [lambda word, a=low, b=high: a <= targets[word] < b]
        ],
        "by_kind": {
            kind: recall(outputs, examples, members.__contains__)
            for kind, members in KINDS[corpus.target_language].items()
        },
    }


def recall(
    outputs: Sequence[str],
    examples: Sequence[Example],
    chosen: Callable[[str], bool],
) -> dict[str, int]:
    """How many words of the references there are, and how many outputs have them.

    A word that a reference has twice must also be in the output twice.

    Args:
        outputs: the translations.
        examples: what was translated, with its references.
        chosen: which words count.

    >>> one = Example(("ein hund",), (("a dog and a cat",),))
    >>> recall(["a dog"], [one], "a dog".split().__contains__)
    {'words': 3, 'found': 2}
    """
    words = found = 0
    for output, example in zip(outputs, examples, strict=True):
        right = Counter(filter(chosen, words_of(target_of(example))))
        words += right.total()
        found += (right & Counter(words_of(output))).total()
    return {"words": words, "found": found}
