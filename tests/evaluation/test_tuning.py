from functools import partial

import pytest
import sacrebleu
import torch
from tiny_models import build, copier

from seq2seq_lib.data import Example, TaskName, Vocabulary
from seq2seq_lib.evaluation import decode, tuning
from seq2seq_lib.models.rnn_attention import RNNAttentionConfig
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.search import SearchConfig, beam_search
from seq2seq_lib.tasks import TASKS


@pytest.mark.parametrize("width", [1, 3])
def test_ranking_anew_equals_searching_anew(width):
    letters = Vocabulary("abcde")
    model = build(RNNAttentionConfig(source_symbols=9, target_symbols=9, width=8))
    saved = SavedModel(model, letters, letters, "toy-copy")
    sources = ["abc", "eda", "b", "cc", "abcde", "dada", "ebb", "ace"]
    find = partial(beam_search, width=width, max_length=9)
    once = decode(saved, sources, search=partial(find, alpha=3.0, trace=True))
    lengths = []
    for alpha in (0.0, 0.75, 1.5, 3.0):
        again = decode(saved, sources, search=partial(find, alpha=alpha))
        ranked = [tuning.rerank(one, alpha) for one in once]
        assert [one.tokens for one in ranked] == [one.best.tokens for one in again]
        torch.testing.assert_close(
            [one.score for one in ranked], [one.best.score for one in again]
        )
        lengths.append(sum(len(one.tokens) for one in ranked))
    if width > 1:
        assert lengths[0] < lengths[-1]  # there was something to choose


SEARCH = SearchConfig(width=2, alpha=0.5, max_length=30)


def test_a_table_has_a_row_for_every_search():
    saved, examples = copier(wrong=(5,))
    examples = examples[:60]
    rows = tuning.tune(saved, examples, search=SEARCH, widths=(1, 3), alphas=(0.0, 1.0))
    searches = [(row["width"], row["alpha"]) for row in rows]
    assert searches == [(1, 0.0), (1, 1.0), (3, 0.0), (3, 1.0)]
    letter = saved.source_vocabulary.symbols[5]
    wer = sum(letter in example.source for example in examples) / len(examples)
    for row in rows:
        assert row["wer"] == pytest.approx(wer)
        assert row["length"] == 1
        assert row["beyond_card"] == {"value": 0, "interval": [0, 0]}


def test_a_translator_is_scored_in_bleu(dictionary):
    sources = ["ein hund rennt im hund", "zwei hund rennt im hund"] * 4
    right = ["a dog runs in dog", "two dogs run in a big dog"] * 4
    examples = [Example((s,), ((r,),)) for s, r in zip(sources, right, strict=True)]
    (row,) = tuning.tune(dictionary, examples, search=SEARCH, widths=[1], alphas=[0.0])
    outputs = ["a dog runs in dog", "two dog runs in dog"] * 4
    assert row["bleu"] == sacrebleu.corpus_bleu(outputs, [right]).score
    assert row["length"] == 10 / 12


RIGHT = [f"a dog number {n} runs over the green grass" for n in range(40)]
EXAMPLES = [Example(("x",), ((sentence,),)) for sentence in RIGHT]
TRANSLATION = TASKS[TaskName.TRANSLATION]
WORSE = [s.replace("green", "red") if n % 2 else s for n, s in enumerate(RIGHT)]


class TestDifference:
    def test_of_bleu_is_that_of_sacrebleu(self):
        found = tuning.difference(TRANSLATION, WORSE, RIGHT, EXAMPLES)
        bleu = sacrebleu.corpus_bleu(WORSE, [RIGHT]).score
        assert found["value"] == pytest.approx(bleu - 100)
        low, high = found["interval"]
        assert low < found["value"] < high < 0
        back = tuning.difference(TRANSLATION, RIGHT, WORSE, EXAMPLES)
        assert back["interval"] == pytest.approx([-high, -low])

    def test_pairs_cancel_what_both_get_wrong(self):
        # both miss every second sentence wholly, one of them one word more elsewhere
        half = ["no" if n % 2 else s for n, s in enumerate(RIGHT)]
        less = [*half]
        less[0] = less[0].replace("green", "red")
        found = tuning.difference(TRANSLATION, less, half, EXAMPLES)
        low, high = found["interval"]
        alone = sacrebleu.BLEU().corpus_score(half, [RIGHT], n_bootstrap=300)
        assert high - low < 0.4 * 2 * alone._ci

    def test_of_wrong_words_is_a_share(self):
        examples = [Example(("x",), (("A", "B"),))] * 50
        wrong = [["C", "D"]] * 10 + [["A", "B"]] * 40
        found = tuning.difference(
            TASKS[TaskName.PRONUNCIATION], wrong, [["A", "B"]] * 50, examples
        )
        assert found["value"] == pytest.approx(0.2)
        low, high = found["interval"]
        assert 0.05 < low < 0.15
        assert 0.25 < high < 0.35


def test_nothing_to_compare_is_refused():
    saved, examples = copier()
    with pytest.raises(ValueError, match="0 widths, 5 alphas and 1 examples"):
        tuning.tune(saved, examples[:1], search=SEARCH, widths=[])
    with pytest.raises(ValueError, match=r"alpha=-1\.0 must not be negative"):
        tuning.tune(saved, examples[:1], search=SEARCH, alphas=[-1.0])
