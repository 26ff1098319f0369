"""Views of items on the HTML page: passages with marks, claims with reasons, lists and facts.

Each kind of evidence has a view in one of the modules :data:`_SHIPPED`, or in a module of its
family's name. Evidence without one is shown by its fields.
"""

from __future__ import annotations

import enum
import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, is_dataclass
from functools import cache
from importlib import import_module
from itertools import islice
from typing import Any, NamedTuple, TypeAlias

from msgspec import Struct, structs

from hallujudge.metrics import AnswersItem, Evidence, Item, ItemResult, JsonValue
from hallujudge.metrics.families import FAMILIES, has_module
from hallujudge.metrics.framework.claims import InvalidEntry

from .report_text import clean, cut

# Limits of what one item adds to a page: ids and responses may be of any length.
_PASSAGE_CHARS = 20_000
_ENTRIES = 200
_ENTRY_CHARS = 400
# Shown elsewhere: in the heading, and as the marked response.
_SHOWN_FIELDS = frozenset({"id", "group_id", "fields", "response", "thought"})
# Imported when the first item is shown: they take from here what a view is made of.
_SHIPPED = ("object_views", "verdict_views")
ANSWER_WORDS = ("right", "wrong")
"""Words of the page for the verdicts on answers."""

Show: TypeAlias = "Callable[[Item, Any], ItemView]"
"""Returns the view of an item with its evidence, which is of the kind that the view is for."""


class Shade(enum.IntEnum):
    """How a mark or claim is shown. The script of the page has the same numbers."""

    RIGHT = 0
    """Supported by the references."""
    WRONG = 1
    """Hallucinated, or a wrong answer."""
    UNSCORED = 2
    """Without a verdict."""
    MISSED = 3
    """In the reference, but not in the response."""


def answer_shade(correct: bool | None) -> Shade:
    """Return the shade of an answer; None is an answer without a verdict."""
    if correct is None:
        return Shade.UNSCORED
    return Shade.RIGHT if correct else Shade.WRONG


class Facet(NamedTuple):
    """A chart that filters items by one of their values."""

    title: str
    """Title of the chart."""
    rates: bool = True
    """Whether bars show the share of wrong claims; otherwise the number of items."""


class Mark(NamedTuple):
    """A marked span of a passage."""

    start: int
    """Position of the first character."""
    end: int
    """Position after the last character."""
    shade: Shade
    """How the span is shown."""
    claim: int = -1
    """Index of the claim that explains the mark; -1 without one."""


class Passage(Struct, frozen=True, kw_only=True):
    """A text with marks, such as a response."""

    text: str
    label: str = ""
    """What the text is; empty for the one response of an item."""
    marks: Sequence[Mark] = ()
    """Marks, which may overlap; hallucinated ones cover others."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the passage, cut to a bounded length, as the page's script reads it."""
        return {
            "label": clean(self.label),
            "text": cut(clean(self.text), _PASSAGE_CHARS),
            "marks": [list(mark) for mark in self.marks if mark.start < _PASSAGE_CHARS],
        }


def marked_passage(text: str, label: str, shade: Shade, claim: int = 0) -> Passage:
    """Return a text that is marked as a whole, such as a short answer.

    Args:
        text: The text.
        label: What the text is.
        shade: How it is shown.
        claim: Index of the claim that explains the mark.
    """
    return Passage(text=text, label=label, marks=[Mark(0, len(text), shade, claim)])


class Claim(Struct, frozen=True, kw_only=True):
    """A claim, mention, keyword or answer with its verdict and the reasons for it."""

    text: str
    """The claim in words."""
    shade: Shade
    """Its verdict."""
    reasons: Sequence[tuple[str, str]] = ()
    """Names and values that explain the verdict."""
    matched: Sequence[int] = ()
    """Indices of the triplets of the scene graph that it was compared with."""
    kind: str = ""
    """The kind of claim if an item has several kinds; otherwise empty."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the claim as the page's script reads it."""
        return {
            "text": _entry(self.text),
            "verdict": int(self.shade),
            "reasons": [[_entry(name), _entry(value)] for name, value in self.reasons if value],
            "matched": list(self.matched),
            **({"kind": self.kind} if self.kind else {}),
        }


class Listing(Struct, frozen=True, kw_only=True):
    """A labelled list of short texts."""

    label: str
    """What the entries are."""
    entries: Iterable[str]
    style: str = ""
    """``wrong``, ``missed`` or empty."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the list, cut to a bounded length, as the page's script reads it."""
        entries = list(self.entries)
        shown: list[JsonValue] = [_entry(entry) for entry in entries[:_ENTRIES]]
        if len(entries) > _ENTRIES:
            shown.append(f"and {len(entries) - _ENTRIES:,} more")
        return {"label": self.label, "style": self.style, "entries": shown}


