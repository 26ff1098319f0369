"""What an analysis is made of: tables of plain values."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TypeAlias

__all__ = ["Analysis", "AnalysisTable", "Cell"]

Cell: TypeAlias = str | int | float | None
"""A value of a table; None: it is not defined."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisTable:
    """One analysis."""

    name: str
    """Its name, such as ``trend``."""
    source: str
    """Where the paper has it, or that it is ours."""
    rows: tuple[Mapping[str, Cell], ...]
    """Its rows, all with the same keys in the same order."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analysis:
    """The analyses of one run."""

    metric: str
    """The run's metric."""
    variant: str
    """Its variant."""
    signature: str
    """The signature of the run's scores, which the analyses rest on."""
    tables: tuple[AnalysisTable, ...]
    """The analyses that the run's items allow."""
    notes: tuple[str, ...] = ()
    """Which ones they don't allow, and why."""

    def __getitem__(self, name: str) -> AnalysisTable:
        """The table of a name.

        Raises:
            KeyError: There is none of that name.
        """
        for table in self.tables:
            if table.name == name:
                return table
        raise KeyError(name)

    def to_json(self) -> dict[str, object]:
        """What ``analysis.json`` holds."""
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
        """The same as text, with a line end."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"
