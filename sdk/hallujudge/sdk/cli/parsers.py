"""Comparison of all yes/no answer parsers, printed beside a report."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from itertools import islice
from pathlib import Path
from typing import TypeAlias

from hallujudge.metrics import Item, PopeItem
from hallujudge.metrics.pope.answer_analyses import ParserComparison

from ..runs.manifest import PARSERS
from .files import write_file

__all__ = ["compare_parsers", "parsers_text", "write_parsers"]

_BATCH = 4096

ParserScores: TypeAlias = Mapping[str, Mapping[str, float | None]]


def compare_parsers(items: Iterable[Item]) -> ParserScores:
    """Return parser -> score -> value over a run's answers."""
    from hallujudge.judge_service.engine.responses import MAX_RESPONSE_CHARS

    comparison = ParserComparison()
    rest = iter(items)
    while batch := list(islice(rest, _BATCH)):
        rows = [
            (item.response, item.label)
            for item in batch
            if isinstance(item, PopeItem) and item.response is not None and item.label
            if len(item.response) <= MAX_RESPONSE_CHARS
        ]
        comparison.add([text for text, _ in rows], [label for _, label in rows])
    return comparison.scores()


def write_parsers(folder: Path, table: ParserScores) -> None:
    """Write the table to the run's folder.

    Raises:
        OutputError: The disk is full, or gone.
    """
    write_file(folder / PARSERS, json.dumps(table, indent=1, allow_nan=False) + "\n")


def parsers_text(table: ParserScores) -> str:
    """Return the comparison as a table for a terminal."""
    names = list(next(iter(table.values())))
    lines = ["the same answers under every parser", f"{'parser':<11}" + "".join(map(_head, names))]
    for parser, scores in table.items():
        cells = (_head("–" if (value := scores[n]) is None else f"{value:.4f}") for n in names)
        lines.append(f"{parser:<11}{''.join(cells)}")
    return "\n".join(lines)


def _head(text: str) -> str:
    return f"{text:>15}"
