"""Surnames without a pronunciation, for models that learn from other models.

The PyPI package ``names`` (MIT) holds the surnames of the United States census of 1990.
Only its data file is read, and the package is never imported.
"""

import re

from seq2seq_lib.data.download import installed_file

SHA256 = "b0e2b3743ccbad641ca48b344c24cdebcd1d9a1f76dc6dbf05986f2919f0b4e1"


def surnames() -> list[str]:
    """The surnames of 3 to 16 letters a–z in lower case, the most frequent first.

    Raises:
        OSError: the package ``names`` is not installed.
        ValueError: another version of it is installed.
    """
    path = installed_file("names", "dist.all.last", sha256=SHA256, extra="distillation")
    lines = path.read_text(encoding="ascii").splitlines()
    names = (line.split()[0].lower() for line in lines)
    return [name for name in names if re.fullmatch("[a-z]{3,16}", name)]
