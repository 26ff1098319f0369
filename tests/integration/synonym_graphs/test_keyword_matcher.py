"""Evidence that does not depend on the process that gathers it."""

from __future__ import annotations

import os
import subprocess
import sys

SEEN = """
from hallujudge.synonym_graphs import compile_keywords, load_graph
matcher = compile_keywords(load_graph("daily_life_objects"), variant="published")
words = ["red dining table", "dining room", "wooden table", "room", "pool table", "hotel room"]
print(matcher.match(words, ["dining table room"]).near)
"""


def test_near_misses_have_the_same_order_in_every_process() -> None:
    printed = {
        subprocess.run(
            [sys.executable, "-c", SEEN],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            text=True,
        ).stdout
        for seed in ("1", "2", "3")
    }
    assert len(printed) == 1
    assert "NearMiss" in printed.pop()
