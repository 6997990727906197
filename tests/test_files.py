import subprocess
import sys
import textwrap

import needs
import pytest

from seq2seq_lib.files import cache_directory, new_directory, write_whole


def names(directory):
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize("content", [b"", b"\x00\xff", "naïve ŋ", "lines\r\nstay\n"])
def test_what_was_written_is_read(tmp_path, content):
    write_whole(tmp_path / "file", content)
    expected = content.encode() if isinstance(content, str) else content
    assert (tmp_path / "file").read_bytes() == expected


def test_parent_directories_are_made(tmp_path):
    write_whole(tmp_path / "some" / "where" / "file", "x")
    assert (tmp_path / "some" / "where" / "file").read_text() == "x"


def test_an_old_file_is_replaced_and_nothing_else_is_left(tmp_path):
    (tmp_path / "file").write_text("a longer content from before")
    write_whole(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "new"
    assert names(tmp_path) == ["file"]


def test_the_old_content_is_replaced_not_overwritten(tmp_path):
    (tmp_path / "file").write_text("old")
    (tmp_path / "link").hardlink_to(tmp_path / "file")
    write_whole(tmp_path / "file", "new")
    assert (tmp_path / "file").read_text() == "new"
    assert (tmp_path / "link").read_text() == "old"


@needs.system(sys.platform != "win32", "no file size limits there")
@pytest.mark.parametrize("old", [None, "precious"])
def test_a_full_disk_leaves_the_old_file(tmp_path, old):
    """The limit on file sizes makes a real write fail half-way."""
    target = tmp_path / "file"
    if old:
        target.write_text(old)
    program = f"""
        import resource, signal
        from pathlib import Path
        from seq2seq_lib.files import write_whole
        signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
        resource.setrlimit(resource.RLIMIT_FSIZE, (1 << 16, 1 << 16))
        try:
            write_whole(Path({str(target)!r}), bytes(1 << 20))
        except OSError as error:
            print(error)
    """
    run = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(program)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert "1,048,576 bytes" in run.stdout
    assert "File too large" in run.stdout
    assert "untouched" in run.stdout
    assert str(target) in run.stdout
    assert names(tmp_path) == (["file"] if old else [])
    assert not old or target.read_text() == old


def test_a_directory_in_the_way_is_reported(tmp_path):
    (tmp_path / "file").mkdir()
    with pytest.raises(OSError, match="untouched"):
        write_whole(tmp_path / "file", "x")
    assert names(tmp_path) == ["file"]


def test_the_cache_has_a_place_of_its_own():
    assert cache_directory().is_absolute()
    assert cache_directory().name == "seq2seq_lib"


@pytest.mark.parametrize("empty", [False, True])
def test_a_new_directory_appears_when_all_is_written(tmp_path, empty):
    path = tmp_path / "some" / "where"
    if empty:
        path.mkdir(parents=True)
    with new_directory(path) as temporary:
        (temporary / "file").write_text("done")
        assert not (path / "file").exists()
    assert (path / "file").read_text() == "done"
    assert names(path.parent) == ["where"]


def test_a_failure_leaves_no_directory_behind(tmp_path):
    def write():
        with new_directory(tmp_path / "new") as temporary:
            (temporary / "file").write_text("half")
            raise OSError("disk full")

    with pytest.raises(OSError, match="disk full"):
        write()
    assert names(tmp_path) == []


@pytest.mark.parametrize("kind", ["file", "directory"])
def test_what_exists_is_not_replaced_by_a_directory(tmp_path, kind):
    path = tmp_path / "old"
    kept = path if kind == "file" else path / "file"
    kept.parent.mkdir(exist_ok=True)
    kept.write_text("mine")
    with (
        pytest.raises(FileExistsError, match="exists already and is not touched"),
        new_directory(path),
    ):
        pytest.fail("nothing may be written")
    assert kept.read_text() == "mine"
    assert names(tmp_path) == ["old"]
