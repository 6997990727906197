from seq2seq_lib.data import surnames


def test_the_census():
    names = surnames()
    assert names[:3] == ["smith", "johnson", "williams"]
    assert len(names) == len(set(names)) > 80_000
    assert all(3 <= len(n) <= 16 and n.isascii() and n.isalpha() for n in names)
    assert all(name == name.lower() for name in names)
