"""Downloads from a real server on this machine, which misbehaves on request."""

import hashlib
import importlib
import pkgutil
import re
import socket
import subprocess
import sys
import textwrap
import threading
import time
from collections import deque
from contextlib import contextmanager
from dataclasses import dataclass
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import corpora
import needs
import pytest

from seq2seq_lib import data
from seq2seq_lib.data import download
from seq2seq_lib.data.download import RemoteFile, fetch, find_local, installed_file

REMOTE = list(corpora.files())
CONTENT = bytes(range(256)) * 1000
OTHER = CONTENT[::-1]
HALF = len(CONTENT) // 2


@dataclass(frozen=True, kw_only=True)
class Answer:
    """How the server treats one request."""

    content: bytes = CONTENT
    status: int = 200
    ranges: bool = True
    skipped: int = 0  # answers a range that starts so many bytes late
    cut: int | None = None  # closes the connection after so many bytes
    length: bool = True
    held: threading.Event | None = None  # waits half-way, but not for ever


class Handler(BaseHTTPRequestHandler):
    def do_GET(self):
        self.server.asked.append(self.headers["Range"])
        answer = self.server.answers.popleft() if self.server.answers else Answer()
        if answer.status != 200:
            self.send_error(answer.status)
            return
        content, total = answer.content, len(answer.content)
        if answer.ranges and self.headers["Range"]:
            start = int(re.fullmatch(r"bytes=(\d+)-", self.headers["Range"])[1])
            start += answer.skipped
            if start >= total:
                self.send_error(416)
                return
            content = content[start:]
            self.send_response(206)
            self.send_header("Content-Range", f"bytes {start}-{total - 1}/{total}")
        else:
            self.send_response(200)
        if answer.length:
            self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        if answer.held:
            self.wfile.write(content[:HALF])
            answer.held.wait(timeout=20)
            content = content[HALF:]
        self.wfile.write(content[: answer.cut])

    def log_message(self, *_):
        pass


class Server(ThreadingHTTPServer):
    """Remembers what was asked; answers in the given way, then properly."""

    def __init__(self):
        super().__init__(("127.0.0.1", 0), Handler)
        self.asked = []
        self.answers = deque()
        self.url = f"http://127.0.0.1:{self.server_port}/letters.txt"

    def handle_error(self, request, client_address):
        """Clients that are killed or lose patience are part of the tests."""


@pytest.fixture
def server():
    with Server() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield server
        server.shutdown()
        thread.join()


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    """An empty cache, no data directory, and no patience."""
    monkeypatch.delenv("SEQ2SEQ_DATA", raising=False)
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    monkeypatch.setattr(download, "cache_directory", lambda: tmp_path / "cache")
    monkeypatch.setattr(download, "PAUSES", (0.0, 0.0, 0.0))
    return tmp_path / "cache" / "data" / "corpus"


@pytest.fixture
def file(server):
    return RemoteFile(
        name="corpus/letters.txt",
        sha256=hashlib.sha256(CONTENT).hexdigest(),
        bytes=len(CONTENT),
        url=server.url,
    )


@pytest.fixture
def given(tmp_path, monkeypatch):
    """A data directory, as ``SEQ2SEQ_DATA`` names it."""
    monkeypatch.setenv("SEQ2SEQ_DATA", str(tmp_path / "given"))
    return tmp_path / "given" / "corpus"


def put(directory, content, name="letters.txt"):
    directory.mkdir(parents=True, exist_ok=True)
    (directory / name).write_bytes(content)
    return directory / name


def visible(directory):
    return sorted(p.name for p in directory.iterdir() if p.name != ".lock")


