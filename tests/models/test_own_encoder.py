"""A reader's own encoder, as CONTRIBUTING.md shows it, works with everything else."""

import re
from functools import partial
from pathlib import Path

import pytest
import torch

from seq2seq_lib.data import Batches, ToyTask, encode_pairs, toy_corpus
from seq2seq_lib.evaluation import decode, held_out_loss, measure
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.plotting import heat_map, plot_beam_tree
from seq2seq_lib.search import beam_search
from seq2seq_lib.training import TrainingConfig, fit

GUIDE = Path(__file__).parents[2] / "CONTRIBUTING.md"


@pytest.fixture(scope="module")
def trained():
    code = re.search(r"```python\n(.*?)```", GUIDE.read_text("utf-8"), re.DOTALL)[1]
    names = {}
    torch.manual_seed(0)
    exec(compile(code, str(GUIDE), "exec"), names)
    corpus = toy_corpus(ToyTask.SORT, train=2000, held_out=100, lengths=(2, 4))
    vocabulary = corpus.source_vocabulary
    pairs = encode_pairs(corpus.train, vocabulary, vocabulary)
    config = TrainingConfig(steps=200, learning_rate=1e-2, evaluate_every=200)
    fit(names["model"], Batches(pairs, budget=512), config, progress=False)
    return SavedModel(names["model"], vocabulary, vocabulary, corpus.name), corpus


def test_it_is_trained_searched_and_evaluated(trained):
    saved, corpus = trained
    # to sort, one need not know the order: most words come out right
    assert measure(saved, corpus.dev)["wer"] < 0.2
    pairs = encode_pairs(corpus.dev, saved.source_vocabulary, saved.target_vocabulary)
    loss = held_out_loss(saved.model, Batches(pairs, budget=512).epoch(0))
    assert loss["perplexity"] < 2


def test_its_search_can_be_drawn(trained):
    saved, corpus = trained
    word = corpus.dev[0].source
    search = partial(beam_search, width=3, max_length=8, trace=True)
    found = decode(saved, [word], search=search)[0]
    axes = plot_beam_tree(found.trace, saved.target_vocabulary, title="sorting")
    assert axes.get_title(loc="left") == "sorting"
    said = [*saved.target_vocabulary.decode(found.best.tokens), "<eos>"]
    weights = found.trace.attention[0]
    heat_map(weights, rows=said, columns=[*word, "<eos>"], title="where it looked")
