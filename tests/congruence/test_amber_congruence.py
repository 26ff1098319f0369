"""AMBER with nouns that rules find: embedded equals remote, byte for byte."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from support import amber_samples as amber
from support.messages import expected_message

from hallujudge.sdk import Client, InputOptions
from hallujudge.sdk.errors import NotFoundError

RUN: dict[str, Any] = {
    **amber.RUN,
    "inputs": InputOptions(
        own={
            "questions": amber.QUESTIONS,
            "associations": amber.ASSOCIATIONS,
            "safe_words": amber.SAFE,
        }
    ),
}
FILES = ("report.json", "items.jsonl", "report.html")


@pytest.mark.parametrize("variant", ["published", "corrected"])
def test_files_are_equal(server: str, tmp_path: Path, variant: str) -> None:
    with Client.embedded() as here, Client(server) as there:
        for name, client in (("here", here), ("there", there)):
            run = {**RUN, "variant": variant, "options": {"nouns": "rules"}}
            client.score("amber", **run, folder=tmp_path / name, html=True)
    for file in FILES:
        assert (tmp_path / "here" / file).read_bytes() == (tmp_path / "there" / file).read_bytes()
    assert b"nouns:rules-3" in (tmp_path / "here" / "report.json").read_bytes()


def test_a_server_opens_no_folder_of_a_caller(server: str, tmp_path: Path) -> None:
    options = {"nouns": "published", "vectors": str(tmp_path)}
    with (
        Client(server) as client,
        pytest.raises(
            NotFoundError,
            match=expected_message(
                "judge_service.engine.resources:does-not-offer-it-offers-en-core"
            ),
        ),
    ):
        client.score("amber", **{**RUN, "options": options})
