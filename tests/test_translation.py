import pytest
import sacrebleu
import torch

from seq2seq_lib.data.batch import Example
from seq2seq_lib.data.subwords import SubwordVocabulary
from seq2seq_lib.data.vocabulary import EOS, Vocabulary
from seq2seq_lib.lookup import LookupConfig
from seq2seq_lib.training import SavedModel
from seq2seq_lib.translation import measure, translate, translates

WORDS = {"ein": "a", "hund": "dog", "rennt": "runs", "zwei": "two", "im": "in"}


@pytest.fixture(scope="module")
def dictionary():
    """Translates word by word; every word is one piece."""
    pieces = SubwordVocabulary.train(
        [word for pair in WORDS.items() for word in pair] * 9, size=60
    )
    model = LookupConfig(source_symbols=60, target_symbols=60).build()
    with torch.no_grad():
        model.decoder.letter[EOS, EOS] = 20.0
        for german, english in WORDS.items():
            (source,), (target,) = pieces.encode(german), pieces.encode(english)
            model.decoder.letter[source, target] = 20.0
    return SavedModel(model, pieces, pieces, "multi30k-de-en")


def test_sentences_come_back_as_text_in_their_order(dictionary):
    sentences = ["ein hund rennt", "zwei", "im hund"]
    assert translate(dictionary, sentences) == ["a dog runs", "two", "in dog"]


def test_a_translation_is_measured_against_the_sentences_as_written(dictionary):
    sources = ["ein hund rennt im hund", "zwei hund rennt im hund"]
    outputs = ["a dog runs in dog", "two dog runs in dog"]
    references = ["a dog runs in a dog", "Two dogs run in dog"]
    examples = [
        Example((s,), ((r,),)) for s, r in zip(sources, references, strict=True)
    ]
    assert measure(dictionary, examples) == {
        "bleu": sacrebleu.corpus_bleu(outputs, [references]).score,
        "chrf": sacrebleu.corpus_chrf(outputs, [references]).score,
    }
    assert 5 < measure(dictionary, examples)["bleu"] < 95


def test_other_models_are_measured_in_errors(dictionary):
    letters = Vocabulary("ab")
    model = LookupConfig(source_symbols=6, target_symbols=6).build()
    saved = SavedModel(model, letters, letters, "toy-copy")
    assert translates(dictionary)
    assert not translates(saved)
    assert set(measure(saved, [Example(("a",), (("a",),))])) == {"wer", "per"}
    with pytest.raises(ValueError, match=r"'toy-copy' and says single symbols"):
        translate(saved, ["ab"])


def test_an_empty_sentence_is_refused(dictionary):
    with pytest.raises(ValueError, match="1 of them empty"):
        translate(dictionary, ["ein hund", " "])
