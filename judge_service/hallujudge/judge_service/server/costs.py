"""What a request costs, before it is begun."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

from ..engine.responses import MAX_RESPONSE_CHARS
from ..errors import InvalidInputError, Violation

if TYPE_CHECKING:
    from hallujudge.metrics import Item, Metric

__all__ = ["GroupLimit", "check_texts"]


class GroupLimit:
    """Counts the groups of a report: each takes time over all clusters.

    Args:
        group_by: The fields to report groups by.
        metric: The metric.
        limit: The most groups.
    """

    def __init__(self, group_by: Iterable[str], metric: Metric, limit: int) -> None:
        self._groups: dict[str, set[str]] = {key: set() for key in group_by}
        self._split: frozenset[str] = getattr(metric, "split_fields", frozenset())
        self._limit = limit

    def add(self, items: Iterable[Item]) -> None:
        """Count the groups of items.

        Raises:
            InvalidInputError: There are too many.
        """
        if not self._groups:
            return
        for item in items:
            for key, groups in self._groups.items():
                value = item.fields.get(key, "")
                groups.update(value.split(",") if key in self._split else (value,))
        for key, groups in self._groups.items():
            if len(groups) > self._limit:
                raise _too_costly(
                    "spec.group_by",
                    f"the field {key[:80]!r} has more than {self._limit} values (setting "
                    "max_report_groups); group by a field with fewer values",
                )


def check_texts(texts: Iterable[str]) -> None:
    """Refuse texts that no extractor reads.

    Raises:
        InvalidInputError: A text is too long.
    """
    for index, text in enumerate(texts):
        if len(text) > MAX_RESPONSE_CHARS:
            raise _too_costly(
                f"texts[{index}]",
                f"has {len(text)} characters; at most {MAX_RESPONSE_CHARS} are read, so divide it",
            )


def _too_costly(field: str, problem: str) -> InvalidInputError:
    return InvalidInputError(
        f"{field}: {problem}",
        reason="TOO_COSTLY",
        violations=(Violation(field=field, description=problem),),
    )
