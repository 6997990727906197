from functools import partial

import needs
import pytest
import torch
from tiny_models import CONFIGS, build

from seq2seq_lib.data import (
    Corpus,
    Example,
    TaskName,
    Vocabulary,
    frequent_words,
    pronalsyl,
    surnames,
)
from seq2seq_lib.models.saved import SavedModel
from seq2seq_lib.recipes import distillation
from seq2seq_lib.recipes.distillation import (
    WEIGHT,
    Unlabelled,
    label_by_search,
    label_from_proposals,
    pseudo_labels,
)
from seq2seq_lib.recipes.joint_ngram import JointNGram, Proposal
from seq2seq_lib.recipes.soft_targets import log_probabilities
from seq2seq_lib.search import greedy_search


@pytest.fixture
def saved(device):
    teacher = build(CONFIGS["gru"], torch.float).to(device)
    return SavedModel(teacher, Vocabulary("abcdefg"), Vocabulary("vwxyz"), "toy-copy")


def search(saved, symbols):
    return label_by_search(saved, partial(greedy_search, max_length=symbols))


def test_the_teacher_labels_once(saved, tmp_path):
    path = tmp_path / "labels.tsv"
    words = ["abc", "gfe", "d"]
    pseudo_labels(path, words, search(saved, 6))
    lines = path.read_text().splitlines()
    assert [line.partition("\t")[0] for line in lines] == words
    path.write_text("abc\tv w\ngfe\nd\tx\n")  # some editors cut a tab at the end
    kept = pseudo_labels(path, words, search(saved, 6))
    assert kept == [  # where nothing was said, there is nothing to learn
        Example(("a", "b", "c"), (("v", "w"),)),
        Example(("d",), (("x",),)),
    ]
    with pytest.raises(ValueError, match="labels other sources than these 2"):
        pseudo_labels(path, words[:2], search(saved, 6))


def test_a_killed_teacher_goes_on_with_what_it_has_not_labelled(monkeypatch, tmp_path):
    monkeypatch.setattr(distillation, "LABELS_BETWEEN_WRITES", 2)
    path = tmp_path / "labels.tsv"
    asked = []

    def labels(sources):
        asked.append([*sources])
        if "e" in sources and len(asked) == 3:
            raise KeyboardInterrupt
        return [source.upper() for source in sources]

    words = ["a", "b", "c", "d", "e"]
    with pytest.raises(KeyboardInterrupt):
        pseudo_labels(path, words, labels)
    assert path.read_text() == "a\tA\nb\tB\nc\tC\nd\tD\n"
    half_written = path.with_name(f".{path.name}.0a1b")
    half_written.touch()
    found = pseudo_labels(path, words, labels)
    assert asked == [["a", "b"], ["c", "d"], ["e"], ["e"]]
    assert found == [Example((word,), ((word.upper(),),)) for word in words]
    assert [*tmp_path.iterdir()] == [path]


def test_the_labels_that_the_first_process_has_count(monkeypatch, tmp_path):
    monkeypatch.setattr(distillation, "all_gather", lambda mine: [["a\tA"], mine])
    asked = []
    found = pseudo_labels(
        tmp_path / "a.tsv", ["a", "b"], lambda some: asked.extend(some) or some
    )
    assert asked == ["b"]
    assert found == [Example(("a",), (("A",),)), Example(("b",), (("b",),))]


def test_an_output_without_an_end_is_no_label(saved, tmp_path):
    with torch.no_grad():
        saved.model.decoder.output.bias[2] = -1e4  # it never says <eos>
    assert pseudo_labels(tmp_path / "a.tsv", ["abc"], search(saved, 4)) == []


class Scripted(JointNGram):
    """Holds most probable what the teacher holds least probable, and is that sure."""

    def __init__(self, believed, outputs, sure):
        pairs = zip(believed, outputs, strict=True)
        self.proposals = [Proposal(-sure * x, output) for x, output in pairs]

    def learn(self):
        self.learned = True

    def propose(self, words):
        assert self.learned
        return [self.proposals if word == "abc" else [] for word in words]


