"""Chapter 4: how often a model errs after its own errors, and how often after none.

In training a decoder reads right symbols, in use its own. To compare the two one needs
to know which next symbols are right after a prefix that is wrong already. The edit
distance says so: those after which no further edit becomes necessary.

Axes: B batch, T target, V vocabulary.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean

from jaxtyping import Float
from torch import Tensor

from seq2seq_lib.data.batch import pad
from seq2seq_lib.data.examples import Example, encode_source
from seq2seq_lib.data.vocabulary import BOS, EOS, SPECIAL
from seq2seq_lib.evaluation.decoding import GREEDY, best_outputs, encode_sources
from seq2seq_lib.interface import evaluating
from seq2seq_lib.metrics import Symbols, edit_distance
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.search import Search

END = SPECIAL[EOS]


@dataclass(frozen=True)
class PrefixErrors:
    """Where a prefix stands among the right answers.

    Attributes:
        errors: the edits it needs already, whatever comes after it.
        places: for each beginning of a reference that it is nearest to, the index of
            the reference and how many of its symbols the beginning has.
        right: the symbols that make no further edit necessary; ``<eos>`` is one.
    """

    errors: int
    places: tuple[tuple[int, int], ...]
    right: frozenset[str]

    @property
    def furthest(self) -> tuple[tuple[int, int], ...]:
        """The places with the most symbols."""
        most = max(length for _, length in self.places)
        return tuple(place for place in self.places if place[1] == most)


def prefix_errors(prefix: Symbols, references: Sequence[Symbols]) -> PrefixErrors:
    """Align a prefix by edit distance with the beginnings of all right answers.

    An output that begins with u cannot come nearer to y than the nearest beginning of
    y is to u. It stays that near if the next symbol is the one behind such a
    beginning (Sabour et al., 2019).

    Args:
        prefix: the output so far.
        references: every right answer.

    Raises:
        ValueError: there are no references.

    >>> found = prefix_errors("K AE".split(), ["K AA T S".split()])
    >>> found.errors, sorted(found.right)  # AE came in between, or in place of AA
    (1, ['AA', 'T'])
    """
    if not references:
        raise ValueError("no references: expected at least one right answer.")
    distances = {
        (number, length): edit_distance(prefix, reference[:length])
        for number, reference in enumerate(references)
        for length in range(len(reference) + 1)
    }
    errors = min(distances.values())
    places = tuple(place for place, d in distances.items() if d == errors)
    right = frozenset(
        references[number][length] if length < len(references[number]) else END
        for number, length in places
    )
    return PrefixErrors(errors, places, right)


@dataclass(frozen=True)
class Step:
    """One choice of a symbol.

    Attributes:
        errors: the edits that the prefix before it needs already.
        wrong: the probability that the model gives to symbols that are not right here.
        gold: the same after the gold prefix of the furthest place where the prefix may
            stand, so after a wrong symbol as if it had been the right one; the mean
            if several references come as far.
    """

    errors: int
    wrong: float
    gold: float


def exposure(
    saved: SavedModel,
    examples: Sequence[Example],
    *,
    search: Search = GREEDY,
    rows: int = 256,
) -> list[list[Step]]:
    """How probable an error is at every step of a model's own outputs.

    Words in which a model errs are the harder ones. So every step is paired with the
    same place of the same word after a gold prefix, which has no error in it.

    Args:
        saved: a model with its vocabularies.
        examples: sources with every right answer.
        search: how outputs are found.
        rows: how many sequences go through the model together.

    Returns:
        for every example the steps of its output, the choice of the end included.

    >>> from seq2seq_lib.data import Vocabulary
    >>> from seq2seq_lib.models.lookup import LookupConfig
    >>> a = Vocabulary("a")
    >>> guesses = LookupConfig(source_symbols=5, target_symbols=5).build()
    >>> steps = exposure(
    ...     SavedModel(guesses, a, a, "toy-copy"), [Example(("a",), (("a",),))]
    ... )
    >>> [round(step.wrong, 2) for step in steps[0][:2]]  # one of five is right
    [0.8, 0.6]
    """
    sources = [example.source for example in examples]
    outputs = best_outputs(saved, sources, search=search)
    own = wrong_after(saved, examples, outputs, rows=rows)
    repeated = [example for example in examples for _ in example.references]
    references = [y for example in examples for y in example.references]
    golden = iter(wrong_after(saved, repeated, references, rows=rows))
    steps = []
    for example, walked in zip(examples, own, strict=True):
        gold = [next(golden) for _ in example.references]
        steps.append(
            [
                Step(
                    place.errors,
                    wrong,
                    fmean(gold[number][length][1] for number, length in place.furthest),
                )
                for place, wrong in walked
            ]
        )
    return steps


def wrong_after(
    saved: SavedModel,
    examples: Sequence[Example],
    outputs: Sequence[Symbols],
    *,
    rows: int = 256,
) -> list[list[tuple[PrefixErrors, float]]]:
    """How probable a wrong symbol is after every prefix of some outputs.

    Args:
        saved: a model with its vocabularies.
        examples: sources with every right answer.
        outputs: for every example what the decoder is made to read; a reference for
            gold prefixes.
        rows: how many of them go through the model together.

    Returns:
        for every output its prefixes, from the empty one to the whole: where each
        stands, and the probability of all symbols that are not right after it.

    Raises:
        ValueError: there are not as many outputs as examples.
    """
    if len(outputs) != len(examples):
        raise ValueError(
            f"{len(outputs)} outputs for {len(examples)} examples: expected one each."
        )
    result = []
    for start in range(0, len(outputs), rows):
        some = slice(start, start + rows)
        probabilities = _read(saved, examples[some], outputs[some])
        for example, output, row in zip(
            examples[some], outputs[some], probabilities, strict=True
        ):
            places = [
                prefix_errors(output[:t], example.references)
                for t in range(len(output) + 1)
            ]
            right = [saved.target_vocabulary.encode(place.right) for place in places]
            wrong = [
                1 - row[t, symbols].sum().item() for t, symbols in enumerate(right)
            ]
            result.append([*zip(places, wrong, strict=True)])
    return result


def _read(
    saved: SavedModel, examples: Sequence[Example], outputs: Sequence[Symbols]
) -> Float[Tensor, "B T V"]:
    """The probabilities of every next symbol when the decoder reads these outputs."""
    model, sounds = saved.model, saved.target_vocabulary
    sources = [
        encode_source(example.source, saved.source_vocabulary) for example in examples
    ]
    tokens = pad([[BOS, *sounds.encode(output, strict=True)] for output in outputs])
    with evaluating(model):
        encoded = encode_sources(model, sources)
        scores: Tensor = model.decoder(encoded, tokens.to(model.device))
    return scores.exp().cpu()
