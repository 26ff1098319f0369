"""The result of an audit."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise

from hallujudge.metrics.framework.results import JsonValue

from ..comparison.shown import Shown
from ..report.grids import Page
from .show import steps
from .values import Cause, ItemShare, Row, ScoreAudit
from .waterfall import Ratio, Stage, changed_rows, columns_of, shares_of

__all__ = ["SCHEMA", "Audit"]

SCHEMA = "hallujudge.audit/1"
"""Name and version of the JSON that an audit is written as."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit(Shown):
    """A tool's numbers, re-derived from its archive, and why ours differ."""

    archive: str
    """The archive."""
    harness: str
    """The tool."""
    metric: str
    """Our metric."""
    signature: str
    """Signature of our scores."""
    causes: tuple[Cause, ...]
    """The causes, in the order of the steps."""
    scores: tuple[ScoreAudit, ...]
    """The scores."""
    notes: tuple[str, ...]
    """Warnings, one sentence each."""
    rows: Sequence[Row]
    """The rows of the archive."""
    stages: tuple[Stage, ...]
    """The ways of counting, from the tool's to ours."""
    ratios: Mapping[str, Ratio]
    """Score -> its definition."""

    def items(self) -> Iterator[ItemShare]:
        """Yield the rows behind each cause, with their shares."""
        columns = columns_of(self.ratios[score.name] for score in self.scores)
        for before, after in pairwise(self.stages):
            shares = {s.name: shares_of(before, after, self.ratios[s.name]) for s in self.scores}
            for place in changed_rows(before, after, columns):
                yield ItemShare(
                    cause=after.cause,
                    row=self.rows[place],
                    before=before.counts[place],
                    after=after.counts[place],
                    shares={name: of.get(place, Fraction(0)) for name, of in shares.items()},
                )

    def to_json(self) -> Mapping[str, JsonValue]:
        """Return the audit as plain values."""
        return {
            "schema": SCHEMA,
            "archive": self.archive,
            "harness": self.harness,
            "metric": self.metric,
            "signature": self.signature,
            "causes": [
                {"name": c.name, "meaning": c.meaning, "items": c.items, "rows": c.rows}
                for c in self.causes
            ],
            "scores": {score.name: score.to_json() for score in self.scores},
            "notes": list(self.notes),
        }

    def page(self) -> Page:
        """Return the audit as tables and sentences."""
        printed = {
            f"printed {score.name}": score.printed.source
            for score in self.scores
            if score.printed is not None
        }
        return Page(
            title=f"{self.metric}: the numbers of {self.harness}, and ours",
            grids=(steps(self.scores, self.causes, self.stages[0].rows),),
            sentences=(
                *(f"{cause.name}: {cause.meaning}" for cause in self.causes if self._counts(cause)),
                "Each column adds up from the first number to ours. Shares depend on the order of "
                "the steps.",
            ),
            notes=self.notes,
            sources={"archive": self.archive, **printed, "signature": self.signature},
        )

    def _counts(self, cause: Cause) -> bool:
        """Return whether a cause changes a row or a score."""
        return bool(cause.items) or any(score.shares.get(cause.name) for score in self.scores)
