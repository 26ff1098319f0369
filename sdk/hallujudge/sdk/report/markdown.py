"""The report as Markdown, for issues and drafts."""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Mapping
from itertools import islice

from hallujudge.metrics import Report, Score
from hallujudge.metrics.calibration.calibrated_scores import Calibration

from .calibrated import calibration_sentences, corrected_cells, corrected_headings, group_text
from .text import GROUP_LIMIT, clean, coverage_sentence, cut, interval_label, shown

__all__ = ["markdown_table", "markdown_text", "render_markdown"]

_SPECIAL = re.compile(r"([\\`*_{}\[\]()#+!|~-])")
_NAME_CHARS = 120


def render_markdown(report: Report, calibration: Calibration | None = None) -> str:
    """Return the report as GitHub-flavoured Markdown.

    Args:
        report: The report.
        calibration: The scores corrected by human labels, which are shown beside the raw ones.

    Returns:
        A heading, a table of scores, coverage, notes, groups, and the signature in a code block.
    """
    bounds = report.coverage.bounds
    beside = corrected_headings(calibration)
    headings = ["score", "value", interval_label(report), *beside, "n"]
    headings += ["unscored could make it"] if bounds else []
    rows = [
        [
            markdown_text(name),
            figures.value,
            figures.interval,
            *corrected_cells(calibration, name),
            figures.n,
            figures.bound,
        ][: len(headings)]
        for name, score in report.scores.items()
        for figures in [shown(score, bounds.get(name))]
    ]
    parts = [
        f"### {markdown_text(report.metric)} ({markdown_text(report.variant)})",
        markdown_table(headings, rows),
        markdown_text(coverage_sentence(report.coverage), limit=2_000),
        *(
            markdown_text(sentence, limit=2_000)
            for sentence in (calibration_sentences(calibration) if calibration else ())
        ),
        *(f"> **Note:** {markdown_text(note, limit=2_000)}" for note in report.notes),
        *(_groups(key, values, calibration) for key, values in report.groups.items()),
        f"```\n{_inert(calibration.signature if calibration else report.signature)}\n```",
    ]
    return "\n\n".join(parts) + "\n"


def _groups(
    key: str, values: Mapping[str, Mapping[str, Score]], calibration: Calibration | None
) -> str:
    names = list(next(iter(values.values()), {}))
    rows = [
        [
            markdown_text(value) or "(none)",
            *(
                f"{f.value} {f.interval} n {f.n} {more}".replace("  ", " ").strip()
                for name, score in scores.items()
                for f, more in [(shown(score), group_text(calibration, key, value, name))]
            ),
        ]
        for value, scores in islice(values.items(), GROUP_LIMIT)
    ]
    more = f"\n\n{len(values) - GROUP_LIMIT:,} more" if len(values) > GROUP_LIMIT else ""
    table = markdown_table(map(markdown_text, (key, *names)), rows)
    return f"By {markdown_text(key)}:\n\n{table}{more}"


def markdown_table(headings: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """Return a table of Markdown; every column but the first is aligned to the right."""
    headings = list(headings)
    ruler = [":---", *["---:"] * (len(headings) - 1)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (headings, ruler, *rows))


def markdown_text(text: str, limit: int = _NAME_CHARS) -> str:
    """Return text on one line with Markdown's special characters escaped."""
    line = " ".join(cut(clean(text), limit).split())
    return _SPECIAL.sub(r"\\\1", html.escape(line, quote=False))


def _inert(text: str) -> str:
    """Return text that can't end a code block."""
    return clean(text).replace("\n", " ").replace("```", "'''")
