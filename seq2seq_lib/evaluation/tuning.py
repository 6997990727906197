"""Chapter 12: which beam and which exponent, chosen on the development part.

One beam of each width serves every exponent. Which prefixes a beam keeps does not
depend on α, only when it stops does, and it stops last at the largest α. So the search
runs once, with that one, and what it put aside as finished is ranked again for the
others: the best of them is what a search with the smaller α would have returned.

Axes: R rows, C columns of any matrix.
"""

import dataclasses
from collections.abc import Sequence
from functools import partial
from importlib import resources
from pathlib import Path
from typing import Any

import sacrebleu
import torch
from jaxtyping import Int
from torch import Tensor

from seq2seq_lib.data.examples import Example
from seq2seq_lib.data.subwords import SubwordVocabulary
from seq2seq_lib.data.vocabulary import EOS
from seq2seq_lib.evaluation.decoding import decode
from seq2seq_lib.evaluation.scores import DRAWS, values
from seq2seq_lib.metrics import count_errors
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.pretrained import results
from seq2seq_lib.pretrained.weights import PretrainedModel
from seq2seq_lib.search import Hypothesis, Node, SearchConfig, SearchResult, beam_search
from seq2seq_lib.search.hypothesis import cut_at_end
from seq2seq_lib.seeds import generator

DIRECTORY = Path(str(resources.files(results))) / "searches"
WIDTHS = (1, 2, 5, 10)
ALPHAS = (0.0, 0.5, 0.75, 1.0, 1.25)
EXAMPLES = 500


def rerank(found: SearchResult, alpha: float) -> Hypothesis:
    """The best by another exponent of all that a traced beam put aside as finished.

    Args:
        found: of a beam search with ``trace`` and an exponent that was not smaller.
        alpha: the exponent of the length in the score log p / L^α.
    """
    assert found.trace is not None
    nodes = found.trace.nodes

    def hypothesis(end: Node) -> Hypothesis:
        said = [end.token]
        at = end.parent
        while at >= 0:
            said.append(nodes[at].token)
            at = nodes[at].parent
        return cut_at_end(said[::-1], end.log_probability, alpha)

    ended = [hypothesis(node) for node in nodes if node.kept and node.token == EOS]
    if not ended:  # the prefix that was cut off is all there is
        cut = found.best
        return cut_at_end([*cut.tokens], cut.log_probability, alpha)
    return max(ended, key=lambda one: one.score)


def tune(
    shipped: PretrainedModel,
    examples: Sequence[Example],
    *,
    widths: Sequence[int] = WIDTHS,
    alphas: Sequence[float] = ALPHAS,
) -> dict[str, Any]:
    """Score a model with every width and exponent.

    Args:
        shipped: the model; its card limits the length of its outputs.
        examples: of the development part of the split it was trained for.
        widths: of the beam.
        alphas: exponents of the length.

    Returns:
        what is stored: for every width and exponent the metrics, how many symbols or
        words the outputs have for each of the references', their mean log-probability,
        and the first metric minus that of the card's search, with its interval.

    Raises:
        ValueError: nothing to compare, or an option is out of range.
    """
    if not (widths and alphas and examples):
        raise ValueError(
            f"{len(widths)} widths, {len(alphas)} alphas and {len(examples)} examples: "
            "expected at least one of each."
        )
    card = SearchConfig(**shipped.card.search)
    settings = [
        dataclasses.replace(card, width=width, alpha=float(alpha))
        for width in widths
        for alpha in alphas
    ]
    longest = max(setting.alpha for setting in (card, *settings))
    found = {
        width: decode(
            shipped,
            [example.source for example in examples],
            search=partial(
                beam_search,
                width=width,
                alpha=longest,
                max_length=card.max_length,
                trace=True,
            ),
        )
        for width in sorted({card.width, *widths})
    }

    def chosen(setting: SearchConfig) -> list[Hypothesis]:
        return [rerank(one, setting.alpha) for one in found[setting.width]]

    usual = _said(shipped, chosen(card))
    rows = []
    for setting in settings:
        hypotheses = chosen(setting)
        outputs = _said(shipped, hypotheses)
        logs = [one.log_probability for one in hypotheses]
        rows.append(
            {
                "width": setting.width,
                "alpha": setting.alpha,
                **values(outputs, examples),
                "length": _length_ratio(outputs, examples),
                "log_probability": sum(logs) / len(logs),
                "beyond_card": difference(outputs, usual, examples),
            }
        )
    return {
        "model": shipped.card.name,
        "split": shipped.split,
        "part": "dev",
        "examples": len(examples),
        "sha256": shipped.card.sha256,
        "card": dict(shipped.card.search),
        "rows": rows,
    }


def difference(
    outputs: Sequence[Any], others: Sequence[Any], examples: Sequence[Example]
) -> dict[str, Any]:
    """BLEU, or WER, of outputs minus that of others to the same sources.

    The interval comes from examples drawn anew for both at once (Koehn, 2004): what
    makes an example hard weighs on both sides and cancels.
    """
    ours, theirs = _statistics(outputs, examples), _statistics(others, examples)
    metric = _bleu if all(isinstance(output, str) for output in outputs) else _share
    value = metric(ours.sum(0)) - metric(theirs.sum(0))
    random, drawn = generator(0), []
    for _ in range(DRAWS):
        rows = torch.randint(len(ours), (len(ours),), generator=random)
        drawn.append(metric(ours[rows].sum(0)) - metric(theirs[rows].sum(0)))
    ends = torch.tensor([0.025, 0.975], dtype=torch.double)
    low, high = torch.tensor(drawn, dtype=torch.double).quantile(ends).tolist()
    return {"value": value, "interval": [low, high]}


def _statistics(
    outputs: Sequence[Any], examples: Sequence[Example]
) -> Int[Tensor, "R C"]:
    """For each example counts whose sums give the metric of all."""
    if not all(isinstance(output, str) for output in outputs):
        errors = count_errors(outputs, [example.references for example in examples])
        return torch.tensor([[int(one.edits > 0), 1] for one in errors])
    metric = sacrebleu.BLEU(effective_order=True)
    rows = []
    for output, example in zip(outputs, examples, strict=True):
        one = metric.sentence_score(output, ["".join(r) for r in example.references])
        rows.append([*one.counts, *one.totals, one.sys_len, one.ref_len])
    return torch.tensor(rows)


def _bleu(sums: Int[Tensor, " C"]) -> float:
    *counts, ours, theirs = sums.tolist()
    right, total = counts[:4], counts[4:]
    found = sacrebleu.BLEU.compute_bleu(right, total, ours, theirs, smooth_method="exp")
    return float(found.score)


def _share(sums: Int[Tensor, " C"]) -> float:
    wrong, words = sums.tolist()
    return float(wrong / words)


def _said(saved: SavedModel, hypotheses: Sequence[Hypothesis]) -> list[Sequence[str]]:
    """Sentences if the model translates, else lists of symbols."""
    vocabulary = saved.target_vocabulary
    if isinstance(vocabulary, SubwordVocabulary):
        return [vocabulary.text(one.tokens) for one in hypotheses]
    return [vocabulary.decode(one.tokens) for one in hypotheses]


def _length_ratio(outputs: Sequence[Any], examples: Sequence[Example]) -> float:
    """Words of sentences or symbols of words, for each one of the first reference."""
    if all(isinstance(output, str) for output in outputs):
        outputs = [output.split() for output in outputs]
        right = ["".join(example.references[0]).split() for example in examples]
        return sum(map(len, outputs)) / sum(map(len, right))
    return sum(map(len, outputs)) / sum(len(e.references[0]) for e in examples)