def test_two_models_choose_together(saved):
    outputs = [("v", "w"), ("x",), ("z", "z", "y")]
    believed = log_probabilities(saved, [("abc", output) for output in outputs])
    order = sorted(range(3), key=believed.__getitem__)
    for sure, best in (
        (0, order[-1]),
        (0.9 / WEIGHT, order[-1]),
        (2 / WEIGHT, order[0]),
    ):
        labels = label_from_proposals(saved, Scripted(believed, outputs, sure))
        assert [*labels(["d", "abc", "abc"])] == [(), outputs[best], outputs[best]]


def test_the_teacher_is_not_asked_about_an_only_proposal(saved, monkeypatch):
    asked = []
    monkeypatch.setattr(
        distillation,
        "log_probabilities",
        lambda _, outputs: asked.extend(outputs) or [],
    )
    only = Scripted([0.0], [("v", "w")], 1)
    assert label_from_proposals(saved, only)(["d", "abc"]) == [(), ("v", "w")]
    assert asked == []


def test_other_seeds_invent_other_words(monkeypatch):
    monkeypatch.setattr(distillation, "INVENTED", 9)
    letters = Vocabulary("abcdefghijklmnopqrstuvwxyz")
    starts = ["xxbl", "xxcr", "xxst", "xxpl", "xxfr", "xxgn"]
    ends = ["ing", "ed", "al", "ist", "ism", "ally"]
    train = [  # half of the combinations; the others may be invented
        Example(tuple(f"{start}ation{end}"), (("v",),))
        for s, start in enumerate(starts)
        for e, end in enumerate(ends)
        if (s + e) % 2
    ]
    corpus = Corpus("toy", train, [], [], letters, letters, TaskName.TOY)
    first, again, other = (
        Unlabelled.WORDS.sources(corpus, seed=seed)[-9:] for seed in (0, 0, 1)
    )
    assert first == again
    assert set(first) != set(other)


def test_after_surnames_come_frequent_and_invented_words(monkeypatch):
    monkeypatch.setattr(distillation, "INVENTED", 1)
    letters = Vocabulary("abcdefghijklmnopqrstuvwxyz")
    known = ["the", "xxnationzz", "xxnationall", "yynationzz"]
    train = [Example(tuple(word), (("v",),)) for word in known]
    corpus = Corpus("toy", train, [], [], letters, letters, TaskName.TOY)
    words = Unlabelled.WORDS.sources(corpus)
    names = Unlabelled.SURNAMES.sources(corpus)
    assert words[: len(names)] == names
    assert len(words) == len(set(words)) > len(names) + 50_000
    assert "and" in words[len(names) :]
    assert words[-1] == "yynationall"
    assert not set(known) & set(words)


def test_no_word_of_the_corpus_is_labelled():
    def part(*words):
        return [Example(tuple(word), (("v",),)) for word in words]

    letters = Vocabulary("abcdefghijklmnopqrstuvwxyz")
    parts = part("smith"), part("johnson"), part("williams")
    corpus = Corpus("toy", *parts, letters, letters, TaskName.TOY)
    names = Unlabelled.SURNAMES.sources(corpus)
    assert len(names) > 80_000
    assert not {"smith", "johnson", "williams"} & set(names)
    assert Unlabelled.NONE.sources(corpus) == []


def test_half_a_million_words_most_of_them_invented():
    needs.corpus("pronalsyl")
    corpus = pronalsyl()
    words = set(Unlabelled.WORDS.sources(corpus))
    assert 450_000 < len(words) < 550_000
    assert len(words - {*surnames(), *frequent_words()}) > 0.75 * len(words)
    held_out = corpus.dev + corpus.test
    assert not words & {"".join(example.source) for example in held_out}
