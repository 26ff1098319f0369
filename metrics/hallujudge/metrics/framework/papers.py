"""The papers that define our metrics: a file of ``metrics/papers`` for each, with small examples.

``papers/NAME.toml`` has the fields of a ``Paper``: title, authors, names, year, link, perhaps
venue, and where, which is the section or the script that defines the scores. ``year`` is that of
the first version. A table ``examples.METRIC`` has a small archive of a metric that the paper
defines, which we made up: ``files``, path -> text, in the layout of the metric's page, and the
``command`` that scores them. Tests, benchmarks and ``hallujudge new METRIC`` take it from there.
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources
from typing import Any

from .metric import Paper

_FOLDER = resources.files("hallujudge.metrics") / "papers"


def paper(name: str) -> Paper:
    """Return a paper by the name of its file, with hyphens for underscores."""
    return Paper(**{key: value for key, value in _text_of(name).items() if key != "examples"})


def papers_of(benchmark: str) -> tuple[Paper, ...]:
    """Return the paper whose file has a benchmark's name; empty without one."""
    return (paper(benchmark),) if benchmark in _names() else ()


def paper_examples() -> Mapping[str, Mapping[str, Any]]:
    """Return metric -> its example's command and files."""
    found = (_text_of(name).get("examples", {}) for name in _names())
    return {metric: example for each in found for metric, example in each.items()}


@cache
def _names() -> tuple[str, ...]:
    files = [file.name for file in _FOLDER.iterdir()]
    return tuple(name.removesuffix(".toml").replace("_", "-") for name in sorted(files))


def _text_of(name: str) -> dict[str, Any]:
    file = _FOLDER / f"{name.replace('-', '_')}.toml"
    return tomllib.loads(file.read_text("utf-8"))
