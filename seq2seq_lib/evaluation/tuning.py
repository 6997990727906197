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
from typing import Any

import torch
from jaxtyping import Int
from torch import Tensor

from seq2seq_lib.data.examples import Example
from seq2seq_lib.data.vocabulary import EOS
from seq2seq_lib.evaluation.decoding import decode
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.search import Hypothesis, Node, SearchConfig, SearchResult, beam_search
from seq2seq_lib.search.hypothesis import cut_at_end, path_to
from seq2seq_lib.seeds import generator
from seq2seq_lib.tasks import TASKS, Task
from seq2seq_lib.tasks.task import DRAWS

WIDTHS = (1, 2, 5, 10)
ALPHAS = (0.0, 0.5, 0.75, 1.0, 1.25)
EXAMPLES = 500
"""How many development examples tell searches apart well enough."""


def rerank(found: SearchResult, alpha: float) -> Hypothesis:
    """The best by another exponent of all that a traced beam put aside as finished.

    Args:
        found: of a beam search with ``trace`` and an exponent that was not smaller.
        alpha: the exponent of the length in the score log p / L^α.
    """
    assert found.trace is not None
    nodes = found.trace.nodes

    def hypothesis(end: Node) -> Hypothesis:
        return cut_at_end(path_to(nodes, end), end.log_probability, alpha)

    ended = [hypothesis(node) for node in nodes if node.kept and node.token == EOS]
    if not ended:  # the prefix that was cut off is all there is
        cut = found.best
        return cut_at_end([*cut.tokens], cut.log_probability, alpha)
    return max(ended, key=lambda one: one.score)


def tune(
    saved: SavedModel,
    examples: Sequence[Example],
    *,
    search: SearchConfig,
    widths: Sequence[int] = WIDTHS,
    alphas: Sequence[float] = ALPHAS,
) -> list[dict[str, Any]]:
    """Score a model with every width and exponent.

    Args:
        saved: a model with its vocabularies.
        examples: of the development part of the split it was trained on.
        search: what the others are compared with; it limits the length of outputs.
        widths: of the beam.
        alphas: exponents of the length.

    Returns:
        for every width and exponent the metrics, how many symbols or words the outputs
        have for each of the references', their mean log-probability, and the first
        metric minus that of ``search``, with its interval.

    Raises:
        ValueError: nothing to compare, or an option is out of range.
    """
    if not (widths and alphas and examples):
        raise ValueError(
            f"{len(widths)} widths, {len(alphas)} alphas and {len(examples)} examples: "
            "expected at least one of each."
        )
    task, vocabulary = TASKS[saved.task], saved.target_vocabulary
    settings = [
        dataclasses.replace(search, width=width, alpha=float(alpha))
        for width in widths
        for alpha in alphas
    ]
    longest = max(setting.alpha for setting in (search, *settings))
    found = {
        width: decode(
            saved,
            [example.source for example in examples],
            search=partial(
                beam_search,
                width=width,
                alpha=longest,
                max_length=search.max_length,
                trace=True,
            ),
        )
        for width in sorted({search.width, *widths})
    }

    def chosen(setting: SearchConfig) -> list[Hypothesis]:
        return [rerank(one, setting.alpha) for one in found[setting.width]]

    def outputs_of(hypotheses: Sequence[Hypothesis]) -> list[Any]:
        return [task.output(one.tokens, vocabulary) for one in hypotheses]

    usual = outputs_of(chosen(search))
    rows = []
    for setting in settings:
        hypotheses = chosen(setting)
        outputs = outputs_of(hypotheses)
        logs = [one.log_probability for one in hypotheses]
        rows.append(
            {
                "width": setting.width,
                "alpha": setting.alpha,
                **task.score(outputs, examples),
                "length": task.length_ratio(outputs, examples),
                "log_probability": sum(logs) / len(logs),
                "beyond_card": difference(task, outputs, usual, examples),
            }
        )
    return rows


def difference(
    task: Task[Any],
    outputs: Sequence[Any],
    others: Sequence[Any],
    examples: Sequence[Example],
) -> dict[str, Any]:
    """The first metric of outputs minus that of others to the same sources.

    The interval comes from examples drawn anew for both at once (Koehn, 2004): what
    makes an example hard weighs on both sides and cancels.
    """

    def metric(rows: Int[Tensor, "R C"]) -> float:
        return task.of_counts(dict(zip(names, rows.sum(0).tolist(), strict=True)))

    counts = [task.counts(one, examples) for one in (outputs, others)]
    names = list(counts[0][0])
    ours, theirs = (torch.tensor([[*one.values()] for one in some]) for some in counts)
    value = metric(ours) - metric(theirs)
    random, drawn = generator(0), []
    for _ in range(DRAWS):
        rows = torch.randint(len(ours), (len(ours),), generator=random)
        drawn.append(metric(ours[rows]) - metric(theirs[rows]))
    ends = torch.tensor([0.025, 0.975], dtype=torch.double)
    low, high = torch.tensor(drawn, dtype=torch.double).quantile(ends).tolist()
    return {"value": value, "interval": [low, high]}
