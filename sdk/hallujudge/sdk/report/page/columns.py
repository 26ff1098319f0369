"""The columns of a page: those of its parts, merged, with words and values as numbers."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .parts import FIELD, PartColumns

__all__ = ["Columns", "columns_json", "merged"]

_FACET_VALUES = 200


@dataclass(slots=True)
class Columns:
    """The columns of all items of one run."""

    parts: list[PartColumns] = field(default_factory=list)

    def of(self, name: str) -> list[Any]:
        """Return a column over all parts."""
        return [value for part in self.parts for value in getattr(part, name)]

    def charts(self, kind: str) -> dict[str, Any]:
        """Return the titles of the charts of a kind."""
        return {
            name: title for part in self.parts for name, title in part.charts.get(kind, {}).items()
        }


def merged(parts: Iterable[PartColumns]) -> Columns:
    """Return the columns of parts, in order."""
    return Columns(list(parts))


def columns_json(runs: Sequence[Columns]) -> dict[str, Any]:
    """Return the columns of one or several runs over the same items, as the script reads them."""
    words = Counter(
        word for run in runs for terms in run.of("terms") for of in terms.values() for word in of
    )
    dictionary = {word: code for code, (word, _) in enumerate(words.most_common())}
    reasons = list(dict.fromkeys(reason for run in runs for reason in run.of("unscored") if reason))
    values = _facet_values(runs)
    return {
        "ids": runs[0].of("ids"),
        "groups": runs[0].of("groups"),
        "dictionary": list(dictionary),
        "facetValues": {name: list(codes) for name, codes in values.items()},
        "reasons": reasons,
        "sides": [_side(run, dictionary, reasons, values) for run in runs],
    }


def _facet_values(runs: Sequence[Columns]) -> dict[str, dict[str, int]]:
    """Return the values of each facet with their codes.

    Facets of very many values are left out, and fields of the input that repeat a facet of the
    metric.
    """
    counts: dict[str, Counter[str]] = {}
    for run in runs:
        for facets in run.of("facets"):
            for name, value in facets.items():
                counts.setdefault(name, Counter())[value] += 1
    return {
        name: {value: code for code, (value, _) in enumerate(counter.most_common())}
        for name, counter in counts.items()
        if 1 < len(counter) <= _FACET_VALUES and not _repeats(name, counts, runs)
    }


def _repeats(name: str, counts: Mapping[str, Counter[str]], runs: Sequence[Columns]) -> bool:
    """Return whether a field has the values of a facet of the metric, item by item."""
    if not name.startswith(FIELD):
        return False
    same = [
        other for other in counts if not other.startswith(FIELD) and counts[other] == counts[name]
    ]
    return any(
        all(of.get(name) == of.get(other) for run in runs for of in run.of("facets"))
        for other in same
    )


def _side(
    run: Columns,
    dictionary: Mapping[str, int],
    reasons: Sequence[str],
    values: Mapping[str, Mapping[str, int]],
) -> dict[str, Any]:
    codes = {reason: code for code, reason in enumerate(reasons, 1)}
    measures, facets, terms = run.of("measures"), run.of("facets"), run.of("terms")
    return {
        "unscored": [codes.get(reason, 0) for reason in run.of("unscored")],
        "wrong": run.of("wrong"),
        "total": run.of("total"),
        "snippet": run.of("snippet"),
        "positions": run.of("positions"),
        "measures": {name: [of.get(name) for of in measures] for name in _names(measures)},
        "facets": {
            name: [code.get(of.get(name, ""), -1) for of in facets] for name, code in values.items()
        },
        "terms": {
            kind: [[dictionary[word] for word in of.get(kind, ())] for of in terms]
            for kind in _names(terms)
        },
    }


def _names(columns: Iterable[Mapping[str, object]]) -> list[str]:
    return list(dict.fromkeys(name for of in columns for name in of))
