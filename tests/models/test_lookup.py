import torch
from torch.testing import assert_close

from seq2seq_lib.data.batch import Batch
from seq2seq_lib.data.examples import Pair
from seq2seq_lib.data.vocabulary import BOS, EOS
from seq2seq_lib.models.lookup import LookupConfig
from seq2seq_lib.search import greedy_search


def test_the_two_tables_decide_what_is_said():
    model = LookupConfig(source_symbols=6, target_symbols=6).build()
    with torch.no_grad():
        model.decoder.letter[4, 5] = 10.0  # letter 4 sounds like 5
        model.decoder.letter[5, 4] = 10.0
        model.decoder.letter[EOS, EOS] = 10.0
    batch = Batch.from_pairs([Pair([4, 5, 5], [5]), Pair([5], [5])])
    found = greedy_search(model.decoder, model.encode(batch), max_length=9)
    assert [f.best.tokens for f in found] == [(5, 4, 4), (4,)]


def test_scores_are_the_softmax_of_the_sum():
    model = LookupConfig(source_symbols=6, target_symbols=7).build()
    torch.nn.init.normal_(model.decoder.letter)
    torch.nn.init.normal_(model.decoder.previous)
    batch = Batch.from_pairs([Pair([4, 5], [6, 5])])
    expected = [
        model.decoder.letter[letter] + model.decoder.previous[previous]
        for letter, previous in ((4, BOS), (5, 6), (EOS, 5))
    ]
    assert_close(model(batch)[0], torch.stack(expected).log_softmax(-1))


def test_the_one_hot_memory_counts_letters():
    model = LookupConfig(source_symbols=6, target_symbols=7).build()
    memory = model.encode(Batch.from_pairs([Pair([4, 4, 5], [6])]))
    assert memory.summary.tolist() == [[0, 0, 1, 0, 2, 1]]
    assert memory.states[0].argmax(-1).tolist() == [4, 4, 5, EOS]
