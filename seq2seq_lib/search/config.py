"""How outputs are found when a model is evaluated or used: the settings of a search."""

from dataclasses import dataclass
from functools import partial

from seq2seq_lib.search.beam import beam_search
from seq2seq_lib.search.hypothesis import Search, check_search


@dataclass(frozen=True, kw_only=True)
class SearchConfig:
    """How outputs are found when the model is evaluated.

    Attributes:
        width: of the beam.
        alpha: exponent of the length in the score.
        max_length: symbols in an output, ``EOS`` included.
    """

    width: int = 5
    alpha: float = 0.75
    max_length: int = 64

    def __post_init__(self) -> None:
        check_search(max_length=self.max_length, alpha=self.alpha, width=self.width)

    def search(self) -> Search:
        """The search with these options filled in."""
        return partial(
            beam_search,
            width=self.width,
            alpha=self.alpha,
            max_length=self.max_length,
        )
