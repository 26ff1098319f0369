"""The viewer's pages, over real sockets."""

from __future__ import annotations

import http.client
import json
import shutil
import socket
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from pathlib import Path
from urllib.parse import quote

import pytest
from support.messages import expected_message
from support.pages import Page

from hallujudge.sdk import Client
from hallujudge.sdk.cli.viewer import Viewer
from hallujudge.sdk.errors import InvalidInputError, OutputError
from hallujudge.sdk.runs.folder_guards import FolderLock
from hallujudge.sdk.runs.manifest import ITEMS, JOURNAL, MANIFEST, REPORT, partial

OBJECTS = {"1": ["dog"], "2": ["cat"]}
HOSTILE = "<b>run"


@contextmanager
def serving(folder: Path) -> Iterator[str]:
    viewer = Viewer(folder)
    thread = threading.Thread(target=viewer.serve)
    thread.start()
    try:
        yield viewer.address
    finally:
        viewer.close()
        thread.join()


def get(address: str, path: str, **headers: str) -> tuple[int, str]:
    host = address.removeprefix("http://").rstrip("/")
    connection = http.client.HTTPConnection(host, timeout=60)
    try:
        connection.request("GET", path, headers=headers)
        answer = connection.getresponse()
        return answer.status, answer.read().decode()
    finally:
        connection.close()


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    captions = {"llava": "A dog.", "poor": "A dog and a cat.", HOSTILE: "A dog."}
    with Client.embedded() as client:
        for name, caption in captions.items():
            responses = {"1": caption, "2": "A cat."}
            variant = "corrected" if name == HOSTILE else ""
            client.score(
                "chair",
                responses=responses,
                references=OBJECTS,
                folder=folder / name,
                variant=variant,
            )
    return folder


@pytest.fixture(scope="module")
def address(runs: Path) -> Iterator[str]:
    with serving(runs) as served:
        yield served


def test_the_overview_has_every_run_and_what_differs(address: str, runs: Path) -> None:
    status, page = get(address, "/")
    assert status == 200
    text = Page(page, plain=True).text
    assert "3 complete runs" in text
    assert "llava" in text
    assert HOSTILE in text
    assert "<b>run<" not in page
    assert "var:corrected" in text
    assert "Note: " in text
    assert "Intervals are unreliable" in text
    assert "connect-src" not in Page(page, plain=True).policy
    day = datetime.fromtimestamp((runs / "llava" / REPORT).stat().st_mtime, tz=UTC)
    assert f"llava{day:%Y-%m-%d}" in text


def test_runs_are_named_by_their_models(runs: Path, tmp_path: Path) -> None:
    for place in ("llava/chair", "lab/qwen/chair", "qwen/chair", "plain"):
        shutil.copytree(runs / "llava", tmp_path / place)
    with serving(tmp_path) as address:
        page = get(address, "/")[1]
    for model in ("llava", "lab/qwen", "qwen", "plain"):
        assert f">{model}</a>" in page
    # Where the folder says more, it is told too.
    assert "<small>lab/qwen/chair " in page
    assert 'data-label="chair_i"' in page


def test_models_of_two_runs_with_one_name_are_their_folders(runs: Path, tmp_path: Path) -> None:
    for place in ("llava/chair", "llava/chair 2"):
        shutil.copytree(runs / "llava", tmp_path / place)
    with serving(tmp_path) as address:
        page = get(address, "/")[1]
    assert ">llava/chair</a>" in page
    assert ">llava/chair 2</a>" in page


@pytest.mark.parametrize(
    ("ids", "animal", "told"), [("12", "cat", True), ("1", "dog", False), ("12", "dog", False)]
)
def test_the_overview_says_where_runs_over_the_same_items_have_other_references(
    tmp_path: Path, ids: str, animal: str, told: bool
) -> None:
    with Client.embedded() as client:
        for name, of, objects in (("a", "12", ["dog"]), ("b", ids, [animal])):
            client.score(
                "chair",
                responses=dict.fromkeys(of, "A dog."),
                references=dict.fromkeys(of, objects),
                folder=tmp_path / name,
            )
    with serving(tmp_path) as served:
        assert ("refs:" in Page(get(served, "/")[1], plain=True).text) is told


