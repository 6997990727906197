"""Frequent words without a pronunciation, for models that learn from other models.

The PyPI package ``wordninja`` (MIT) holds the words of the English Wikipedia, the most
frequent first. Only its data file is read, and the package is never imported.
"""

import gzip
import re

from seq2seq_lib.data.download import installed_file

SHA256 = "5b3c6c418fea7188b3919c47829ff94bc010f8336c74cbb929cc20d0c9d9e901"
WORD = re.compile("(?=.*[aeiouy])[a-z]{3,16}")


def frequent_words() -> list[str]:
    """The words of 3 to 16 letters a–z with a vowel letter, the most frequent first.

    Raises:
        OSError: the package ``wordninja`` is not installed.
        ValueError: another version of it is installed.
    """
    path = installed_file(
        "wordninja",
        "wordninja/wordninja_words.txt.gz",
        sha256=SHA256,
        extra="distillation",
    )
    words = gzip.decompress(path.read_bytes()).decode("ascii").split()
    return list(dict.fromkeys(filter(WORD.fullmatch, words)))  # two stand there twice
