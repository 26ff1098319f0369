"""Files behind a pattern, a folder or a URL."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Iterator
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

import fsspec
import pytest
from support.messages import expected_message

from hallujudge.sdk.archives import read_items
from hallujudge.sdk.archives.found_files import found_files
from hallujudge.sdk.errors import ArchiveError, MissingExtraError


@pytest.fixture
def linked_folder(tmp_path: Path) -> Path:
    """A linked_folder with a link to itself, and links that lead nowhere and around in a circle."""
    path = tmp_path / "logs"
    path.mkdir()
    (path / "answers.jsonl").write_text("{}")
    (path / "again").symlink_to(path)
    (path / "nowhere.jsonl").symlink_to("missing.jsonl")
    (path / "circle.jsonl").symlink_to("circle.jsonl")
    return path


@pytest.mark.parametrize("pattern", ["", "*.jsonl", "**/*.jsonl", "again/again/*.jsonl"])
def test_a_file_is_found_once_whatever_links_lead_to_it(linked_folder: Path, pattern: str) -> None:
    (found,) = found_files(linked_folder / pattern)
    assert found.path.resolve() == linked_folder / "answers.jsonl"


ROWS = b"".join(
    json.dumps({"question_id": n, "response": "Yes", "label": "yes"}).encode() + b"\n"
    for n in range(50)
)


def test_a_url_is_read(request: pytest.FixtureRequest) -> None:
    files = fsspec.filesystem("memory")
    files.pipe("/run/answers.jsonl", ROWS)
    request.addfinalizer(lambda: files.rm("/run", recursive=True))
    assert len(read_items("pope", "memory://run/answers.jsonl", None)) == 50
    files.pipe("/run/answers.jsonl", ROWS + b"{")
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.archives.mementos:memory-run-answersjsonl-line-the-file-ends"),
    ):
        read_items("pope", "memory://run/answers.jsonl", None)


@pytest.fixture
def folder() -> Iterator[str]:
    """Folder of two runs, one file each, and a picture."""
    files = fsspec.filesystem("memory")
    files.pipe("/runs/a/answers.jsonl", ROWS)
    files.pipe("/runs/b/more.jsonl", ROWS[: ROWS.index(b"\n") + 1])
    files.pipe("/runs/a/picture.png", b"PNG")
    yield "memory://runs"
    files.rm("/runs", recursive=True)


@pytest.mark.parametrize("end", ["", "/"])
def test_a_folder_behind_a_url_is_read(folder: str, end: str) -> None:
    assert len(read_items("pope", f"{folder}/a{end}", None)) == 50
    names = [file.name for file in found_files(f"{folder}{end}")]
    assert names == ["memory:///runs/a/answers.jsonl", "memory:///runs/b/more.jsonl"]


def test_a_pattern_behind_a_url_is_read(folder: str) -> None:
    assert len(read_items("pope", f"{folder}/*/more.jsonl", None)) == 1
    assert [file.path.name for file in found_files(f"{folder}/*/*.jsonl")] == [
        "answers.jsonl",
        "more.jsonl",
    ]
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.archives.found_files:no-file-that-could-be-an-archive"),
    ):
        found_files(f"{folder}/*/*.csv")


def test_a_folder_of_a_web_server_is_read(tmp_path: Path, request: pytest.FixtureRequest) -> None:
    pytest.importorskip("aiohttp")
    (tmp_path / "logs").mkdir()
    (tmp_path / "logs" / "answers.jsonl").write_bytes(ROWS)
    (tmp_path / "other.jsonl").write_bytes(ROWS)
    links = (
        '<a href="answers.jsonl">a</a> <a href="/other.jsonl">b</a> <a href="../other.jsonl">c</a>'
    )
    (tmp_path / "logs" / "index.html").write_text(links)
    handler = partial(Quiet, directory=str(tmp_path))
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    request.addfinalizer(thread.join)
    request.addfinalizer(server.server_close)
    request.addfinalizer(server.shutdown)
    address = f"http://127.0.0.1:{server.server_address[1]}/logs/"
    assert len(read_items("pope", address, None)) == 50
    assert [file.name for file in found_files(f"{address}*.jsonl")] == [f"{address}answers.jsonl"]


class Quiet(SimpleHTTPRequestHandler):
    def log_message(self, format: str, *args: object) -> None:
        """Write no access log."""


def test_files_of_this_machine_have_urls_too(tmp_path: Path) -> None:
    folder = tmp_path / "a b"
    folder.mkdir()
    (folder / "answers.jsonl").write_bytes(ROWS)
    url = folder.as_uri()
    assert "a%20b" in url
    for given in (f"{url}/answers.jsonl", url, f"{url}/*.jsonl"):
        assert len(read_items("pope", given, None)) == 50


@pytest.mark.parametrize(
    "url", ["ftp://host/a.jsonl", "local:///etc/passwd", "zip://a::https://h/b.zip", "shell://ls"]
)
def test_other_protocols_are_refused(url: str) -> None:
    with pytest.raises(
        ArchiveError, match=expected_message("sdk.archives.found_files:are-not-read-use-one-of")
    ):
        read_items("pope", url, None)


def test_half_of_an_address_is_refused_without_its_password() -> None:
    with pytest.raises(
        ArchiveError, match=expected_message("sdk.archives.found_files:log-json-is-not-url")
    ) as caught:
        read_items("pope", "https://ana:secret@[::1/log.json?key=secret", None)
    assert "secret" not in str(caught.value)


def test_without_fsspec(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(
        MissingExtraError,
        match=expected_message("judge_service.errors:reading-urls-needs-the-extra-remote"),
    ):
        read_items("pope", "https://host/a.jsonl", None)
