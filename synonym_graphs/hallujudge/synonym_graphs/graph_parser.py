"""Parsing of graph files: the JSON layouts and the table layout."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Final, Literal, NoReturn, TypeAlias

from .graph import (
    FORMAT,
    MAX_BYTES,
    MAX_FORMS,
    UNNAMED,
    GraphFormatError,
    QualifierRule,
    SuppressRule,
    SynonymGraph,
)
from .json_layouts import is_released, plain_graph, released_graph, released_pairs
from .object_lexicon import (
    ANIMALS,
    BLOCKED,
    CARRYING,
    READS_AS,
    SUPPRESSED,
    VEHICLES,
    YOUNG_OR_GROWN,
)
from .word_forms import clean_word

Layout: TypeAlias = Literal["json", "table", "auto"]

_TOP: Final = frozenset(
    [
        "format", "name", "version", "description", "source", "categories", "ambiguous",
        "blocked", "reads_as", "qualifiers", "suppress", "rows", "pairs"
    ]
)  # fmt: skip


def newer_format(found: object, known: str) -> str:
    """Return why a file is from a newer release; empty if it is not.

    Args:
        found: The format that the file names.
        known: The format that this release writes, such as ``hallujudge-synonyms/1``.
    """
    name, _, now = known.partition("/")
    match = re.fullmatch(re.escape(name) + r"/([1-9]\d{0,8})", str(found), re.ASCII)
    if match is None or int(match[1]) <= int(now):
        return ""
    return f"is {found!r}, and this release reads up to {known!r}; update hallujudge"


def parse_graph(text: str, *, layout: Layout = "auto", name: str) -> SynonymGraph:
    """Parse a graph from text.

    Args:
        text: The file's content. It is untrusted: nothing in it is executed, and its size is
            limited.
        layout: ``json`` for Hallujudge's layout and the plain ones (``{form: root}``,
            ``{root: [forms]}``, networkx's node-link). ``table`` for the published CHAIR layout:
            one category per line, entries separated by commas, the root first. ``auto`` chooses by
            the first character.
        name: The name of the text in error messages. It is not part of the graph, so that a renamed
            file has the same graph; one whose content has no name is called ``custom``.

    Returns:
        The graph. Only its layout is validated; see ``validate_graph``.

    Raises:
        GraphFormatError: The text is too large or not in that layout; the error names the place.
        GraphInvalidError: The links of a plain graph form a cycle.
    """
    if len(text) > MAX_BYTES:
        raise GraphFormatError(
            f"{len(text)} characters exceed the limit of {MAX_BYTES}; split the graph", source=name
        )
    if layout == "auto":
        layout = "json" if text.lstrip("\ufeff \t\r\n")[:1] in {"{", "["} else "table"
    if layout not in ("json", "table"):
        raise GraphFormatError(
            f"unknown layout {layout!r}; use 'json', 'table' or 'auto'", source=name
        )
    # Windows' editors begin a file with this mark, which would be part of the first word.
    text = text.removeprefix("\ufeff")
    return _parse_json(text, name) if layout == "json" else _parse_table(text, name)


# --- the table layout -----------------------------------------------------------------------------


def _parse_table(text: str, name: str) -> SynonymGraph:
    rows: list[tuple[str, ...]] = []
    edges: dict[str, str] = {}
    for number, line in enumerate(text.split("\n"), 1):
        raw = line.strip()
        if not raw:
            continue
        entries = [clean_word(entry) for entry in raw.split(",")]
        _check_row(entries, number, name)
        # The published script splits at ", ", so that an entry may keep another blank.
        rows.append(tuple(raw.split(", ")))
        # The last row of a repeated entry wins, as in the published script.
        edges.update(dict.fromkeys(filter(None, entries), entries[0]))
        if len(edges) > MAX_FORMS:
            raise GraphFormatError(
                f"more than {MAX_FORMS} forms; split the graph", source=name, place=f"line {number}"
            )
    if not rows:
        raise GraphFormatError("no rows; expected one category per line", source=name)
    return SynonymGraph(
        name=UNNAMED,
        version="table",
        roots=tuple(dict.fromkeys(edges.values())),
        edges=tuple((form, (root,)) for form, root in edges.items()),
        compounds=tuple([(form, None) for form in BLOCKED] + list(READS_AS.items())),
        qualifiers=(
            QualifierRule(qualifiers=YOUNG_OR_GROWN, heads=ANIMALS),
            QualifierRule(qualifiers=CARRYING, heads=VEHICLES),
        ),
        suppress=tuple(SuppressRule(form=f, beside=b) for f, b in SUPPRESSED),
        rows=tuple(rows),
    )


def _check_row(entries: list[str], number: int, name: str) -> None:
    place = f"line {number}"
    if not entries[0]:
        raise GraphFormatError(
            "the row begins with an empty entry; its first entry is the category", source=name,
            place=place,
        )  # fmt: skip
    for entry in entries:
        if not entry.isprintable():
            raise GraphFormatError(
                f"entry {entry[:40]!r} has unprintable characters; is this a text file?",
                source=name,
                place=place,
            )


# --- the JSON layout ------------------------------------------------------------------------------


def _parse_json(text: str, name: str) -> SynonymGraph:
    try:
        # Python's json also takes NaN, which no other program could read back.
        data = json.loads(text, parse_constant=_no_constant, object_pairs_hook=_object)
    except RecursionError as err:
        raise GraphFormatError("nested too deeply for a graph", source=name) from err
    except json.JSONDecodeError as err:
        place = f"line {err.lineno}, column {err.colno}"
        raise GraphFormatError(
            f"not JSON ({err.msg}); correct it there, or name the layout table (a .txt file)",
            source=name,
            place=place,
        ) from err
    except ValueError as err:
        raise GraphFormatError(f"cannot be read as JSON: {err}", source=name) from err
    return _JsonParser(name).graph(data)


def _no_constant(value: str) -> object:
    raise ValueError(f"{value} is not allowed in a graph; write a word")


def _object(pairs: list[tuple[str, object]]) -> dict[str, object]:
    """Return an object, and refuse repeated keys, of which the decoder would keep the last one."""
    values: dict[str, object] = {}
    for key, value in pairs:
        if key in values:
            raise ValueError(f"{key!r:.60} appears twice in one object; keep one or join them")
        values[key] = value
    return values


class _JsonParser:
    """Builds a graph from decoded JSON; its errors name the JSON path."""

    def __init__(self, source: str) -> None:
        self._source = source

    def graph(self, data: object) -> SynonymGraph:
        top = self._object(data, "$")
        # Checked first: keys that a newer release added would be reported as unknown.
        if problem := newer_format(top.get("format"), FORMAT):
            self._fail(problem, "$.format")
        # Without ``format``, the file has a layout that other tools write.
        if "format" not in top and is_released(top):
            return released_graph(top, name=self._source)  # type: ignore[arg-type]  # checked by is_released
        if "format" not in top and (plain := plain_graph(top, self._source)) is not None:
            return plain
        if "format" not in top and top and not set(top) & _TOP:
            self._refuse_mixture(top)
        unknown = sorted(set(top) - _TOP)
        if unknown:
            self._fail(f"unknown key {unknown[0]!r}; known: {', '.join(sorted(_TOP))}", "$")
        if top.get("format") != FORMAT:
            self._fail(f"is {top.get('format')!r}; expected {FORMAT!r}", "$.format")
        if "pairs" in top:
            return self._released(top)
        edges: dict[str, tuple[str, ...]] = {}
        roots = []
        for root, form in self._edges(top.get("categories")):
            if root == form:
                roots.append(root)
            known = edges.get(form, ())
            edges[form] = known if root in known else (*known, root)
        blocked = self._forms(top.get("blocked", []), "$.blocked")
        reads_as = self._object(top.get("reads_as", {}), "$.reads_as")
        pairs = [(clean_word(f), self._form(t, f"$.reads_as[{f!r}]")) for f, t in reads_as.items()]
        return SynonymGraph(
            name=self._string(top.get("name"), "$.name"),
            version=self._string(top.get("version"), "$.version"),
            # A root may be given twice, and its forms are joined.
            roots=tuple(dict.fromkeys(roots)),
            edges=tuple(edges.items()),
            ambiguous=frozenset(self._forms(top.get("ambiguous", []), "$.ambiguous")),
            compounds=(*((form, None) for form in sorted(blocked)), *sorted(pairs)),
            qualifiers=tuple(
                QualifierRule(
                    qualifiers=self._forms(rule.get("qualifiers"), f"{place}.qualifiers"),
                    heads=self._forms(rule.get("heads"), f"{place}.heads"),
                )
                for place, rule in self._objects(top.get("qualifiers", []), "$.qualifiers")
            ),
            suppress=tuple(
                SuppressRule(
                    form=self._form(rule.get("form"), f"{place}.form"),
                    beside=self._form(rule.get("beside"), f"{place}.beside"),
                )
                for place, rule in self._objects(top.get("suppress", []), "$.suppress")
            ),
            rows=tuple(self._rows(top.get("rows", []))),
        )

    def _released(self, top: dict[str, object]) -> SynonymGraph:
        """Return a released Mementos graph, as ``to_json`` writes it."""
        name = self._string(top.get("name"), "$.name")
        pairs: list[tuple[str, str, tuple[str, ...]]] = []
        for i, item in enumerate(self._list(top["pairs"], "$.pairs")):
            place = f"$.pairs[{i}]"
            entry = self._list(item, place)
            if len(entry) != 3 or len(pairs) > MAX_FORMS:
                self._fail(f"expected [word, second word, [roots]], at most {MAX_FORMS}", place)
            word, second = (self._string(part, place, bare=True) for part in entry[:2])
            roots = self._list(entry[2], place)
            pairs.append((word, second, tuple(self._string(r, place, bare=True) for r in roots)))
        version = self._string(top.get("version"), "$.version")
        return released_pairs(tuple(pairs), name=name, version=version)

    def _edges(self, value: object) -> Iterator[tuple[str, str]]:
        count = 0
        for place, category in self._objects(value, "$.categories"):
            root = self._form(category.get("root"), f"{place}.root")
            yield root, root
            for form in self._forms(category.get("forms", []), f"{place}.forms"):
                count += 1
                if count > MAX_FORMS:
                    self._fail(f"more than {MAX_FORMS} forms; split the graph", place)
                yield root, form

    def _rows(self, value: object) -> Iterator[tuple[str, ...]]:
        for i, row in enumerate(self._list(value, "$.rows")):
            cells = self._list(row, f"$.rows[{i}]")
            yield tuple(
                self._string(c, f"$.rows[{i}][{j}]", bare=True) for j, c in enumerate(cells)
            )

    def _forms(self, value: object, place: str) -> tuple[str, ...]:
        return tuple(self._form(f, f"{place}[{i}]") for i, f in enumerate(self._list(value, place)))

    def _form(self, value: object, place: str) -> str:
        return clean_word(self._string(value, place))

    def _string(self, value: object, place: str, *, bare: bool = False) -> str:
        if not isinstance(value, str):
            self._fail(f"is {_kind(value)}; expected text", place)
        if not bare and not value.strip():
            self._fail("is blank; write a word or leave it out", place)
        if not value.isprintable():
            self._fail(f"{value[:40]!r} has unprintable characters", place)
        return value

    def _refuse_mixture(self, top: Mapping[str, object]) -> NoReturn:
        first, *others = top
        odd = next((key for key in others if type(top[key]) is not type(top[first])), first)
        self._fail(
            f"is {_kind(top[odd])}, unlike other entries; give every form its root, every root a "
            "list of its forms, or write Hallujudge's layout",
            f"$[{odd!r:.60}]",
        )

    def _list(self, value: object, place: str) -> list[object]:
        if not isinstance(value, list):
            self._fail(f"is {_kind(value)}; expected a list", place)
        return value

    def _objects(self, value: object, place: str) -> Iterator[tuple[str, dict[str, object]]]:
        for i, item in enumerate(self._list(value, place)):
            yield f"{place}[{i}]", self._object(item, f"{place}[{i}]")

    def _object(self, value: object, place: str) -> dict[str, object]:
        if not isinstance(value, dict):
            self._fail(f"is {_kind(value)}; expected an object", place)
        return value

    def _fail(self, message: str, place: str) -> NoReturn:
        raise GraphFormatError(message, source=self._source, place=place)


def _kind(value: object) -> str:
    if value is None:
        return "missing"
    return f"{_KINDS.get(type(value), 'a value')} {json.dumps(value)[:40]}"


_KINDS = {str: "text", bool: "a truth value", int: "a number", float: "a number"} | {
    list: "a list",
    dict: "an object",
}
