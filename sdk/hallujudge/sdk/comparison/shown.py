"""How results of comparisons are shown: as text, in notebooks, as data."""

from __future__ import annotations

import json
from abc import ABC, abstractmethod
from collections.abc import Mapping
from typing import TYPE_CHECKING

from hallujudge.metrics.framework.results import JsonValue

if TYPE_CHECKING:
    from pandas import DataFrame

    from ..report.table_pages import Page

__all__ = ["Shown"]


class Shown(ABC):
    """A result with a table: ``print(result)``, a notebook's cell, ``result.to_pandas()``."""

    __slots__ = ()

    @abstractmethod
    def to_json(self) -> Mapping[str, JsonValue]:
        """Return the result as plain values."""

    @abstractmethod
    def page(self) -> Page:
        """Return the result as tables and sentences."""

    def to_text(self) -> str:
        """Return the result as JSON text, which is deterministic; ends with a line feed."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    def to_pandas(self) -> DataFrame:
        """Return the first table as a DataFrame.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        from ..report.export_formats import frame

        return frame(self.page().grids[0].records())

    def __str__(self) -> str:
        from ..report.table_pages import render_page

        return render_page(self.page()).rstrip("\n")

    def _repr_html_(self) -> str:
        from ..report.table_pages import notebook_page

        return notebook_page(self.page())