class TestFinding:
    def test_the_directory_comes_first_then_the_cache(self, file, given, cache, server):
        in_cache = put(cache, CONTENT)
        assert fetch(file) == in_cache
        in_directory = put(given, CONTENT)
        assert fetch(file) == in_directory
        assert server.asked == []

    def test_a_file_that_is_nowhere_is_not_found_locally(self, file, given, server):
        assert find_local(file) is None
        assert server.asked == []

    @pytest.mark.parametrize("content", [b"", CONTENT[:-1], CONTENT + b"x", OTHER])
    def test_a_wrong_file_in_the_directory_is_left_alone(
        self, content, file, given, server
    ):
        path = put(given, content)
        with pytest.raises(ValueError, match="SEQ2SEQ_DATA") as caught:
            fetch(file)
        message = str(caught.value)
        assert str(path) in message
        assert f"has {len(content):,} bytes" in message
        assert hashlib.sha256(content).hexdigest() in message
        assert f"expected {len(CONTENT):,} bytes and sha256 {file.sha256}" in message
        assert file.url in message
        assert path.read_bytes() == content
        assert server.asked == []

    @pytest.mark.parametrize("content", [b"", CONTENT[:-1], OTHER])
    def test_a_damaged_file_in_the_cache_is_downloaded_again(
        self, content, file, cache
    ):
        put(cache, content)
        with pytest.warns(UserWarning, match=r"letters\.txt has .*damaged"):
            path = fetch(file)
        assert path.read_bytes() == CONTENT
        assert visible(cache) == ["letters.txt"]


class TestDownloading:
    def test_once_only(self, file, cache, server):
        assert fetch(file) == fetch(file) == cache / "letters.txt"
        assert fetch(file).read_bytes() == CONTENT
        assert visible(cache) == ["letters.txt"]
        assert server.asked == [None]

    @pytest.mark.parametrize("have", [1, HALF, len(CONTENT) - 1])
    def test_a_part_is_continued(self, have, file, cache, server):
        put(cache, CONTENT[:have], "letters.txt.part")
        assert fetch(file).read_bytes() == CONTENT
        assert visible(cache) == ["letters.txt"]
        assert server.asked == [f"bytes={have}-"]

    def test_a_part_that_is_whole_needs_no_server(self, file, cache, server):
        put(cache, CONTENT, "letters.txt.part")
        assert fetch(file).read_bytes() == CONTENT
        assert server.asked == []

    @pytest.mark.parametrize("part", [OTHER, CONTENT + b"x"])
    def test_a_wrong_part_is_dropped(self, part, file, cache, server):
        put(cache, part, "letters.txt.part")
        assert fetch(file).read_bytes() == CONTENT
        assert server.asked == [None]

    def test_a_part_of_another_file_is_dropped(self, file, cache, server):
        put(cache, OTHER[:HALF], "letters.txt.part")
        assert fetch(file).read_bytes() == CONTENT
        assert server.asked == [f"bytes={HALF}-", None]

    def test_a_server_may_ignore_the_range(self, file, cache, server):
        put(cache, CONTENT[:HALF], "letters.txt.part")
        server.answers.append(Answer(ranges=False))
        assert fetch(file).read_bytes() == CONTENT
        assert server.asked == [f"bytes={HALF}-"]

    def test_a_server_may_answer_another_range(self, file, cache, server):
        put(cache, CONTENT[:HALF], "letters.txt.part")
        server.answers.append(Answer(skipped=7))
        assert fetch(file).read_bytes() == CONTENT
        assert visible(cache) == ["letters.txt"]

    @pytest.mark.parametrize("length", [True, False])
    def test_a_cut_connection_goes_on_where_it_stopped(self, length, file, server):
        server.answers.append(Answer(cut=1000, length=length))
        server.answers.append(Answer(cut=500, length=length))
        assert fetch(file).read_bytes() == CONTENT
        assert server.asked == [None, "bytes=1000-", "bytes=1500-"]

    def test_a_silent_server_is_asked_again(self, file, server, monkeypatch):
        monkeypatch.setattr(download, "TIMEOUT", 0.2)
        held = threading.Event()
        server.answers.append(Answer(held=held))
        assert fetch(file).read_bytes() == CONTENT
        assert len(server.asked) == 2
        held.set()

    def test_a_busy_server_is_asked_again(self, file, server):
        server.answers += [Answer(status=503), Answer(status=429)]
        assert fetch(file).read_bytes() == CONTENT
        assert server.asked == [None, None, None]

    def test_what_arrived_is_kept_for_the_next_time(self, file, cache, server):
        server.answers += [Answer(cut=100)] * 4
        with pytest.raises(OSError, match=r"ended at 400 of 256,000 bytes"):
            fetch(file)
        assert visible(cache) == ["letters.txt.part"]
        assert fetch(file).read_bytes() == CONTENT
        assert server.asked[-1] == "bytes=400-"

    @pytest.mark.parametrize(
        "wrong", [OTHER, CONTENT[:-1], CONTENT + b"x", b"<html>Please log in</html>"]
    )
    def test_wrong_content_is_never_stored(self, wrong, file, cache, server):
        server.answers.append(Answer(content=wrong))
        with pytest.raises(ValueError, match="proxy or a log-in page") as caught:
            fetch(file)
        assert hashlib.sha256(wrong).hexdigest() in str(caught.value)
        assert f"expected {len(CONTENT):,} bytes" in str(caught.value)
        assert visible(cache) == []
        assert server.asked == [None]

    def test_an_endless_answer_is_cut_off(self, file, cache, server):
        server.answers.append(Answer(content=CONTENT * 50, length=False))
        with pytest.raises(ValueError, match="thrown away") as caught:
            fetch(file)
        received = int(
            re.search(r"has ([\d,]+) bytes", str(caught.value))[1].replace(",", "")
        )
        assert len(CONTENT) < received < 2 * len(CONTENT)
        assert visible(cache) == []

    def test_a_part_longer_than_what_the_server_has(self, file, cache, server):
        put(cache, CONTENT[:HALF], "letters.txt.part")
        server.answers += [Answer(content=OTHER[:1000])] * 2
        with pytest.raises(ValueError, match="has 1,000 bytes"):
            fetch(file)
        assert server.asked == [f"bytes={HALF}-", None]

    def test_a_damaged_file_stays_until_there_is_a_better_one(
        self, file, cache, server
    ):
        put(cache, OTHER)
        server.answers.append(Answer(status=404))
        with (
            pytest.warns(UserWarning, match="damaged"),
            pytest.raises(ConnectionError, match="404"),
        ):
            fetch(file)
        assert (cache / "letters.txt").read_bytes() == OTHER

    def test_a_missing_page_is_not_asked_for_again(self, file, server):
        server.answers.append(Answer(status=404))
        with pytest.raises(ConnectionError, match="answered 404"):
            fetch(file)
        assert server.asked == [None]

    def test_offline(self, given, cache):
        with socket.socket() as closed:
            closed.bind(("127.0.0.1", 0))  # taken, but nobody listens
            url = f"http://127.0.0.1:{closed.getsockname()[1]}/letters.txt"
            with pytest.raises(ConnectionError) as caught:
                fetch(RemoteFile("corpus/letters.txt", "0" * 64, 9, url))
        message = str(caught.value)
        for place in (given / "letters.txt", cache / "letters.txt", url):
            assert str(place) in message
        assert "no connection" in message
        assert "SEQ2SEQ_DATA=directory means directory/corpus/letters.txt" in message

    @needs.system(sys.platform != "win32", "no file size limits there")
    def test_a_full_disk(self, file, cache, server):
        with (
            file_size_limit(1 << 16),
            pytest.raises(OSError, match="Free some") as caught,
        ):
            fetch(file)
        assert caught.value.filename == str(cache / "letters.txt.part")
        assert server.asked == [None]
        assert fetch(file).read_bytes() == CONTENT
        assert server.asked[1:] == [f"bytes={1 << 16}-"]


