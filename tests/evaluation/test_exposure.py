import itertools

import pytest
import torch

from seq2seq_lib.data.examples import Example
from seq2seq_lib.data.vocabulary import EOS, Vocabulary
from seq2seq_lib.evaluation.exposure import (
    END,
    PrefixErrors,
    exposure,
    prefix_errors,
    wrong_after,
)
from seq2seq_lib.metrics import edit_distance
from seq2seq_lib.models.lookup import LookupConfig
from seq2seq_lib.models.saved import SavedModel

ANSWERS = (("K", "AE", "T"), ("S", "IY"))


def nearest_end(prefix, references, *, longest=6):
    """How near an output that begins so can come, by trying every continuation."""
    symbols = sorted({symbol for reference in references for symbol in reference})
    return min(
        edit_distance((*prefix, *rest), reference)
        for length in range(longest + 1)
        for rest in itertools.product(symbols, repeat=length)
        for reference in references
    )


@pytest.mark.parametrize(
    "references", [["ab"], ["aab"], ["aba", "bb"]], ids=["one", "repeated", "two"]
)
def test_a_symbol_is_right_if_no_further_edit_becomes_necessary(references):
    references = [tuple(reference) for reference in references]
    for length in range(4):
        for prefix in itertools.product("abx", repeat=length):
            found = prefix_errors(prefix, references)
            before = nearest_end(prefix, references, longest=4)
            assert found.errors == before
            right = {
                symbol
                for symbol in "abx"
                if nearest_end((*prefix, symbol), references, longest=4) == before
            }
            if min(edit_distance(prefix, y) for y in references) == before:
                right.add(END)  # to stop here costs nothing either
            assert found.right == right


def test_errors_of_a_prefix_by_hand():
    assert prefix_errors((), ANSWERS) == PrefixErrors(
        0, ((0, 0), (1, 0)), frozenset("KS")
    )
    assert prefix_errors(("K", "AE", "T"), ANSWERS).right == {END}
    # EH may stand in place of AE, or before it
    replaced = prefix_errors(("K", "EH"), ANSWERS)
    assert (replaced.errors, replaced.right) == (1, {"AE", "T"})
    assert replaced.places == ((0, 1), (0, 2))
    assert replaced.furthest == ((0, 2),)
    either = prefix_errors(("X",), [("A", "B"), ("C", "D"), ("E",)])
    assert either.furthest == ((0, 1), (1, 1), (2, 1))
    # the second answer is one edit away, the first two
    assert prefix_errors(("S", "EH"), ANSWERS).places == ((1, 1), (1, 2))


def test_a_prefix_needs_an_answer():
    with pytest.raises(ValueError, match="at least one right answer"):
        prefix_errors(("K",), ())


LETTERS, SOUNDS = Vocabulary("cat"), Vocabulary(["K", "EH", "AE", "T"])
WORD = Example(tuple("cat"), (("K", "AE", "T"),))


@pytest.fixture
def derailed():
    """Says K EH T for cat, and is unsure of what follows EH."""
    model = LookupConfig(source_symbols=7, target_symbols=8).build()
    with torch.no_grad():
        for letter, sound, score in (
            ("c", "K", 20.0),
            ("a", "EH", 9.0),
            ("a", "AE", 8.0),
            ("t", "T", 5.0),
        ):
            at, to = LETTERS.encode([letter])[0], SOUNDS.encode([sound])[0]
            model.decoder.letter[at, to] = score
        model.decoder.letter[EOS, EOS] = 20.0
        model.decoder.previous[SOUNDS.encode(["EH"])[0], EOS] = 4.0
    return SavedModel(model, LETTERS, SOUNDS, "toy-copy")


def softmax_share(right, others):
    """The share of some scores among all, by arithmetic."""
    total = sum(torch.tensor(score).exp().item() for score in (*right, *others))
    return sum(torch.tensor(score).exp().item() for score in right) / total


def test_exposure_by_hand(derailed):
    (steps,) = exposure(derailed, [WORD])
    assert [step.errors for step in steps] == [0, 0, 1, 1]
    start, vowel, after, end = steps
    assert start.wrong == start.gold == pytest.approx(0, abs=1e-6)
    wrong = 1 - softmax_share([8.0], [9.0, *[0.0] * 6])
    assert vowel.wrong == pytest.approx(wrong, abs=1e-6)
    assert vowel.gold == vowel.wrong  # the same prefix
    # after K EH both AE and T are right; EH makes the end likely
    wrong = 1 - softmax_share([5.0, 0.0], [4.0, *[0.0] * 5])
    assert after.wrong == pytest.approx(wrong, abs=1e-6)
    # the gold prefix that comes as far is K AE, where only T is right
    at_t = 1 - softmax_share([5.0], [0.0] * 7)
    assert after.gold == pytest.approx(at_t, abs=1e-6)
    assert end.wrong == end.gold == pytest.approx(0, abs=1e-6)


def test_after_gold_prefixes_there_are_no_errors(derailed):
    (walked,) = wrong_after(derailed, [WORD], [WORD.references[0]])
    assert [place.errors for place, _ in walked] == [0] * 4
    assert len(walked) == 4


def test_neither_order_nor_neighbours_matter(derailed):
    words = [
        WORD,
        Example(tuple("at"), (("AE", "T"), ("AE",))),
        Example(("c",), WORD.references),
    ]
    alone = [exposure(derailed, [word])[0] for word in words]
    for rows in (1, 2, 100):
        together = exposure(derailed, words, rows=rows)
        for some, others in zip(together, alone, strict=True):
            assert [s.errors for s in some] == [s.errors for s in others]
            for one, other in zip(some, others, strict=True):
                assert one.wrong == pytest.approx(other.wrong, abs=1e-6)
                assert one.gold == pytest.approx(other.gold, abs=1e-6)


def test_an_empty_output_is_one_step(derailed):
    with torch.no_grad():
        derailed.model.decoder.previous[:, EOS] += 50.0
    (steps,) = exposure(derailed, [WORD])
    assert [step.errors for step in steps] == [0]
    assert steps[0].wrong == steps[0].gold == pytest.approx(1)


def test_an_output_for_every_example(derailed):
    with pytest.raises(ValueError, match="0 outputs for 1 examples"):
        wrong_after(derailed, [WORD], [])
