"""Chapter 12: words become pieces, so that no word is unknown.

Byte-pair encoding starts from single characters and joins, again and again, the two
neighbours that occur together most often (Sennrich et al., 2016). Frequent words end up
as one piece, rare ones as several.
"""

import base64
import binascii
import io
import json
import unicodedata
from collections.abc import Iterable
from typing import Any

import sentencepiece

from seq2seq_lib.data.vocabulary import SPECIAL, UNK, Vocabulary

KIND = "subwords"
SPACE = "▁"
"""Stands for the space before a word, so that pieces tell where words begin."""


class SubwordVocabulary(Vocabulary):
    """A vocabulary of pieces that cuts text by itself.

    ``encode`` takes text, as a string or in parts, and ``decode`` gives the pieces.

    Args:
        model: a sentencepiece model whose first four pieces are the special symbols.

    Raises:
        ValueError: the bytes are no such model.

    >>> words = SubwordVocabulary.train(["low lower lowest", "new newest"] * 9, size=25)
    >>> words.decode(words.encode("new low"))
    ['▁new', '▁low']
    >>> words.text(words.encode("newest"))
    'newest'
    """

    def __init__(self, model: bytes) -> None:
        try:
            self._processor = sentencepiece.SentencePieceProcessor(model_proto=model)
            numbers = list(range(self._processor.get_piece_size()))
            pieces = self._processor.id_to_piece(numbers)
        except RuntimeError as error:
            raise ValueError(
                f"these {len(model):,} bytes are no sentencepiece model ({error})."
            ) from error
        if tuple(pieces[: len(SPECIAL)]) != SPECIAL:
            raise ValueError(
                f"a sentencepiece model whose first pieces are {pieces[: len(SPECIAL)]}"
                f": expected {', '.join(SPECIAL)}, as SubwordVocabulary.train makes it."
            )
        super().__init__(pieces[len(SPECIAL) :])
        self.model = model

    @classmethod
    def train(cls, sentences: Iterable[str], *, size: int) -> "SubwordVocabulary":
        """Learn pieces from text, always the same ones from the same text.

        Args:
            sentences: the text.
            size: V, how many pieces, the special ones included.

        Raises:
            ValueError: the text has too few different pieces, or too many characters.
        """
        model = io.BytesIO()
        special: dict[str, Any] = {}
        for number, symbol in enumerate(SPECIAL):
            name = symbol.strip("<>")
            special |= {f"{name}_id": number, f"{name}_piece": symbol}
        try:
            sentencepiece.SentencePieceTrainer.train(
                sentence_iterator=map(_normalize, sentences),
                model_writer=model,
                model_type="bpe",
                vocab_size=size,
                character_coverage=1.0,
                # the tables of Unicode are Python's; in the model they weigh 240 kB
                normalization_rule_name="identity",
                num_threads=1,
                minloglevel=2,
                **special,
            )
        except RuntimeError as error:
            raise ValueError(
                f"no {size} pieces can be learned from this text ({error})."
            ) from error
        return cls(model.getvalue())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SubwordVocabulary) and self.model == other.model

    def __hash__(self) -> int:
        return hash(self.model)

    def encode(self, sequence: Iterable[str], *, strict: bool = False) -> list[int]:
        """Cut text into pieces and number them.

        Args:
            sequence: a string, or strings that together are the text.
            strict: refuse characters never seen instead of writing ``UNK``.

        Raises:
            ValueError: ``strict`` and the text has a character never seen.
        """
        text = _normalize("".join(sequence))
        numbers: list[int] = self._processor.encode(text)
        if strict and UNK in numbers:
            unknown = [c for c in text if not c.isspace() and c not in self]
            raise ValueError(
                f"unknown characters {unknown!r} in {text!r}: leave them out, or "
                "encode with strict=False to get <unk>."
            )
        return numbers

    def text(self, numbers: Iterable[int]) -> str:
        """Join pieces to text, leaving special symbols out.

        Raises:
            ValueError: a number is not in the vocabulary.
        """
        pieces = self.decode(numbers)
        ordinary = (piece for piece in pieces if piece not in SPECIAL)
        return " ".join("".join(ordinary).replace(SPACE, " ").split())

    def to_json(self) -> str:
        """The model as JSON text, marked as one of subwords."""
        model = base64.b64encode(self.model).decode("ascii")
        return json.dumps({"kind": KIND, "model": model})

    @classmethod
    def from_json(cls, text: str) -> "SubwordVocabulary":
        """Rebuild what ``to_json`` wrote.

        Raises:
            ValueError: the text is something else.
        """
        try:
            stored = json.loads(text)
            if stored["kind"] == KIND:
                return cls(base64.b64decode(stored["model"], validate=True))
        except (json.JSONDecodeError, binascii.Error, KeyError, TypeError) as error:
            raise ValueError(
                f"no subword vocabulary ({error!r}): {text[:60]}"
            ) from error
        raise ValueError(
            f"a vocabulary of the kind {stored['kind']!r}: expected {KIND!r}. Was it "
            "written by a newer version of the library?"
        )


def _normalize(text: str) -> str:
    """One form for letters such as ä, which some systems write as a and two dots."""
    return unicodedata.normalize("NFC", text)