def test_a_run_and_a_comparison_are_shown(address: str) -> None:
    status, page = get(address, "/run?name=poor")
    assert (status, Page(page).head["count"]) == (200, 2)
    assert Page(page).head["runs"][0]["title"] == "poor", "the name that the overview has"
    assert '<a href="/">All runs</a>' in page
    status, page = get(address, "/compare?a=llava&b=poor")
    assert status == 200
    assert '<a href="/">All runs</a>' in page
    assert [run["title"] for run in Page(page).head["runs"]] == ["llava", "poor"]


@pytest.mark.parametrize(
    ("path", "status", "told"),
    [
        ("/run?name=../../etc", 400, "there is no run"),
        ("/run", 400, "there is no run"),
        (f"/compare?a=llava&b={quote(HOSTILE)}", 400, "variant"),
        ("/etc/passwd", 404, "There is no such page."),
    ],
)
def test_other_paths_are_refused(address: str, path: str, status: int, told: str) -> None:
    got, page = get(address, path)
    assert got == status
    assert told in Page(page, plain=True).text


def test_other_host_names_are_refused(address: str) -> None:
    assert get(address, "/", Host="evil.example:80")[0] == 403
    assert get(address, "/", Host="localhost.")[0] == 200
    assert get(address, "http://evil.example/")[0] == 403, "a target that is a whole URL"
    assert get(address, address, Host="evil.example")[0] == 200, "the URL's host counts"


@pytest.mark.parametrize("hosts", [(), ("localhost", "evil.example"), ("localhost", "localhost")])
def test_a_request_without_one_host_is_refused(address: str, hosts: tuple[str, ...]) -> None:
    connection = http.client.HTTPConnection(address.removeprefix("http://").rstrip("/"), timeout=60)
    for target in ("/", address):
        connection.putrequest("GET", target, skip_host=True)
        for host in hosts:
            connection.putheader("Host", host)
        connection.endheaders()
        with connection.getresponse() as answer:
            assert answer.status == 403
            answer.read()
    connection.close()


@pytest.mark.parametrize("path", ["/", "/run?name=poor", "/compare?a=llava&b=poor", "/none"])
def test_the_content_security_policy_is_a_header_too(address: str, path: str) -> None:
    connection = http.client.HTTPConnection(address.removeprefix("http://").rstrip("/"), timeout=60)
    connection.request("GET", path)
    with connection.getresponse() as answer:
        header, page = answer.headers["Content-Security-Policy"], answer.read().decode()
    connection.close()
    assert header == f"{Page(page, plain=True).policy}; frame-ancestors 'none'"
    assert header.startswith("default-src 'none'; ")


@pytest.mark.parametrize("target", ["http://[evil/", "http://[::1/run?name=x", "//[", "*"])
def test_a_broken_target_is_not_found(
    address: str, target: str, capfd: pytest.CaptureFixture[str]
) -> None:
    assert get(address, target, Host="localhost")[0] == 404
    assert capfd.readouterr().err == ""


def test_runs_under_way_and_unreadable_ones_are_listed(runs: Path, tmp_path: Path) -> None:
    for name in ("live", "broken"):
        (tmp_path / name).mkdir()
    manifest = (runs / "llava" / MANIFEST).read_text()
    partial(tmp_path / "live", MANIFEST).write_text(manifest)
    partial(tmp_path / "live", JOURNAL).write_bytes(b"")
    partial(tmp_path / "broken", MANIFEST).write_text(json.dumps({"format": 99}))
    with serving(tmp_path) as served:
        _, page = get(served, "/")
    text = Page(page, plain=True).text
    assert "live 0 of 2 items – stopped" in text
    assert "Update hallujudge" in text
    assert "connect-src 'self'" in Page(page, plain=True).policy, "the page looks for newer content"


