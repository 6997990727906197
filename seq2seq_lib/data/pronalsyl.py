"""The published split of the CMU dictionary, for comparison with papers only.

It was made for the Pronalsyl letter-to-phoneme challenge and overlaps with the course
split: never score a model trained on one with the other.
"""

from string import ascii_lowercase

from seq2seq_lib.data.cmudict import PHONEMES, place_by_hash
from seq2seq_lib.data.download import RemoteFile, fetch
from seq2seq_lib.data.examples import Corpus, Example, TaskName
from seq2seq_lib.data.vocabulary import Vocabulary

_ORIGIN = (
    "https://raw.githubusercontent.com/steveash/jg2p/"
    "9ef911031f2762b15f5b731c33dd968f523e181f/jg2p-core/src/test/resources"
)
TRAIN = RemoteFile(
    name="cmudict-pronalsyl/g014b2b.train",
    sha256="5882433c3a14a9a0614b5f724ce74872851092e816852c82d6b74913b2085384",
    bytes=2717073,
    url=f"{_ORIGIN}/g014b2b.train",
)
TEST = RemoteFile(
    name="cmudict-pronalsyl/g014b2b.test",
    sha256="9beeeed7726f4954bee1dbb3c5b41f50a71227557eca70b259fbd63c9cad1bb9",
    bytes=306441,
    url=f"{_ORIGIN}/g014b2b.test",
)

DEV_SHARE = 2_500 / 106_837


def pronalsyl() -> Corpus:
    """Read the published split, downloading it the first time.

    The test part is the published one. The published training words are cut by a hash
    of the word into train and, about 2,500 of them, dev. The files are sorted; dev is
    in the order of the hash, so that its first words are a fair sample.

    Raises:
        ValueError: a file is not the one expected.
        OSError: a file is not on disk and cannot be downloaded.
    """
    train: list[Example] = []
    dev: list[Example] = []
    for example in _read(TRAIN):
        (dev if _place(example) < DEV_SHARE else train).append(example)
    return Corpus(
        name="pronalsyl",
        train=train,
        dev=sorted(dev, key=_place),
        test=_read(TEST),
        source_vocabulary=Vocabulary(f"'{ascii_lowercase}"),
        target_vocabulary=Vocabulary(PHONEMES),
        task=TaskName.PRONUNCIATION,
    )


def _place(example: Example) -> float:
    return place_by_hash("".join(example.source))


def _read(file: RemoteFile) -> list[Example]:
    """One example for each word, with the pronunciations of all its lines."""
    one = {phoneme: phoneme for phoneme in PHONEMES}  # one object for all its uses
    references: dict[str, list[tuple[str, ...]]] = {}
    for line in fetch(file).read_text(encoding="utf-8").splitlines():
        word, _, sounds = line.partition("\t")
        references.setdefault(word.lower(), []).append(
            tuple(map(one.__getitem__, sounds.split()))
        )
    return [Example(tuple(word), tuple(found)) for word, found in references.items()]
