"""What a request costs, before it is begun."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import TYPE_CHECKING

from ..engine.responses import MAX_RESPONSE_CHARS
from ..errors import InvalidInputError, Violation

if TYPE_CHECKING:
    from hallujudge.metrics import Item, Metric

__all__ = ["GroupLimit", "check_texts", "groups_of"]


class GroupLimit:
    """Counts the groups of a report: each takes time over all clusters.

    Args:
        limit: The most groups of a field.
    """

    def __init__(self, limit: int) -> None:
        self._groups: dict[str, set[str]] = {}
        self._limit = limit

    def add(self, groups: Mapping[str, Iterable[str]]) -> None:
        """Count the groups of items, as :func:`groups_of` returns them.

        Raises:
            InvalidInputError: There are too many.
        """
        for key, values in groups.items():
            known = self._groups.setdefault(key, set())
            known.update(values)
            if len(known) > self._limit:
                raise _too_costly(
                    "spec.group_by",
                    f"the field {key[:80]!r} has more than {self._limit} values (setting "
                    "max_report_groups); group by a field with fewer values",
                )


def groups_of(
    items: Iterable[Item], group_by: Iterable[str], metric: Metric
) -> Mapping[str, Collection[str]]:
    """Return the groups of items: field -> values.

    Args:
        items: The items.
        group_by: The fields to report groups by.
        metric: The metric.
    """
    groups: dict[str, set[str]] = {key: set() for key in group_by}
    if groups:
        split: frozenset[str] = getattr(metric, "split_fields", frozenset())
        for item in items:
            for key, values in groups.items():
                value = item.fields.get(key, "")
                values.update(value.split(",") if key in split else (value,))
    return groups


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
