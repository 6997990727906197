"""Chapter 12: from sentence to sentence, and the metrics of each kind of task."""

from collections.abc import Sequence

from seq2seq_lib.data.examples import Example
from seq2seq_lib.data.subwords import SubwordVocabulary
from seq2seq_lib.evaluation import GREEDY, decode, error_rates
from seq2seq_lib.metrics import bleu, chrf
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.search import Search


def translates(saved: SavedModel) -> bool:
    """Whether a model writes sentences rather than single symbols."""
    return isinstance(saved.target_vocabulary, SubwordVocabulary)


def translate(
    saved: SavedModel, sentences: Sequence[str], *, search: Search = GREEDY
) -> list[str]:
    """The best translation of every sentence.

    Args:
        saved: a model with a subword vocabulary on both sides.
        sentences: what to translate, none of them empty.
        search: how translations are found.

    Raises:
        ValueError: the model does not translate, or a sentence is empty.
    """
    if not translates(saved):
        raise ValueError(
            f"this model was trained on {saved.split!r} and says single symbols: "
            "translation needs one with a SubwordVocabulary. Use evaluation.decode."
        )
    vocabulary = saved.target_vocabulary
    assert isinstance(vocabulary, SubwordVocabulary)
    found = decode(saved, sentences, search=search)
    return [vocabulary.text(one.best.tokens) for one in found]


def measure(
    saved: SavedModel, examples: Sequence[Example], *, search: Search = GREEDY
) -> dict[str, float]:
    """How good a model is, by the metrics of its task.

    Args:
        saved: a model with its vocabularies.
        examples: sources with every right answer.
        search: how outputs are found.

    Returns:
        BLEU and chrF, from 0 to 100, of a model that translates; WER and PER, as
        shares, of any other.
    """
    if not translates(saved):
        return error_rates(saved, examples, search=search)
    sources = ["".join(example.source) for example in examples]
    references = [["".join(r) for r in example.references] for example in examples]
    outputs = translate(saved, sources, search=search)
    return {
        "bleu": bleu(outputs, references).value,
        "chrf": chrf(outputs, references).value,
    }