@pytest.fixture
def stopped(runs: Path, tmp_path: Path) -> Path:
    """Folder of a run that holds both of its items, but no report."""
    folder = tmp_path / "stopped"
    folder.mkdir()
    for name in (MANIFEST, JOURNAL, ITEMS):
        shutil.copy(runs / "poor" / name, partial(folder, name))
    return folder


def test_a_run_under_way_has_a_page_of_what_it_holds(stopped: Path) -> None:
    with serving(stopped.parent) as served:
        status, source = get(served, "/run?name=stopped")
        page = Page(source)
        assert (status, page.head["count"]) == (200, 2)
        assert "2 of 2 items scored" in page.text
        assert "0.3333" in page.text, "the score of these items"
        assert "connect-src 'self'" in page.policy
        assert "is not complete" in get(served, "/compare?a=stopped&b=stopped")[1]


def test_a_run_that_goes_on_is_told_from_one_that_stopped(stopped: Path) -> None:
    def told(served: str) -> str:
        return " ".join(Page(get(served, "/run?name=stopped")[1]).text.split())

    with serving(stopped.parent) as served:
        assert "Stopped: 2 of 2 items scored" in told(served)
        assert expected_message("sdk.cli.viewer:repeat-its-command-with-resume") in told(served)
        lock = FolderLock(stopped)
        assert "Under way: 2 of 2 items scored" in told(served)
        assert "--resume" not in told(served)
        assert "stopped 2 of 2 items – under way" in " ".join(
            Page(get(served, "/")[1], plain=True).text.split()
        )
        lock.release()


def test_a_browser_that_goes_away_leaves_no_traceback(
    address: str, capfd: pytest.CaptureFixture[str]
) -> None:
    host, _, port = address.removeprefix("http://").rstrip("/").partition(":")
    for _ in range(3):
        with socket.create_connection((host, int(port)), timeout=60) as gone:
            # Closing without linger resets the connection, as a closed tab does.
            gone.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            gone.sendall(b"GET / HTTP/1.1\r\nHost: 127.0.0.1:1\r\n\r\n")
    assert get(address, "/")[0] == 200
    assert "Traceback" not in capfd.readouterr().err


def test_a_folder_that_is_looked_at_can_be_locked(tmp_path: Path) -> None:
    held = FolderLock(tmp_path)
    FolderLock(tmp_path, wait=lambda _seconds: held.release()).release()
    held = FolderLock(tmp_path)
    with pytest.raises(OutputError, match="another run writes"):
        FolderLock(tmp_path, wait=lambda _seconds: None)
    held.release()


def test_a_run_without_items_yet_has_a_page(stopped: Path) -> None:
    partial(stopped, JOURNAL).write_bytes(b"")
    with serving(stopped.parent) as served:
        status, source = get(served, "/run?name=stopped")
    assert status == 200
    assert "0 of 2 items scored" in Page(source).text
    assert expected_message("sdk.cli.viewer:items-are-shown-once-scored") in Page(source).text
    assert expected_message("sdk.cli.viewer:the-scores-are-of-these-items") not in Page(source).text


def test_a_run_with_a_torn_journal_has_a_page_of_what_is_whole(stopped: Path) -> None:
    journal = partial(stopped, JOURNAL)
    journal.write_bytes(journal.read_bytes()[:-3])
    with serving(stopped.parent) as served:
        assert get(served, "/run?name=stopped")[0] == 200


def test_a_missing_folder_and_a_taken_port_are_refused(address: str, runs: Path) -> None:
    with pytest.raises(InvalidInputError, match="not a folder"):
        Viewer(runs / "nowhere")
    port = int(address.rstrip("/").rpartition(":")[2])
    with pytest.raises(InvalidInputError, match=f"port {port}"):
        Viewer(runs, port)