class ItemView(Struct, frozen=True, kw_only=True):
    """Everything that the page shows of an item."""

    summary: str = ""
    """One line about the item."""
    passages: Sequence[Passage] = ()
    """Texts with marks."""
    thought: Passage | None = None
    """What the model thought before it answered, which the page folds."""
    claims: Sequence[Claim] = ()
    """Claims with verdicts."""
    lists: Sequence[Listing] = ()
    """Lists, such as missed objects; empty ones are left out."""
    facts: Sequence[tuple[str, str]] = ()
    """Other names and values."""
    graph: Sequence[Sequence[str]] = ()
    """The scene graph: subject, relation, object."""
    wrong: int = 0
    """How many claims are hallucinated, or answers wrong."""
    total: int = 0
    """How many claims have a verdict."""
    facets: Mapping[str, str] = {}
    """Values to filter by, by the name of the facet."""
    measures: Mapping[str, float] = {}
    """Numbers to filter by, such as the judge's smallest margin."""
    terms: Mapping[str, Sequence[str]] = {}
    """Words to count over items, such as hallucinated objects, by kind."""

    def detail(self) -> dict[str, JsonValue]:
        """Return what the detail view of the page reads."""
        lists = [listing.to_json() for listing in self.lists]
        thought = {} if self.thought is None else {"thought": self.thought.to_json()}
        return {
            **thought,
            "summary": clean(self.summary),
            "passages": [passage.to_json() for passage in self.passages],
            # Like all lists here: a damaged or endless response may have thousands of claims.
            "claims": [claim.to_json() for claim in islice(self.claims, 2 * _ENTRIES)],
            "lists": [listing for listing in lists if listing["entries"]],
            "facts": [[_entry(name), _entry(value)] for name, value in self.facts if value],
            "graph": [[_entry(part) for part in triplet] for triplet in self.graph],
        }


def invalid_listing(entries: Iterable[InvalidEntry], noun: str) -> Listing:
    """Return the invalid entries of an extractor's reply, with what became of them.

    Args:
        entries: The entries.
        noun: What they are, in the plural.
    """
    return Listing(
        label=f"Invalid {noun} of the extractor",
        entries=[
            f"{entry.text} → {entry.repaired or 'rejected'} ({entry.place}: {entry.problem})"
            for entry in entries
        ],
    )


def item_facts(item: Item, *, without: Iterable[str] = ()) -> list[tuple[str, str]]:
    """Return an item's fields other than its response, by name.

    Args:
        item: The item.
        without: Names of fields that are shown elsewhere.
    """
    left_out = _SHOWN_FIELDS.union(without)
    return facts(
        {
            name.replace("_", " "): value
            for name in item.__struct_fields__
            if name not in left_out and (value := getattr(item, name)) not in (None, ())
        }
    )


def facts(values: Mapping[str, object]) -> list[tuple[str, str]]:
    """Return names and values of any type as text."""
    return [(name, "\n".join(_lines(value))) for name, value in islice(values.items(), _ENTRIES)]


def _entry(text: str) -> str:
    return cut(clean(text), _ENTRY_CHARS)


def _lines(value: object) -> Iterator[str]:
    """Yield the lines of a value: one line for a scalar, else one line for each entry."""
    if isinstance(value, Mapping):
        yield from (f"{key}: {_compact(entry)}" for key, entry in value.items())
    elif isinstance(value, list | tuple):
        flat = all(isinstance(entry, str | int | float | None) for entry in value)
        entries = [_compact(entry) for entry in value[:_ENTRIES]]
        yield from ([", ".join(entries) or "none"] if flat else entries)
    else:
        yield _compact(value)


def _compact(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "none"}[value]
    if isinstance(value, str):
        return value
    if is_dataclass(value) and not isinstance(value, type):
        value = asdict(value)
    return json.dumps(value, ensure_ascii=False, default=str)


class View(Struct, frozen=True, kw_only=True):
    """How items with one kind of evidence are shown."""

    show: Show
    """Returns what the page shows of an item with its evidence."""
    facets: Mapping[str, Facet] = {}
    """Facet -> its chart."""
    terms: Mapping[str, str] = {}
    """Kind of term -> title of its chart."""
    words: tuple[str, str] = ("supported", "hallucinated")
    """Words of the page for a good and a bad verdict."""


def view_of(evidence: Evidence | None) -> View:
    """Return the view of a kind of evidence; the general view if its family has none."""
    # The families are the key of the cache: one that is added later has its view too.
    return _views(tuple(FAMILIES)).get(type(evidence), _GENERAL)


def view_item(item: Item, result: ItemResult) -> ItemView:
    """Return what the page shows of an item."""
    view = _view_of_answer(item, result)
    return structs.replace(view, thought=_thought_of(item, result)) if item.thought else view


def _view_of_answer(item: Item, result: ItemResult) -> ItemView:
    if result.evidence is None:
        return ItemView(passages=response_passage(item), facts=item_facts(item))
    return view_of(result.evidence).show(item, result.evidence)


def _thought_of(item: Item, result: ItemResult) -> Passage:
    """Return the thought with the marks of its own claims, if thoughts were scored."""
    marks: list[Mark] = []
    if result.thought is not None and result.thought.evidence is not None:
        changes: dict[str, Any] = {"response": item.thought}
        if isinstance(item, AnswersItem):
            # A thought is shared by all answers of an item, so each is read from it.
            answers = [structs.replace(answer, response=item.thought) for answer in item.answers]
            changes = {"answers": tuple(answers)}
        shown = _view_of_answer(structs.replace(item, **changes), result.thought).passages
        # The claims of the page are those of the answer.
        marks = [mark._replace(claim=-1) for mark in shown[0].marks] if shown else []
    return Passage(text=item.thought, label="Thought", marks=marks)


@cache
def _views(families: tuple[str, ...]) -> Mapping[type[object], View]:
    """Return the views of each kind of evidence, those of families with a module here included."""
    own = (name for name in families if has_module(__package__, name))
    views: dict[type[object], View] = {}
    for name in (*_SHIPPED, *own):
        views |= import_module(f".{name}", __package__).VIEWS
    return views


def response_passage(item: Item) -> list[Passage]:
    """Return the item's response without marks; nothing if it has none."""
    response = getattr(item, "response", None)
    return [Passage(text=response)] if isinstance(response, str) else []


def _general(item: Item, evidence: Evidence) -> ItemView:
    known = [*item_facts(item), *facts(evidence.to_json())]
    return ItemView(passages=response_passage(item), facts=known)


_GENERAL = View(show=_general)
