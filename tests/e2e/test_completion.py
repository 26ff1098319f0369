"""Shell completion, as a shell asks for it."""

from __future__ import annotations

import os
import subprocess

import pytest
from support.running import BIN
from support.sizes import further

OFFERED = "test_shells_complete_commands"


@pytest.mark.parametrize(
    ("typed", "offered"),
    [
        ("hallujudge score chai", "chair"),
        further(OFFERED, "hallujudge sc", "score"),
        further(OFFERED, "hallujudge gr", "graph"),
    ],
)
def test_shells_complete_commands(typed: str, offered: str) -> None:
    completed = subprocess.run(
        [BIN / "hallujudge"],
        env={
            **os.environ,
            "_HALLUJUDGE_COMPLETE": "complete_bash",
            "COMP_WORDS": typed,
            "COMP_CWORD": str(len(typed.split()) - 1),
        },
        capture_output=True,
        text=True,
        timeout=600,
        check=False,
    )
    assert completed.stdout.split() == [offered], completed.stderr