@contextmanager
def file_size_limit(size):
    import resource

    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


@contextmanager
def downloading(file, tmp_path):
    """Another process that fetches the file once it gets a line."""
    program = f"""
        from pathlib import Path
        from seq2seq_lib.data import download
        download.cache_directory = lambda: Path({str(tmp_path / "cache")!r})
        print("ready", flush=True)
        input()
        print(download.fetch(download.{file!r}))
    """
    command = [sys.executable, "-c", textwrap.dedent(program)]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, stdin=pipe, stdout=pipe, text=True) as process:
        yield process
        process.kill()


class TestSeveralProcesses:
    def test_one_downloads_and_the_other_waits(self, file, cache, server, tmp_path):
        second_asked = threading.Event()
        server.answers.append(Answer(held=second_asked))
        with downloading(file, tmp_path) as one, downloading(file, tmp_path) as other:
            for process in (one, other):
                assert process.stdout.readline() == "ready\n"
            for process in (one, other):
                process.stdin.write("go\n")
                process.stdin.flush()
            wait_until(lambda: server.asked)
            time.sleep(0.5)  # time enough for the other one to ask as well
            second_asked.set()
            outputs = {process.stdout.readline().strip() for process in (one, other)}
        assert outputs == {str(cache / "letters.txt")}
        assert (cache / "letters.txt").read_bytes() == CONTENT
        assert visible(cache) == ["letters.txt"]
        assert server.asked == [None]

    def test_a_killed_download_is_continued(self, file, cache, server, tmp_path):
        held = threading.Event()
        server.answers.append(Answer(held=held))
        part = cache / "letters.txt.part"
        with downloading(file, tmp_path) as process:
            assert process.stdout.readline() == "ready\n"
            process.stdin.write("go\n")
            process.stdin.flush()
            wait_until(lambda: part.exists() and part.stat().st_size)
            process.kill()
        held.set()
        have = part.stat().st_size
        assert 0 < have <= HALF
        assert fetch(file).read_bytes() == CONTENT
        assert server.asked == [None, f"bytes={have}-"]


