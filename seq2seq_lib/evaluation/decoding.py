"""Chapter 5: how good a model is, measured the same way for every model."""

from collections.abc import Iterable, Sequence
from functools import partial
from typing import Any

from torch import Tensor

from seq2seq_lib.data.batch import Batch, pad_sources
from seq2seq_lib.data.examples import Example, encode_source
from seq2seq_lib.data.frames import Source
from seq2seq_lib.interface import EncoderDecoder, EncoderOutput, evaluating
from seq2seq_lib.metrics import perplexity
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.search import Search, SearchResult, greedy_search
from seq2seq_lib.tasks import TASKS
from seq2seq_lib.training.loss import cross_entropy

GREEDY: Search = partial(greedy_search, max_length=64)


def encode_sources(
    model: EncoderDecoder, sources: Sequence[list[int] | Tensor]
) -> EncoderOutput:
    """What the encoder makes of sources that have no targets yet.

    Args:
        model: whose encoder to use.
        sources: numbers of the symbols, without ``EOS``, or frames.

    Raises:
        ValueError: there are no sources, or one is empty or holds ``PAD``.
    """
    source, mask = pad_sources(sources)
    with evaluating(model):
        encoded: EncoderOutput = model.encoder(
            source.to(model.device), mask.to(model.device)
        )
    return encoded


def find_outputs(
    model: EncoderDecoder,
    sources: Sequence[list[int] | Tensor],
    *,
    search: Search = GREEDY,
    rows: int = 256,
) -> list[SearchResult]:
    """Search an output for every source, given as numbers.

    Args:
        model: any encoder–decoder.
        sources: numbers of the symbols, without ``EOS``, or frames.
        search: a search with its options filled in.
        rows: how many sources are searched together.

    Returns:
        what was found, in the order of the sources.

    Raises:
        ValueError: a source is empty or holds ``PAD``.
    """
    # similar lengths together, so that little is wasted on padding
    order = sorted(range(len(sources)), key=lambda row: len(sources[row]))
    found: dict[int, SearchResult] = {}
    with evaluating(model):
        for start in range(0, len(order), rows):
            chunk = order[start : start + rows]
            encoded = encode_sources(model, [sources[row] for row in chunk])
            found.update(zip(chunk, search(model.decoder, encoded), strict=True))
    return [found[row] for row in range(len(sources))]


def decode(
    saved: SavedModel,
    sources: Sequence[Source],
    *,
    search: Search = GREEDY,
    rows: int = 256,
) -> list[SearchResult]:
    """Search an output for every source, whatever the model.

    Args:
        saved: a model with its vocabularies.
        sources: symbols, frames or a sentence for each output.
        search: a search with its options filled in, such as
            ``partial(beam_search, width=5, max_length=64)``.
        rows: how many sources are searched together.

    Returns:
        what was found, in the order of the sources.
    """
    numbers = [encode_source(source, saved.source_vocabulary) for source in sources]
    return find_outputs(saved.model, numbers, search=search, rows=rows)


def best_outputs(
    saved: SavedModel, sources: Sequence[Source], *, search: Search = GREEDY
) -> list[Any]:
    """The best output for every source, in the form that the task of the model scores.

    Args:
        saved: a model with its vocabularies.
        sources: symbols, frames or a sentence for each output.
        search: how outputs are found.

    Returns:
        lists of symbols or, of a model that writes them, sentences.
    """
    task, vocabulary = TASKS[saved.task], saved.target_vocabulary
    found = decode(saved, sources, search=search)
    return [task.output(one.best.tokens, vocabulary) for one in found]


def measure(
    saved: SavedModel, examples: Sequence[Example], *, search: Search = GREEDY
) -> dict[str, float]:
    """How good a model is, by the metrics of its task.

    Args:
        saved: a model with its vocabularies.
        examples: sources with every right answer.
        search: how outputs are found.

    Returns:
        WER and PER, as shares, of a model that pronounces; BLEU and chrF, from 0 to
        100, of one that translates.
    """
    sources = [example.source for example in examples]
    outputs = best_outputs(saved, sources, search=search)
    return TASKS[saved.task].score(outputs, examples)


def held_out_loss(model: EncoderDecoder, batches: Iterable[Batch]) -> dict[str, float]:
    """Cross-entropy per target symbol, and the perplexity it stands for."""
    total, symbols = 0.0, 0
    with evaluating(model):
        for batch in batches:
            batch = batch.to(model.device)
            real = int(batch.target_mask.sum())
            loss = cross_entropy(model(batch), batch.target, batch.target_mask)
            total += loss.item() * real
            symbols += real
    if not symbols:
        raise ValueError("no batches to measure a loss on.")
    return {"loss": total / symbols, "perplexity": perplexity(-total, symbols)}
