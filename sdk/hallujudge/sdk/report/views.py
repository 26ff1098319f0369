"""Views of items on the HTML page, one for each kind of evidence."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from typing import TypeAlias

from hallujudge.metrics import Evidence, Item, ItemResult
from hallujudge.metrics.families import FAMILIES

from .item_view import Facet, ItemView, Passage, facts, item_facts

__all__ = ["ANSWER_WORDS", "View", "response_passage", "view_item", "view_of"]

ANSWER_WORDS = ("right", "wrong")
"""What the page calls the verdicts on answers."""

Show: TypeAlias = "Callable[[Item, ItemResult], ItemView]"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """How items with one kind of evidence are shown."""

    show: Show
    """Returns what the page shows of an item."""
    facets: Mapping[str, Facet] = field(default_factory=dict)
    """Facet -> its chart."""
    terms: Mapping[str, str] = field(default_factory=dict)
    """Kind of term -> title of its chart."""
    words: tuple[str, str] = ("supported", "hallucinated")
    """What the page calls a good and a bad verdict."""


def view_of(evidence: Evidence | None) -> View:
    """Return the view of a kind of evidence; the general view if its family has none."""
    return _views(tuple(FAMILIES)).get(type(evidence), _GENERAL)


def view_item(item: Item, result: ItemResult) -> ItemView:
    """Return what the page shows of an item."""
    if result.evidence is None:
        return _plain(item)
    return view_of(result.evidence).show(item, result)


@cache
def _views(families: tuple[str, ...]) -> Mapping[type[object], View]:
    """Return the shared views of answers and the views of the families."""
    views: dict[type[object], View] = {}
    for name in ("answers", *families):
        # A family's module is optional: the general view shows any evidence.
        if find_spec(f"{__package__}.{name}") is not None:
            views |= import_module(f".{name}", __package__).VIEWS
    return views


def response_passage(item: Item) -> list[Passage]:
    """Return the item's response without marks; nothing if it has none."""
    response = getattr(item, "response", None)
    return [Passage(text=response)] if isinstance(response, str) else []


def _general(item: Item, result: ItemResult) -> ItemView:
    evidence = result.evidence.to_json() if result.evidence is not None else {}
    return ItemView(passages=response_passage(item), facts=[*item_facts(item), *facts(evidence)])


def _plain(item: Item) -> ItemView:
    return ItemView(passages=response_passage(item), facts=item_facts(item))


_GENERAL = View(show=_general)
