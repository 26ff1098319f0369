"""The pages of README and docs/, and the commands that they print."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]

_FENCED = re.compile(r"^```(?:bash|sh|console)\n(.*?)^```", re.MULTILINE | re.DOTALL)
# In blocks of a list and in loops they are indented further; settings may come first.
_COMMAND = re.compile(r"^ {4,}(?:[A-Z_]+=\S+ )*(hallujudge .*)$", re.MULTILINE)


def commands(text: str) -> Iterator[list[str]]:
    """Yield the words of each ``hallujudge …`` line of a page's blocks."""
    # As if a fenced block were indented.
    text = _FENCED.sub(lambda block: re.sub("(?m)^", "    ", block[1]), text)
    for line in _COMMAND.findall(re.sub(r"\\\n\s*", "", text)):
        yield shlex.split(line, comments=True)
