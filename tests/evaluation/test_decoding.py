from functools import partial

import pytest
import sacrebleu
import torch
from tiny_models import CONFIGS, build, example_batch
from torch.nn import functional as F

from seq2seq_lib.data.batch import Batch
from seq2seq_lib.data.examples import Example, Pair
from seq2seq_lib.data.vocabulary import EOS, Vocabulary
from seq2seq_lib.evaluation import (
    best_outputs,
    decode,
    encode_sources,
    held_out_loss,
    measure,
)
from seq2seq_lib.models.lookup import LookupConfig
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.search import beam_search, greedy_search


@pytest.fixture
def spelling(device):
    """Says every letter as its capital, except c, which it says as S."""
    letters, sounds = Vocabulary("abc"), Vocabulary("ABS")
    model = LookupConfig(source_symbols=7, target_symbols=7).build()
    with torch.no_grad():
        for letter, sound in ((4, 4), (5, 5), (6, 6), (EOS, EOS)):
            model.decoder.letter[letter, sound] = 20.0
    return SavedModel(model.to(device), letters, sounds, "toy-copy")


def test_outputs_come_in_the_order_of_their_sources(spelling):
    words = ["cab", "a", "abba", "bc", "c"]
    for rows in (1, 2, 100):
        found = decode(spelling, words, rows=rows)
        said = [
            "".join(spelling.target_vocabulary.decode(f.best.tokens)) for f in found
        ]
        assert said == ["SAB", "A", "ABBA", "BS", "S"]


def test_any_search_can_be_used(spelling):
    search = partial(beam_search, width=3, max_length=9, n_best=3)
    found = decode(spelling, ["ab"], search=search)[0]
    assert len(found.hypotheses) == 3
    assert spelling.target_vocabulary.decode(found.best.tokens) == ["A", "B"]


def test_pronunciations_are_measured_in_errors(spelling):
    examples = [
        Example(tuple("ab"), (("A", "B"),)),
        Example(tuple("ca"), (("K", "A"), ("S", "A"))),  # the second one is right
        Example(tuple("cab"), (("K", "A", "B"),)),  # one of three sounds is wrong
    ]
    assert measure(spelling, examples) == pytest.approx({"wer": 1 / 3, "per": 1 / 7})


def test_sentences_come_back_as_text_in_their_order(dictionary):
    sentences = ["ein hund rennt", "zwei", "im hund"]
    assert best_outputs(dictionary, sentences) == ["a dog runs", "two", "in dog"]
    with pytest.raises(ValueError, match="1 of them empty"):
        best_outputs(dictionary, ["ein hund", " "])


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


def test_the_held_out_loss_is_pytorchs_cross_entropy():
    model, batch = build(CONFIGS["gru"]), example_batch()
    short = Batch.from_pairs([Pair([4], [5])])
    logits = torch.cat([model(b).flatten(0, 1) for b in (batch, short)])
    targets = torch.cat([b.target.flatten() for b in (batch, short)])
    expected = F.cross_entropy(logits, targets, ignore_index=0).item()
    measured = held_out_loss(model, [batch, short])
    assert measured["loss"] == pytest.approx(expected)
    assert measured["perplexity"] == pytest.approx(torch.tensor(expected).exp().item())


def test_a_memory_of_sources_equals_that_of_a_batch(device):
    model, batch = (
        build(CONFIGS["gru"], torch.float).to(device),
        example_batch().to(device),
    )
    memory = encode_sources(model, [[4, 5, 6, 7, 10], [8, 9], [10, 4, 4]])
    torch.testing.assert_close(memory.states, model.encode(batch).states.detach())
    greedy = greedy_search(model.decoder, memory, max_length=5)
    assert len(greedy) == 3


def test_nothing_to_encode_is_refused(spelling):
    with pytest.raises(ValueError, match="2 sources, 1 of them empty"):
        decode(spelling, ["ab", ""])
    with pytest.raises(ValueError, match="0 sources"):
        encode_sources(spelling.model, [])
    with pytest.raises(ValueError, match="holds 0, the number of <pad>"):
        encode_sources(spelling.model, [[4, 0, 5]])
    with pytest.raises(ValueError, match="no batches"):
        held_out_loss(spelling.model, [])


def test_evaluation_leaves_the_model_training(spelling):
    spelling.model.train()
    measure(spelling, [Example(("a",), (("A",),))])
    assert spelling.model.training
