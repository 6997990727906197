import json
from functools import partial

import pytest
import sacrebleu
import torch
from tiny_models import build, copier, ship

from seq2seq_lib.cli import main
from seq2seq_lib.data import Example, Vocabulary
from seq2seq_lib.evaluation import decode, scores, tuning
from seq2seq_lib.models.rnn_attention import RNNAttentionConfig
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.pretrained import weights
from seq2seq_lib.search import beam_search


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


def test_a_table_has_a_row_for_every_search(tmp_path):
    saved, examples = copier(wrong=(5,))
    shipped = ship(saved, tmp_path)
    examples = examples[:60]
    table = tuning.tune(shipped, examples, widths=(1, 3), alphas=(0.0, 1.0))
    searches = [(row["width"], row["alpha"]) for row in table["rows"]]
    assert searches == [(1, 0.0), (1, 1.0), (3, 0.0), (3, 1.0)]
    letter = saved.source_vocabulary.symbols[5]
    wer = sum(letter in example.source for example in examples) / len(examples)
    for row in table["rows"]:
        assert row["wer"] == pytest.approx(wer)
        assert row["length"] == 1
        assert row["beyond_card"] == {"value": 0, "interval": [0, 0]}
    assert table["part"] == "dev"
    assert table["sha256"] == shipped.card.sha256
    path = scores.store(table, directory=tmp_path / "searches")
    assert json.loads(path.read_text("utf-8")) == json.loads(json.dumps(table))


def test_a_translator_is_scored_in_bleu(dictionary, tmp_path):
    shipped = ship(dictionary, tmp_path)
    sources = ["ein hund rennt im hund", "zwei hund rennt im hund"] * 4
    right = ["a dog runs in dog", "two dogs run in a big dog"] * 4
    examples = [Example((s,), ((r,),)) for s, r in zip(sources, right, strict=True)]
    (row,) = tuning.tune(shipped, examples, widths=[1], alphas=[0.0])["rows"]
    said = ["a dog runs in dog", "two dog runs in dog"] * 4
    assert row["bleu"] == sacrebleu.corpus_bleu(said, [right]).score
    assert row["length"] == 10 / 12


RIGHT = [f"a dog number {n} runs over the green grass" for n in range(40)]
EXAMPLES = [Example(("x",), ((sentence,),)) for sentence in RIGHT]
WORSE = [s.replace("green", "red") if n % 2 else s for n, s in enumerate(RIGHT)]


class TestDifference:
    def test_of_bleu_is_that_of_sacrebleu(self):
        found = tuning.difference(WORSE, RIGHT, EXAMPLES)
        bleu = sacrebleu.corpus_bleu(WORSE, [RIGHT]).score
        assert found["value"] == pytest.approx(bleu - 100)
        low, high = found["interval"]
        assert low < found["value"] < high < 0
        back = tuning.difference(RIGHT, WORSE, EXAMPLES)
        assert back["interval"] == pytest.approx([-high, -low])

    def test_pairs_cancel_what_both_get_wrong(self):
        # both miss every second sentence wholly, one of them one word more elsewhere
        half = ["no" if n % 2 else s for n, s in enumerate(RIGHT)]
        less = [*half]
        less[0] = less[0].replace("green", "red")
        found = tuning.difference(less, half, EXAMPLES)
        low, high = found["interval"]
        alone = sacrebleu.BLEU().corpus_score(half, [RIGHT], n_bootstrap=300)
        assert high - low < 0.4 * 2 * alone._ci

    def test_of_wrong_words_is_a_share(self):
        examples = [Example(("x",), (("A", "B"),))] * 50
        wrong = [["C", "D"]] * 10 + [["A", "B"]] * 40
        found = tuning.difference(wrong, [["A", "B"]] * 50, examples)
        assert found["value"] == pytest.approx(0.2)
        low, high = found["interval"]
        assert 0.05 < low < 0.15
        assert 0.25 < high < 0.35


def test_nothing_to_compare_is_refused(tmp_path):
    saved, examples = copier()
    shipped = ship(saved, tmp_path)
    with pytest.raises(ValueError, match="0 widths, 5 alphas and 1 examples"):
        tuning.tune(shipped, examples[:1], widths=[])
    with pytest.raises(ValueError, match=r"alpha=-1\.0 must not be negative"):
        tuning.tune(shipped, examples[:1], alphas=[-1.0])


def test_the_command_uses_the_development_part(tmp_path, monkeypatch, capsys):
    shipped = ship(copier(wrong=(4,))[0], tmp_path)
    monkeypatch.setattr("seq2seq_lib.cli.scoring.load", lambda *_, **__: shipped)
    monkeypatch.setattr(tuning, "DIRECTORY", tmp_path / "searches")
    command = ["tune", "model", "--widths", "1", "2", "--alphas", "0", "--words", "30"]
    assert main(command) == 0
    shown = json.loads(capsys.readouterr().out)
    stored = json.loads((tmp_path / "searches" / "model.json").read_text("utf-8"))
    assert shown == stored
    dev = scores.load_corpus(scores.CorpusName.COPY).dev[:30]
    letter = shipped.source_vocabulary.symbols[4]
    wrong = sum(letter in example.source for example in dev)
    assert stored["rows"][0]["wer"] == pytest.approx(wrong / 30)
    assert main(["tune", "model", "--words", "0"]) == 2
    assert "--words 0: expected at least 1" in capsys.readouterr().err


@pytest.mark.parametrize(
    "path", sorted(tuning.DIRECTORY.glob("*.json")), ids=lambda path: path.stem
)
def test_stored_tables_belong_to_the_shipped_weights(path):
    stored = json.loads(path.read_text("utf-8"))
    card = weights.read_card(path.stem)
    assert stored["sha256"] == card.sha256
    assert stored["card"] == card.search
