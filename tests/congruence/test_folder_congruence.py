"""A run's folder is the same wherever it is scored, and a run may be resumed elsewhere."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support.metric_runs import RUNS

from hallujudge.sdk import BatchResult, Client

FILES = ("items.jsonl", "report.json", "report.html", "manifest.json", "journal.bin")


class StoppedError(Exception):
    """Stands for anything that ends a run."""


def contents(folder: Path, files: tuple[str, ...] = FILES) -> dict[str, bytes]:
    return {name: (folder / name).read_bytes() for name in files}


@pytest.mark.parametrize("metric", RUNS)
def test_folders_are_equal(server: str, tmp_path: Path, metric: str) -> None:
    with Client.embedded() as here, Client(server) as there:
        for name, client in (("here", here), ("there", there)):
            client.score(metric, **RUNS[metric](), folder=tmp_path / name, html=True)
    assert contents(tmp_path / "here") == contents(tmp_path / "there")


@pytest.mark.parametrize("first", ["here", "there"])
def test_a_run_is_resumed_elsewhere(server: str, tmp_path: Path, first: str) -> None:
    left = 2

    def stop(_batch: BatchResult) -> None:
        nonlocal left
        left -= 1
        if not left:
            raise StoppedError

    ids = [str(number) for number in range(1_200)]
    run: dict[str, Any] = {
        "responses": {key: f"A dog and {key} cats." for key in ids},
        "references": {key: ["dog"] for key in ids},
        "html": True,
    }
    with Client.embedded() as here, Client(server) as there:
        here.score("chair", **run, folder=tmp_path / "whole")
        clients = [here, there] if first == "here" else [there, here]
        with pytest.raises(StoppedError):
            clients[0].score("chair", **run, folder=tmp_path / "parts", on_batch=stop)
        clients[1].score("chair", **run, folder=tmp_path / "parts", resume=True)
    files = FILES[:-1]
    assert contents(tmp_path / "parts", files) == contents(tmp_path / "whole", files)
