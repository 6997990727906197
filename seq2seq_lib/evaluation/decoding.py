"""Chapter 5: how good a model is, measured the same way for every model."""

from collections.abc import Iterable, Sequence
from functools import partial

from seq2seq_lib.data.batch import Batch, Example, pad
from seq2seq_lib.data.vocabulary import EOS, PAD
from seq2seq_lib.interface import EncoderDecoder, EncoderOutput, evaluating
from seq2seq_lib.metrics import perplexity, phoneme_error_rate, word_error_rate
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.search import Search, SearchResult, greedy_search
from seq2seq_lib.training.distributed import map_over_ranks
from seq2seq_lib.training.loss import cross_entropy

GREEDY: Search = partial(greedy_search, max_length=64)


def encode_sources(
    model: EncoderDecoder, sources: Sequence[Sequence[int]]
) -> EncoderOutput:
    """The memory of sources that have no targets yet.

    Args:
        model: whose encoder to use.
        sources: numbers of the symbols, without ``EOS``.

    Raises:
        ValueError: there are no sources, or one is empty or holds ``PAD``.
    """
    if not sources or not all(sources):
        raise ValueError(
            f"{len(sources)} sources, {sum(not s for s in sources)} of them empty: "
            "expected at least one, and at least one symbol in each."
        )
    if any(PAD in source for source in sources):
        raise ValueError(f"a source holds {PAD}, the number of <pad>: leave it out.")
    source = pad([[*source, EOS] for source in sources]).to(model.device)
    with evaluating(model):
        memory: EncoderOutput = model.encoder(source, source != PAD)
    return memory


def decode(
    saved: SavedModel,
    sources: Sequence[Sequence[str]],
    *,
    search: Search = GREEDY,
    rows: int = 256,
) -> list[SearchResult]:
    """Search an output for every source, whatever the model.

    Processes that train together divide the sources among them; all have to call this.

    Args:
        saved: a model with its vocabularies.
        sources: symbols, one sequence for each output.
        search: a search with its options filled in, such as
            ``partial(beam_search, width=5, max_length=64)``.
        rows: how many sources are searched together.

    Returns:
        what was found, in the order of the sources.
    """
    return map_over_ranks(partial(_decode, saved, search=search, rows=rows), sources)


def _decode(
    saved: SavedModel, sources: Sequence[Sequence[str]], *, search: Search, rows: int
) -> list[SearchResult]:
    numbers = [saved.source_vocabulary.encode(source) for source in sources]
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
