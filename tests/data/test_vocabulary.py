import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from seq2seq_lib.data.vocabulary import BOS, EOS, PAD, SPECIAL, UNK, Vocabulary

symbols = st.text(min_size=1, max_size=4).filter(lambda symbol: symbol not in SPECIAL)
alphabets = st.lists(symbols, min_size=1, max_size=12, unique=True)


@st.composite
def alphabets_with_sequences(draw):
    alphabet = draw(alphabets)
    return alphabet, draw(st.lists(st.sampled_from(alphabet)))


def test_the_special_symbols_come_first():
    vocabulary = Vocabulary(["N", "AY", "T"])
    assert vocabulary.symbols == (*SPECIAL, "N", "AY", "T")
    assert [vocabulary.symbols[n] for n in (PAD, BOS, EOS, UNK)] == list(SPECIAL)


@given(alphabets_with_sequences())
def test_decoding_undoes_encoding(drawn):
    alphabet, sequence = drawn
    vocabulary = Vocabulary(alphabet)
    numbers = vocabulary.encode(sequence, strict=True)
    assert all(len(SPECIAL) <= number < len(vocabulary) for number in numbers)
    assert vocabulary.decode(numbers) == sequence


@given(alphabets)
def test_json_and_back(alphabet):
    vocabulary = Vocabulary(alphabet)
    again = Vocabulary.from_json(vocabulary.to_json())
    assert again == vocabulary
    assert hash(again) == hash(vocabulary)


def test_saving_and_loading(tmp_path):
    vocabulary = Vocabulary(["ŋ", "\n", '"', "\u2028", "a b"])
    vocabulary.save(tmp_path / "vocabulary.json")
    assert Vocabulary.load(tmp_path / "vocabulary.json") == vocabulary
    assert Vocabulary.load(str(tmp_path / "vocabulary.json")) == vocabulary


@given(st.lists(st.lists(symbols, max_size=5), max_size=6))
def test_symbols_are_collected_in_an_order_that_the_data_cannot_change(sequences):
    collected = Vocabulary.from_sequences(sequences)
    assert collected == Vocabulary.from_sequences(reversed(sequences))
    assert set(collected.symbols[4:]) == {s for these in sequences for s in these}


def test_equality_and_membership():
    assert Vocabulary("ab") != Vocabulary("ba")
    assert Vocabulary("ab") != ("a", "b")
    assert "a" in Vocabulary("ab")
    assert "c" not in Vocabulary("ab")
    assert "6 symbols" in repr(Vocabulary("ab"))


def test_unknown_symbols():
    vocabulary = Vocabulary("abc")
    assert vocabulary.encode("aéb") == [4, UNK, 5]
    with pytest.raises(ValueError, match=r"\['é'\].*knows a b c.*strict=False"):
        vocabulary.encode("aéb", strict=True)


@pytest.mark.parametrize("number", [-1, 7])
def test_unknown_numbers(number):
    with pytest.raises(ValueError, match=rf"\[{number}\].*0 to 6.*another vocabulary"):
        Vocabulary("abc").decode([4, number])


@pytest.mark.parametrize(
    "alphabet, culprit", [("aba", "a"), (["a", ""], ""), (["<eos>", "a"], "<eos>")]
)
def test_symbols_must_be_distinct_and_ordinary(alphabet, culprit):
    with pytest.raises(ValueError, match=rf"\['{culprit}'\].*distinct"):
        Vocabulary(alphabet)


@pytest.mark.parametrize(
    "content, complaint",
    [
        (b"a b c", "not JSON"),
        (b"", "not JSON"),
        (b"\xff\xfe\x00", "decode"),
        (b'{"a": 4}', "dict"),
        (b'["a", 5]', "list of symbols"),
        (b'["a", "a"]', "distinct"),
    ],
)
def test_a_file_that_is_no_vocabulary(tmp_path, content, complaint):
    path = tmp_path / "vocabulary.json"
    path.write_bytes(content)
    with pytest.raises(ValueError, match=rf"vocabulary\.json: .*{complaint}"):
        Vocabulary.load(path)


def test_a_saved_file_can_be_read_by_others(tmp_path):
    Vocabulary(["N", "AY"]).save(tmp_path / "vocabulary.json")
    text = (tmp_path / "vocabulary.json").read_text(encoding="utf-8")
    assert json.loads(text) == ["N", "AY"]
