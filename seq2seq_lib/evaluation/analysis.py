"""Chapter 12: what a translator gets wrong, and what its corpus is made of.

Computed on the development part, so that the test part stays unseen, and stored as a
file of counts and rates without a sentence of the corpus.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib import resources
from itertools import pairwise
from pathlib import Path
from typing import Any

import sacrebleu
from sacrebleu.tokenizers.tokenizer_13a import Tokenizer13a

from seq2seq_lib.data.examples import Corpus, Example
from seq2seq_lib.data.subwords import SubwordVocabulary
from seq2seq_lib.evaluation.scores import by_length, values
from seq2seq_lib.pretrained import results
from seq2seq_lib.pretrained.weights import PretrainedModel
from seq2seq_lib.search import SearchConfig
from seq2seq_lib.tasks.translation import translate, translates

DIRECTORY = Path(str(resources.files(results))) / "analyses"

SEEN = (0, 1, 6, 51, 501, 1_000_000)
"""Limits of how often a word was seen in training."""
KINDS: Mapping[str, frozenset[str]] = {
    kind: frozenset(words.split())
    for kind, words in {
        "articles": "a an the",
        "numbers": "one two three four five six seven eight nine ten several many",
        "colours": "red blue green yellow black white brown orange pink purple gray",
        "people": "man men woman women boy boys girl girls child children person "
        "people",
        "prepositions": "in on at with of from to into through over by near under "
        "behind beside along around across down up off",
        "forms of be": "is are was were being",
    }.items()
}
"""English words of one kind, all frequent in captions."""


def analyze(shipped: PretrainedModel, corpus: Corpus) -> dict[str, Any]:
    """Everything the file about a translator holds.

    Args:
        shipped: the model; it is searched with the options of its card.
        corpus: the one it was trained on.

    Raises:
        ValueError: the model does not translate, or was trained on something else.
    """
    if not translates(shipped) or shipped.split != corpus.name:
        raise ValueError(
            f"{shipped.card.name} was trained on {shipped.split}: expected a model "
            f"that translates, and its own corpus instead of {corpus.name}."
        )
    search = SearchConfig(**shipped.card.search)
    outputs = translate(
        shipped, [source_of(example) for example in corpus.dev], search=search.search()
    )
    return {
        "model": shipped.card.name,
        "split": shipped.split,
        "part": "dev",
        "examples": len(corpus.dev),
        "sha256": shipped.card.sha256,
        "search": dict(shipped.card.search),
        "corpus": describe(corpus),
        **errors(outputs, corpus.dev, corpus.train),
    }


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
    vocabulary = corpus.source_vocabulary
    assert isinstance(vocabulary, SubwordVocabulary)

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


def errors(
    outputs: Sequence[str], examples: Sequence[Example], train: Sequence[Example]
) -> dict[str, Any]:
    """What is missing in translations, by length, by rarity and by kind of word.

    Args:
        outputs: the translations.
        examples: what was translated, with its references.
        train: the examples the model has seen.
    """
    whole = sacrebleu.BLEU().corpus_score(outputs, [[*map(target_of, examples)]])
    english = word_counts(train, target_of)
    german = word_counts(train, source_of)
    known = [all(map(german.get, words_of(source_of(e)))) for e in examples]
    longer = Counter(
        len(words_of(output)) - len(words_of(target_of(example)))
        for output, example in zip(outputs, examples, strict=True)
    )

    def group(*, seen: bool) -> dict[str, Any]:
        chosen = [n for n, one in enumerate(known) if one is seen]
        if not chosen:
            return {"examples": 0}
        found = values([outputs[n] for n in chosen], [examples[n] for n in chosen])
        return {"examples": len(chosen), **found}

    return {
        "bleu": {
            "value": whole.score,
            "right": whole.counts,
            "said": whole.totals,
            "words": whole.sys_len,
            "reference_words": whole.ref_len,
        },
        "words_too_many": [[n, longer[n]] for n in sorted(longer)],
        "by_length": by_length(outputs, examples),
        "all_source_words_seen": group(seen=True),
        "some_source_word_never_seen": group(seen=False),
        "by_times_seen": [
            {"from": low, "below": high, **recall(outputs, examples, chosen)}
            for low, high in pairwise(SEEN)
            for chosen in [lambda word, a=low, b=high: a <= english[word] < b]
        ],
        "by_kind": {
            kind: recall(outputs, examples, members.__contains__)
            for kind, members in KINDS.items()
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
