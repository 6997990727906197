from seq2seq_lib.data import frequent_words


def test_the_words_of_an_encyclopedia():
    words = frequent_words()
    assert words[:3] == ["the", "and", "was"]
    assert len(words) == len(set(words)) > 100_000
    assert all(3 <= len(w) <= 16 and w.isascii() and w.isalpha() for w in words)
    assert all(set(word) & set("aeiouy") for word in words)
