"""Convert the metrics' declarations to Markdown: papers, scores, variants and options."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Any

_MARK, _DECLARED = "<!-- metrics -->", "<!-- declared benchmarks -->"


def with_metrics(markdown: str) -> str:
    """Replace ``<!-- metrics -->`` with a section for each metric.

    ``<!-- declared benchmarks -->`` becomes the modules of declarations that a page does not name.
    """
    if _DECLARED in markdown:
        markdown = markdown.replace(_DECLARED, "\n".join(_declared(markdown)))
    return markdown.replace(_MARK, "\n".join(_sections())) if _MARK in markdown else markdown


def _declared(markdown: str) -> Iterator[str]:
    from hallujudge.metrics.families import FAMILIES, benchmarks_of

    for family in FAMILIES:
        module = f"::: hallujudge.metrics.{family}"
        if benchmarks_of(family) and not re.search(rf"{module}\b", markdown):
            yield f"{module}\n    options:\n      members: false\n"


def _sections() -> Iterator[str]:
    from hallujudge.judge_service.engine.registry import metric_entry
    from hallujudge.metrics.families import benchmark_named, metric_names

    for name in metric_names():
        entry = metric_entry(name)
        yield f"## `{name}`\n\n{entry.metric.summary}\n"
        yield "".join(f"* {paper.citation}\n" for paper in entry.metric.papers)
        yield _table(("score", "meaning", "unit", "better"), _scores(entry.metric))
        ranking = ", else ".join(f"`{score}`" for score in entry.metric.ranked_by)
        yield f"Models are ranked by {ranking}. {entry.metric.ranking_source}\n\n"
        yield _table(("variant", "meaning"), _variants(entry.metric))
        if entry.options:
            yield _table(("option", "default", "choices", "meaning"), _options(entry.options))
        benchmark = benchmark_named(name)
        if benchmark is not None and (known := benchmark.names):
            head = (" and ".join(benchmark.bundle.name), "meaning")
            yield _table(head, ((f"`{key}`", meaning) for key, meaning in known.items()))


def _scores(metric: Any) -> Iterator[tuple[str, ...]]:
    for score in metric.score_definitions:
        better = "" if score.direction == "neither" else score.direction
        yield f"`{score.name}`", score.meaning, score.unit, better


def _variants(metric: Any) -> Iterator[tuple[str, ...]]:
    for number, variant in enumerate(metric.variants):
        yield f"`{variant.name}`" + (" (default)" if number == 0 else ""), variant.meaning


def _options(options: Sequence[Any]) -> Iterator[tuple[str, ...]]:
    for option in options:
        choices = " ".join(f"`{choice}`" for choice in option.choices)
        yield (
            f"`{option.name}`",
            f"`{option.default}`" if option.default else "",
            choices,
            option.sentence,
        )


def _table(head: Sequence[str], rows: Iterator[tuple[str, ...]]) -> str:
    lines = [head, ["---"] * len(head), *([_cell(cell) for cell in row] for row in rows)]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines) + "\n"


def _cell(text: str) -> str:
    return re.sub(r"(?<!\\)\|", r"\\|", " ".join(text.split()))
