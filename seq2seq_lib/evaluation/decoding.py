"""Chapter 5: how good a model is, measured the same way for every model."""

from collections.abc import Iterable, Sequence
from functools import partial

from torch import Tensor

from seq2seq_lib.data.batch import Batch, pad_sources
from seq2seq_lib.data.examples import Example, encode_source
from seq2seq_lib.data.frames import Source
from seq2seq_lib.interface import EncoderDecoder, EncoderOutput, evaluating
from seq2seq_lib.metrics import perplexity, phoneme_error_rate, word_error_rate
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.search import Search, SearchResult, greedy_search
from seq2seq_lib.training.distributed import map_over_ranks
from seq2seq_lib.training.loss import cross_entropy

GREEDY: Search = partial(greedy_search, max_length=64)


def encode_sources(
    model: EncoderDecoder, sources: Sequence[list[int] | Tensor]
) -> EncoderOutput:
    """The memory of sources that have no targets yet.

    Args:
        model: whose encoder to use.
        sources: numbers of the symbols, without ``EOS``, or frames.

    Raises:
        ValueError: there are no sources, or one is empty, holds ``PAD`` or differs in
            kind from the others.
    """
    source, mask = pad_sources(sources)
    with evaluating(model):
        memory: EncoderOutput = model.encoder(
            source.to(model.device), mask.to(model.device)
        )
    return memory


def decode(
    saved: SavedModel,
    sources: Sequence[Source],
    *,
    search: Search = GREEDY,
    rows: int = 256,
) -> list[SearchResult]:
    """Search an output for every source, whatever the model.

    Processes that train together divide the sources among them; all have to call this.

    Args:
        saved: a model with its vocabularies.
        sources: symbols or frames, a sequence for each output.
        search: a search with its options filled in, such as
            ``partial(beam_search, width=5, max_length=64)``.
        rows: how many sources are searched together.

    Returns:
        what was found, in the order of the sources.
    """
    return map_over_ranks(partial(_decode, saved, search=search, rows=rows), sources)


def _decode(
    saved: SavedModel, sources: Sequence[Source], *, search: Search, rows: int
) -> list[SearchResult]:
    numbers = [encode_source(source, saved.source_vocabulary) for source in sources]
    # similar lengths together, so that little is wasted on padding
    order = sorted(range(len(numbers)), key=lambda row: len(numbers[row]))
    found: dict[int, SearchResult] = {}
    with evaluating(saved.model):
        for start in range(0, len(order), rows):
            chunk = order[start : start + rows]
            memory = encode_sources(saved.model, [numbers[row] for row in chunk])
            results = search(saved.model.decoder, memory)
            found.update(zip(chunk, results, strict=True))
    return [found[row] for row in range(len(numbers))]


def error_rates(
    saved: SavedModel, examples: Sequence[Example], *, search: Search = GREEDY
) -> dict[str, float]:
    """WER and PER of a model's best outputs, as shares.

    Args:
        saved: a model with its vocabularies.
        examples: sources with every right answer.
        search: how outputs are found.
    """
    found = decode(saved, [example.source for example in examples], search=search)
    outputs = [saved.target_vocabulary.decode(f.best.tokens) for f in found]
    references = [example.references for example in examples]
    return {
        "wer": word_error_rate(outputs, references),
        "per": phoneme_error_rate(outputs, references),
    }


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
