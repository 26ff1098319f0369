"""Views of items on the HTML page, one for each kind of evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TypeAlias

from hallujudge.metrics import Evidence, Item, ItemResult
from hallujudge.metrics.families import FAMILIES

from .markup import Markup, joined
from .pieces import facts, item_facts, marked

__all__ = ["View", "general_body", "view_of", "weight_of"]

Body: TypeAlias = "Callable[[Item, ItemResult], Markup]"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """Renderer of items with one kind of evidence."""

    body: Body
    """Renders an item, without its heading."""
    weight: Callable[[Evidence], int] = lambda _: 0
    """Counts what is wrong in the item; the page keeps the items with the highest counts."""
    summary: Callable[[Evidence], str] = lambda _: ""
    """Summarizes the item for its heading."""
    order: str = "the worst first"
    """Describes the order by weight."""
    legend: bool = False
    """Whether responses are marked, so that the page shows a legend."""


def view_of(evidence: Evidence | None) -> View:
    """Return the view of a kind of evidence; the general view if its family has none."""
    return _views(tuple(FAMILIES)).get(type(evidence), _GENERAL)


@cache
def _views(families: tuple[str, ...]) -> Mapping[type[object], View]:
    """Return the shared views of answers and the views of the families."""
    views: dict[type[object], View] = {}
    for name in ("answers", *families):
        # A family's module is optional: the general view shows any evidence.
        if find_spec(f"{__package__}.{name}") is not None:
            views |= import_module(f".{name}", __package__).VIEWS
    return views


def weight_of(evidence: Evidence | None) -> int:
    """Return how much in an item is wrong."""
    return view_of(evidence).weight(evidence) if evidence is not None else 0


def general_body(item: Item, result: ItemResult) -> Markup:
    """Return the response, the item's other fields, and the evidence as facts."""
    response = getattr(item, "response", None)
    evidence = result.evidence.to_json() if result.evidence is not None else {}
    return joined(
        [
            *([marked(response, ())] if isinstance(response, str) else []),
            item_facts(item),
            facts(evidence),
        ]
    )


_GENERAL = View(body=general_body)