def wait_until(condition):
    for _ in range(6000):
        if condition():
            return
        time.sleep(0.01)
    pytest.fail("waited a minute in vain")


class TestInstalledFiles:
    @pytest.fixture(autouse=True)
    def package(self, tmp_path, monkeypatch):
        """A package that must not be imported."""
        put(tmp_path / "spelling", b"raise RuntimeError('was imported')", "__init__.py")
        put(tmp_path / "spelling" / "data", CONTENT)
        monkeypatch.syspath_prepend(tmp_path)
        return tmp_path / "spelling"

    def test_it_is_found_without_an_import(self, package):
        checksum = hashlib.sha256(CONTENT).hexdigest()
        path = installed_file("spelling", "data/letters.txt", sha256=checksum)
        assert path == package / "data" / "letters.txt"
        assert "spelling" not in sys.modules

    @pytest.mark.parametrize(
        "package_name, name, error, complaint",
        [
            ("spelling_bee", "data/letters.txt", OSError, "not installed"),
            ("spelling", "data/numbers.txt", OSError, "has no data/numbers.txt"),
            ("spelling", "data/letters.txt", ValueError, "another version"),
        ],
    )
    def test_what_can_be_wrong(self, package_name, name, error, complaint):
        with pytest.raises(error, match=complaint) as caught:
            installed_file(package_name, name, sha256="0" * 64)
        assert 'pip install "seq2seq_lib[course]"' in str(caught.value)


class TestMakeData:
    @pytest.fixture(autouse=True)
    def one_file(self, file, monkeypatch):
        monkeypatch.setattr(corpora, "files", lambda: [file])

    def test_it_says_where_the_files_are(self, cache, capsys):
        corpora.main()
        assert capsys.readouterr().out == f"{cache / 'letters.txt'}\n"

    def test_a_copy_serves_without_a_network(self, given, cache, server, capsys):
        corpora.main(str(given.parent))
        assert capsys.readouterr().out == f"{given / 'letters.txt'}\n"
        (cache / "letters.txt").unlink()
        corpora.main(str(given.parent))
        assert (given / "letters.txt").read_bytes() == CONTENT
        assert server.asked == [None]

    def test_it_fails_when_a_file_cannot_be_had(self, server):
        server.answers.append(Answer(status=404))
        with pytest.raises(SystemExit, match="answered 404"):
            corpora.main()


def remote_files_in(value):
    """Every remote file in a value, however deep."""
    match value:
        case RemoteFile():
            yield value
        case dict():
            yield from remote_files_in(list(value.values()))
        case list() | tuple():
            for part in value:
                yield from remote_files_in(part)


def test_make_data_knows_every_file():
    modules = [m.name for m in pkgutil.iter_modules(data.__path__, f"{data.__name__}.")]
    namespaces = [vars(importlib.import_module(module)) for module in modules]
    there = {file for names in namespaces for file in remote_files_in(dict(names))}
    assert set(REMOTE) == there
    assert len(REMOTE) >= 8


@pytest.mark.parametrize("remote", REMOTE, ids=lambda remote: remote.name)
def test_every_origin_is_pinned(remote):
    """A commit in the address: what was verified cannot change under it."""
    assert re.match(
        r"https://raw\.githubusercontent\.com/\w+/\w+/[0-9a-f]{40}/", remote.url
    )
    assert remote.url.rpartition("/")[2] == remote.name.rpartition("/")[2]
    assert re.fullmatch("[0-9a-f]{64}", remote.sha256)
    assert remote.bytes > 20_000
