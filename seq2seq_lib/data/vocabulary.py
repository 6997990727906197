"""Chapter 1: symbols become numbers.

Four numbers mean the same in every vocabulary, so that models and search never
need to ask: ``PAD`` fills a row, ``BOS`` begins an output, ``EOS`` ends a
sequence, ``UNK`` stands for a symbol never seen in training.
"""

import json
from collections.abc import Iterable
from pathlib import Path

from seq2seq_lib.files import write_whole

PAD, BOS, EOS, UNK = range(4)
SPECIAL = ("<pad>", "<bos>", "<eos>", "<unk>")


class Vocabulary:
    """A two-way table between symbols and the numbers 0 … V−1.

    Args:
        symbols: the ordinary symbols, in the order of their numbers, which start
            after the four special ones.

    Raises:
        ValueError: a symbol occurs twice, is empty, or is one of the special ones.

    >>> letters = Vocabulary("abc")
    >>> letters.encode("cab")
    [6, 4, 5]
    >>> letters.decode([6, 4, 5])
    ['c', 'a', 'b']
    >>> len(letters)
    7
    """

    def __init__(self, symbols: Iterable[str]) -> None:
        self.symbols = (*SPECIAL, *symbols)
        self._number = {symbol: i for i, symbol in enumerate(self.symbols)}
        if len(self._number) != len(self.symbols) or "" in self._number:
            odd = {s for s in self.symbols if self.symbols.count(s) > 1 or not s}
            raise ValueError(
                f"got {sorted(odd)!r} more than once or empty: symbols must be "
                f"distinct, not empty and none of {', '.join(SPECIAL)}."
            )

    @classmethod
    def from_sequences(cls, sequences: Iterable[Iterable[str]]) -> "Vocabulary":
        """Collect every symbol that occurs, in sorted order."""
        return cls(sorted({symbol for sequence in sequences for symbol in sequence}))

    @property
    def sizes(self) -> dict[str, int]:
        """What a model's configuration has to know about its sources."""
        return {"source_symbols": len(self)}

    def __len__(self) -> int:
        return len(self.symbols)

    def __contains__(self, symbol: str) -> bool:
        return symbol in self._number

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Vocabulary) and self.symbols == other.symbols

    def __hash__(self) -> int:
        return hash(self.symbols)

    def __repr__(self) -> str:
        return f"Vocabulary({len(self)} symbols: {' '.join(self.symbols[:10])} …)"

    def encode(self, sequence: Iterable[str], *, strict: bool = False) -> list[int]:
        """Turn symbols into numbers.

        Args:
            sequence: the symbols; a string counts as the sequence of its characters.
            strict: refuse unknown symbols instead of writing ``UNK``.

        Raises:
            ValueError: ``strict`` and a symbol is not in the vocabulary.
        """
        sequence = list(sequence)
        if strict and (unknown := [s for s in sequence if s not in self]):
            known = " ".join(self.symbols[len(SPECIAL) :][:60])
            raise ValueError(
                f"unknown symbols {unknown!r} in {sequence!r}: this vocabulary knows "
                f"{known}. Leave them out, or encode with strict=False to get <unk>."
            )
        return [self._number.get(symbol, UNK) for symbol in sequence]

    def decode(self, numbers: Iterable[int]) -> list[str]:
        """Turn numbers back into symbols, special ones included.

        Raises:
            ValueError: a number is not in the vocabulary.
        """
        numbers = list(numbers)
        wrong = [n for n in numbers if not 0 <= n < len(self)]
        if wrong:
            raise ValueError(
                f"no symbols have the numbers {wrong}: expected 0 to {len(self) - 1}. "
                "Was the sequence encoded with another vocabulary?"
            )
        return [self.symbols[n] for n in numbers]

    def text(self, numbers: Iterable[int]) -> str:
        """Join symbols to text, with spaces between and the special ones left out.

        Raises:
            ValueError: a number is not in the vocabulary.
        """
        return " ".join(s for s in self.decode(numbers) if s not in SPECIAL)

    def to_json(self) -> str:
        """The ordinary symbols as JSON text."""
        return json.dumps(self.symbols[len(SPECIAL) :], ensure_ascii=False)

    @classmethod
    def from_json(cls, text: str) -> "Vocabulary":
        """Rebuild what ``to_json`` wrote.

        Raises:
            ValueError: the text is not a JSON list of strings.
        """
        try:
            symbols = json.loads(text)
        except json.JSONDecodeError as error:
            raise ValueError(
                f"a vocabulary is a JSON list of symbols, but this is not JSON: {error}"
            ) from error
        if not isinstance(symbols, list) or not all(
            isinstance(s, str) for s in symbols
        ):
            raise ValueError(
                "a vocabulary is a JSON list of symbols, but this holds "
                f"{type(symbols).__name__}: {text[:60]}"
            )
        return cls(symbols)

    def save(self, path: Path | str) -> None:
        """Write the vocabulary to a JSON file, whole or not at all."""
        write_whole(Path(path), self.to_json() + "\n")

    @classmethod
    def load(cls, path: Path | str) -> "Vocabulary":
        """Read a file that ``save`` wrote.

        Raises:
            ValueError: the file holds something else; the message names the file.
        """
        try:
            return cls.from_json(Path(path).read_text(encoding="utf-8"))
        except ValueError as error:
            raise ValueError(f"{path}: {error}") from error
