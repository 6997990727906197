"""What is stored about a model that comes with the library.

Every result says which model it belongs to, and names its weights by their checksum.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from seq2seq_lib.data.examples import Corpus, Example
from seq2seq_lib.evaluation import analysis, scores, tuning
from seq2seq_lib.pretrained.loading import PretrainedModel
from seq2seq_lib.search import SearchConfig


def evaluation(model: PretrainedModel, examples: Sequence[Example]) -> dict[str, Any]:
    """The final score of a model, with the search of its card.

    Args:
        model: comes with the library.
        examples: the test part of the split it was trained on.
    """
    card = model.card
    return {
        "model": card.name,
        "split": card.split,
        "part": "test",
        "examples": len(examples),
        "recipe": card.recipe,
        "averaged": card.averaged,
        "parameters": card.parameters,
        "sha256": card.sha256,
        "search": dict(card.search),
        **scores.final_scores(model, examples, search=SearchConfig(**card.search)),
    }


def check_evaluation(
    model: PretrainedModel, stored: Mapping[str, Any], examples: Sequence[Example]
) -> None:
    """Score a sample again, and compare with what is stored.

    Args:
        model: comes with the library.
        stored: what ``evaluation`` gave.
        examples: the test part of the split it was trained on.

    Raises:
        ValueError: the result belongs to other weights, or its figures are not those
            of this model.
    """
    card = model.card
    for key, expected in (
        ("sha256", card.sha256),
        ("split", model.split),
        ("search", card.search),
        ("examples", len(examples)),
    ):
        if stored[key] != expected:
            raise ValueError(
                f"the stored scores of {card.name} have another {key}: {stored[key]}, "
                f"expected {expected}. Run seq2seq evaluate {card.name} --part test "
                "--store DIRECTORY."
            )
    search = SearchConfig(**stored["search"])
    scores.check_sample(model, examples, stored, search=search)


def searches(
    model: PretrainedModel,
    examples: Sequence[Example],
    *,
    widths: Sequence[int] = tuning.WIDTHS,
    alphas: Sequence[float] = tuning.ALPHAS,
) -> dict[str, Any]:
    """How a model scores with other searches than that of its card.

    Args:
        model: comes with the library.
        examples: of the development part of the split it was trained on.
        widths: of the beam.
        alphas: exponents of the length.

    Raises:
        ValueError: nothing to compare, or an option is out of range.
    """
    search = SearchConfig(**model.card.search)
    rows = tuning.tune(model, examples, search=search, widths=widths, alphas=alphas)
    return {
        **_about(model, len(examples)),
        "card": dict(model.card.search),
        "rows": rows,
    }


def error_analysis(model: PretrainedModel, corpus: Corpus) -> dict[str, Any]:
    """What a translator gets wrong on the development part.

    Args:
        model: comes with the library.
        corpus: the one it was trained on.

    Raises:
        ValueError: the model was trained on something else, or not on sentences.
    """
    found = analysis.analyze(model, corpus, search=SearchConfig(**model.card.search))
    return {
        **_about(model, len(corpus.dev)),
        "search": dict(model.card.search),
        **found,
    }


def _about(model: PretrainedModel, examples: int) -> dict[str, Any]:
    return {
        "model": model.card.name,
        "split": model.split,
        "part": "dev",
        "examples": examples,
        "sha256": model.card.sha256,
    }
