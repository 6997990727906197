import pytest
import sacrebleu

from seq2seq_lib.data.examples import Example
from seq2seq_lib.data.vocabulary import Vocabulary
from seq2seq_lib.models.lookup import LookupConfig
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.tasks.translation import measure, translate, translates


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
