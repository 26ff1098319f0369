"""The papers that define our metrics, which ``papers.toml`` lists."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from importlib import resources

from .metric import Paper


def paper(name: str) -> Paper:
    """Return a paper by its name in the list."""
    return _papers()[name]


def papers_of(benchmark: str) -> tuple[Paper, ...]:
    """Return the paper that has a benchmark's name in the list; empty without one."""
    return tuple(each for name, each in _papers().items() if name == benchmark)


@cache
def _papers() -> Mapping[str, Paper]:
    text = resources.files(__package__).joinpath("papers.toml").read_text("utf-8")
    return {name: Paper(**fields) for name, fields in tomllib.loads(text).items()}
