"""How an item looks on the page: a view for each kind of evidence, by its family's module."""

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
    """How items with one kind of evidence look."""

    body: Body
    """The item's part of the page, without its heading."""
    weight: Callable[[Evidence], int] = lambda _: 0
    """How much in the item is wrong; the page keeps the items with most."""
    summary: Callable[[Evidence], str] = lambda _: ""
    """The item in a few words, for its heading."""
    order: str = "the worst first"
    """What the order by weight means."""
    legend: bool = False
    """Whether responses are marked, so that the marks want an explanation."""


def view_of(evidence: Evidence | None) -> View:
    """Return the view of a kind of evidence; a general one where its family has none."""
    return _views(tuple(FAMILIES)).get(type(evidence), _GENERAL)


@cache
def _views(families: tuple[str, ...]) -> Mapping[type[object], View]:
    """Return the views of answers, which families share, and those of the families."""
    views: dict[type[object], View] = {}
    for name in ("answers", *families):
        # A family needs no module of its own: the general view shows any evidence.
        if find_spec(f"{__package__}.{name}") is not None:
            views |= import_module(f".{name}", __package__).VIEWS
    return views


def weight_of(evidence: Evidence | None) -> int:
    """How much in an item is wrong."""
    return view_of(evidence).weight(evidence) if evidence is not None else 0


def general_body(item: Item, result: ItemResult) -> Markup:
    """Return the response, what the item says beside it, and the evidence as facts."""
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
