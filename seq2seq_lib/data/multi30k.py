"""Chapter 12: Multi30k, descriptions of photographs in German and English.

The sentences carry no licence of their own and the photographs' terms are for research
and education: they are downloaded by each reader, and never shipped.
"""

import gzip
from enum import StrEnum

from seq2seq_lib.data.download import RemoteFile, fetch
from seq2seq_lib.data.examples import Corpus, Example, TaskName
from seq2seq_lib.data.subwords import SubwordVocabulary

_ORIGIN = (
    "https://raw.githubusercontent.com/multi30k/dataset/"
    "a3d2e0d26b56f3846f66a952536ffed4e401d05a/data/task1/raw"
)


PIECES = 4_000
"""How many subwords both languages share."""


class Direction(StrEnum):
    """From which language into which."""

    DE_EN = "de-en"
    EN_DE = "en-de"


class Multi30kPart(StrEnum):
    """The parts of Multi30k that the course uses."""

    TRAIN = "train"
    VAL = "val"
    TEST2016 = "test2016"


def _file(name: str, size: int, sha256: str) -> RemoteFile:
    return RemoteFile(f"multi30k/{name}", sha256, size, f"{_ORIGIN}/{name}")


# German, then English
FILES = {
    Multi30kPart.TRAIN: (
        _file(
            "train.de.gz",
            637044,
            "726e39b2fa9eb9ffb6dc763fb35a179f80fae06ffc5d28b6ace5faa883de28a6",
        ),
        _file(
            "train.en.gz",
            568929,
            "d79cfa999dd4c51d2cb42499b6796d5a882c3a8a961923c25a898c90f8bbd56f",
        ),
    ),
    Multi30kPart.VAL: (
        _file(
            "val.de.gz",
            24681,
            "f0cba2f995189cf5770f29a8a9a537a3ad3f51657ad873405082ff6863a5e75a",
        ),
        _file(
            "val.en.gz",
            21650,
            "14f7d25ddd868909a9213e361768460edcacdd6ab9d1e77b92560dc10c10dc28",
        ),
    ),
    Multi30kPart.TEST2016: (
        _file(
            "test_2016_flickr.de.gz",
            22890,
            "9204244e408ccb38d2a55cfcd344df15005fc42a07a6e55ca6c52b6ababb8cc8",
        ),
        _file(
            "test_2016_flickr.en.gz",
            21077,
            "611d361c6334bc7246101d48097c13cf5c4413c5befc793cc629934359d532d9",
        ),
    ),
}


def multi30k(part: Multi30kPart) -> list[tuple[str, str]]:
    """Read the sentence pairs of one part, downloading them the first time.

    Returns:
        German and English sentences as they were written, without surrounding spaces.

    Raises:
        ValueError: a file is not the one expected.
        OSError: a file is not on disk and cannot be downloaded.
    """
    german, english = (_sentences(file) for file in FILES[part])
    return list(zip(german, english, strict=True))


def multi30k_corpus(direction: Direction) -> Corpus:
    """The sentence pairs as a corpus, cut into subwords learned from its train part.

    A sentence stands in its example uncut, as one string: the vocabulary cuts it, and
    translations are scored against it as it was written.

    Args:
        direction: which language is the source. Both directions share one vocabulary.

    Raises:
        ValueError: a file is not the one expected.
        OSError: a file is not on disk and cannot be downloaded.
    """
    train = multi30k(Multi30kPart.TRAIN)
    pieces = SubwordVocabulary.train(
        (sentence for pair in train for sentence in pair), size=PIECES
    )

    def examples(pairs: list[tuple[str, str]]) -> list[Example]:
        if direction is Direction.EN_DE:
            pairs = [(english, german) for german, english in pairs]
        return [Example((source,), ((target,),)) for source, target in pairs]

    return Corpus(
        name=f"multi30k-{direction}",
        train=examples(train),
        dev=examples(multi30k(Multi30kPart.VAL)),
        test=examples(multi30k(Multi30kPart.TEST2016)),
        source_vocabulary=pieces,
        target_vocabulary=pieces,
        task=TaskName.TRANSLATION,
        target_language=direction.partition("-")[2],
    )


def _sentences(file: RemoteFile) -> list[str]:
    text = gzip.decompress(fetch(file).read_bytes()).decode("utf-8")
    # not splitlines(), which also breaks at rarer characters inside a sentence
    return [line.strip() for line in text.removesuffix("\n").split("\n")]
