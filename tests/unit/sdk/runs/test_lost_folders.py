"""A folder that is deleted or moved under a run: the run stops, and nothing is lost."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from shutil import rmtree
from typing import Any

import pytest

from hallujudge.sdk import BatchResult, Client, RunReport
from hallujudge.sdk.errors import OutputError

# Three batches and some items.
COUNT = 3 * 512 + 164
FILES = ("items.jsonl", "report.json", "report.html", "manifest.json")
LOST = "was deleted, moved or replaced while the run"


class StoppedError(Exception):
    """Stands for anything that ends a run."""


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    with Client.embedded() as client:
        yield client


def captions(count: int) -> dict[str, Any]:
    texts = ("A dog on a sofa.", "A cat.", None, "Two people and a dog near a table.")
    ids = [str(number) for number in range(count)]
    return {
        "responses": {key: texts[n % len(texts)] for n, key in enumerate(ids)},
        "references": {key: ["dog"] for key in ids},
    }


def scored(client: Client, folder: Path, *, count: int = COUNT, **more: Any) -> RunReport:
    return client.score("chair", **{**captions(count), "folder": folder, "html": True, **more})


def stop(_batch: BatchResult) -> None:
    raise StoppedError


def contents(folder: Path) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in FILES}


@pytest.fixture(scope="module")
def whole(client: Client, tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    folder = tmp_path_factory.mktemp("whole")
    scored(client, folder)
    return contents(folder)


def move(folder: Path) -> None:
    folder.rename(folder.with_name("moved"))


def empty(folder: Path) -> None:
    for path in folder.iterdir():
        path.unlink()


def delete_lines(folder: Path) -> None:
    (folder / "items.partial.jsonl").unlink()


@pytest.mark.parametrize("lose", [rmtree, move, empty, delete_lines])
def test_a_folder_that_is_deleted_or_moved_stops_the_run_and_loses_nothing(
    client: Client, whole: dict[str, bytes], tmp_path: Path, lose: Callable[[Path], None]
) -> None:
    folder, seen = tmp_path / "o", 0

    def on_batch(batch: BatchResult) -> None:
        nonlocal seen
        seen += len(batch.items)
        if seen == len(batch.items):
            lose(folder)

    with pytest.raises(OutputError) as raised:
        scored(client, folder, on_batch=on_batch)
    assert raised.value.metadata == {"path": str(folder)}
    assert f"{folder} was deleted, moved or replaced while the run wrote to it" in str(raised.value)
    assert (str(tmp_path / "moved") in str(raised.value)) == (lose is move)
    assert f"its {seen} items" in str(raised.value)
    assert 0 < seen < COUNT
    rest: list[int] = []
    scored(client, folder, resume=True, on_batch=lambda batch: rest.append(len(batch.items)))
    assert sum(rest) == COUNT - seen
    assert contents(folder) == whole


def test_a_folder_that_has_another_run_now_is_left_alone(client: Client, tmp_path: Path) -> None:
    folder, other = tmp_path / "o", tmp_path / "other"
    scored(client, other, responses={"1": "A cat."}, references={"1": ["cat"]})

    def on_batch(_batch: BatchResult) -> None:
        move(folder)
        other.rename(folder)

    with pytest.raises(OutputError) as raised:
        scored(client, folder, on_batch=on_batch)
    assert str(tmp_path / "moved" / "items.partial.jsonl") in str(raised.value)
    assert str(folder / "verdicts.sqlite") in str(raised.value)
    assert (folder / "items.jsonl").read_bytes().count(b"\n") == 1


class Loss:
    """Moves a folder away just before the system is asked for something in it.

    Audit hooks can't be taken off, so one serves all tests here, and does nothing between them.
    """

    def __init__(self) -> None:
        self._folder = self._beside = ""
        self.left = 0
        """How often the folder is used before it goes; none is left when it has gone."""
        self.is_watching = False
        sys.addaudithook(self)

    def __call__(self, event: str, arguments: tuple[object, ...]) -> None:
        if not self.is_watching or event not in ("open", "os.rename", "os.remove", "os.truncate"):
            return
        named = [os.fspath(each) for each in arguments[:2] if isinstance(each, (str, os.PathLike))]
        if any(str(name).startswith(self._folder) for name in named):
            self.left -= 1
            if not self.left:
                self.is_watching = False
                Path(self._folder).rename(self._beside)

    @contextmanager
    def before(self, use: int, folder: Path) -> Iterator[None]:
        """Let a folder go just before it is used the ``use``-th time."""
        self._folder, self._beside = str(folder), str(folder.with_name("gone"))
        self.left, self.is_watching = use, True
        try:
            yield
        finally:
            self.is_watching = False


@pytest.fixture(scope="module")
def loss() -> Loss:
    return Loss()


@pytest.mark.parametrize("began", [False, True])
def test_a_folder_may_go_at_any_moment(
    client: Client, tmp_path: Path, loss: Loss, *, began: bool
) -> None:
    scored(client, tmp_path / "whole", count=600)
    expected = contents(tmp_path / "whole")
    for use in range(1, 100):
        folder = tmp_path / f"{use}" / "o"
        if began:
            with pytest.raises(StoppedError):
                scored(client, folder, count=600, on_batch=stop)
        told = ""
        try:
            with loss.before(use, folder):
                scored(client, folder, count=600, resume=True)
        except OutputError as err:
            told = str(err)
        assert (LOST in told) == bool(told)
        while not (folder / "report.json").exists():
            scored(client, folder, count=600, resume=True)
        assert contents(folder) == expected
        if loss.left:
            break
    assert loss.left
    assert use > 30
