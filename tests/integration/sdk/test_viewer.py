"""The viewer's pages, over real sockets."""

from __future__ import annotations

import http.client
import json
import shutil
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import quote

import pytest
from support.pages import Page

from hallujudge.sdk import Client
from hallujudge.sdk.errors import InvalidInputError
from hallujudge.sdk.runs.names import ITEMS, JOURNAL, MANIFEST, partial
from hallujudge.sdk.viewer import Viewer

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


def test_the_overview_has_every_run_and_what_differs(address: str) -> None:
    status, page = get(address, "/")
    assert status == 200
    text = Page(page, plain=True).text
    assert "3 complete runs" in text
    assert "llava" in text
    assert HOSTILE in text
    assert "<b>run<" not in page
    assert "var:corrected" in text
    assert "connect-src" not in Page(page, plain=True).policy


def test_a_run_and_a_comparison_are_shown(address: str) -> None:
    status, page = get(address, "/run?name=poor")
    assert (status, Page(page).head["count"]) == (200, 2)
    status, page = get(address, "/compare?a=llava&b=poor")
    assert status == 200
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
    assert "live 0 of 2 items" in text
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


def test_a_run_without_items_yet_has_a_page(stopped: Path) -> None:
    partial(stopped, JOURNAL).write_bytes(b"")
    with serving(stopped.parent) as served:
        status, source = get(served, "/run?name=stopped")
    assert status == 200
    assert "0 of 2 items scored" in Page(source).text


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
