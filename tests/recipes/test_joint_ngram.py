import platform
import sys

import needs
import pytest

from seq2seq_lib.data import Example
from seq2seq_lib.recipes import joint_ngram
from seq2seq_lib.recipes.joint_ngram import BEHIND, JointNGram

pytestmark = needs.system(
    sys.platform == "linux" and platform.machine() == "x86_64",
    "Phonetisaurus is tested where its programs are",
)

SOUND = {"a": "AH", "b": "B", "k": "K", "n": "N", "t": "T"}


def example(word):
    """Every letter is a sound, but k before n is silent and tt is one sound."""
    letters = word.replace("kn", "n").replace("tt", "t")
    return Example(tuple(word), (tuple(SOUND[letter] for letter in letters),))


WORDS = """
    at bat tab ban nab tan ant knat knab tank bank kab kat batt natt tatt bakna takna
    akna knatt knabat tabank banat natab katab abat anat batan tabban
""".split()


OTHERWISE = [Example(("a", "t"), (("AE", "T"),))] * 3  # an a may sound in two ways


@pytest.fixture(scope="module")
def ngram(tmp_path_factory):
    return learned(tmp_path_factory.mktemp("ngram"), *map(example, WORDS), *OTHERWISE)


def learned(directory, *examples):
    ngram = JointNGram(directory, examples)
    ngram.learn()
    return ngram


def test_it_learns_what_letters_sound_like(ngram):
    new = ["knant", "tabnatt"]
    for word, proposals in zip(new, ngram.propose(new), strict=True):
        assert proposals[0].sounds == example(word).references[0]


def test_proposals_come_best_first_and_near_the_best(ngram):
    (proposals,) = ngram.propose(["bankat"])
    probable = [one.score for one in proposals]
    assert probable == sorted(probable, reverse=True)
    assert len({one.sounds for one in proposals}) == len(proposals) > 1
    assert 0 > probable[0] >= probable[-1] >= probable[0] - BEHIND


def test_words_keep_their_order_and_may_come_twice(ngram):
    one, other = ngram.propose(["tab", "ban"])
    assert ngram.propose(["ban", "tab", "ban"]) == [other, one, other]
    assert ngram.propose([]) == []


def test_a_letter_that_was_never_seen(ngram):
    assert ngram.propose(["bxt", "bat"])[0] == []
    assert ngram.propose(["bat"])[0] != []


def test_a_letter_that_was_seen_with_another_only(tmp_path):
    quick = Example(tuple("qua"), (("K", "AH"),))
    ngram = learned(tmp_path, *map(example, WORDS), *[quick] * 5)
    assert ngram.propose(["quat"])[0][0].sounds == ("K", "AH", "T")
    assert ngram.propose(["tuq"]) == [[]]


def test_it_learns_once(tmp_path, monkeypatch):
    examples = [example(word) for word in WORDS]
    first = learned(tmp_path, *examples)
    monkeypatch.setattr(joint_ngram, "_learned", None)  # would not learn
    assert learned(tmp_path, *examples).model == first.model
    with pytest.raises(TypeError):
        learned(tmp_path, *examples[1:])
    monkeypatch.setattr(joint_ngram, "ORDER", 3)
    with pytest.raises(TypeError):
        learned(tmp_path, *examples)


def test_words_shorter_than_the_order_of_the_model(tmp_path):
    ngram = learned(tmp_path, *map(example, ["at", "bat", "tab", "ban"]))
    assert ngram.propose(["at"])[0][0].sounds == ("AH", "T")


def test_without_phonetisaurus(ngram, monkeypatch):
    monkeypatch.setattr(joint_ngram.importlib.util, "find_spec", lambda _: None)
    with pytest.raises(OSError, match=r"pip install \"seq2seq_lib\[distillation\]\""):
        ngram.propose(["bat"])


def test_on_another_machine(ngram, monkeypatch):
    monkeypatch.setattr(joint_ngram.platform, "machine", lambda: "vax")
    with pytest.raises(OSError, match=r"phonetisaurus-g2pfst .* vax"):
        ngram.propose(["bat"])


def test_a_program_that_fails(tmp_path):
    ngram = JointNGram(tmp_path, [example("bat")])
    ngram.model.write_text("no model")
    with pytest.raises(RuntimeError, match="phonetisaurus-g2pfst ended with"):
        ngram.propose(["bat"])
