"""Results of analyses: tables of plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Analysis", "AnalysisTable", "Cell"]

Cell: TypeAlias = str | int | float | None
"""A value of a table; None if it is undefined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisTable:
    """One analysis."""

    name: str
    """The table's name, such as ``trend``."""
    source: str
    """Table or figure of the paper, or a note that the analysis is ours."""
    rows: tuple[Mapping[str, Cell], ...]
    """Rows with the same keys in the same order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The analyses of one run."""

    metric: str
    """The run's metric."""
    variant: str
    """Its variant."""
    signature: str
    """The signature of the run's scores."""
    tables: tuple[AnalysisTable, ...]
    """The analyses that the run's items allow, as tables."""
    notes: tuple[str, ...] = ()
    """Reasons for missing or partial analyses."""

    def __getitem__(self, name: str) -> AnalysisTable:
        """Return the table with a name.

        Raises:
            KeyError: No table has that name.
        """
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(name)

    def to_json(self) -> dict[str, object]:
        """Return the content of ``analysis.json``."""
        return {
            "metric": self.metric,
            "variant": self.variant,
            "signature": self.signature,
            "analyses": {
                table.name: {"source": table.source, "rows": [dict(row) for row in table.rows]}
                for table in self.tables
            },
            "notes": list(self.notes),
        }

    def to_text(self) -> str:
        """Return the content of ``analysis.json`` as text that ends with a line feed."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
