"""Convert the shipped JSON Schemas to Markdown tables."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

_MARK = re.compile(r"^<!-- schema: ([\w-]+) -->$", re.MULTILINE)
_SIMPLE = {"null": "null", "string": "text", "integer": "integer", "number": "number"}


def with_tables(markdown: str, schemas: Path) -> str:
    """Replace each ``<!-- schema: NAME -->`` with the tables of that schema."""
    return _MARK.sub(lambda match: _tables(schemas / f"{match[1]}.schema.json"), markdown)


def _tables(path: Path) -> str:
    schema = json.loads(path.read_text(encoding="utf-8"))
    parts = [_table(schema)]
    for name, definition in schema.get("$defs", {}).items():
        parts += [f"### `{name}` {{ #{path.stem.partition('.')[0]}-{name} }}", _body(definition)]
    return "\n\n".join(parts).replace("](#", f"](#{path.stem.partition('.')[0]}-")


def _body(schema: Mapping[str, Any]) -> str:
    return (
        f"{schema['description']}\n\n{_table(schema)}"
        if "properties" in schema
        else schema["description"]
    )


def _table(schema: Mapping[str, Any]) -> str:
    rows = [f"| {name} | {kind} | {meaning} |" for name, kind, meaning in _rows(schema)]
    return "\n".join(["| field | type | meaning |", "|---|---|---|", *rows])


def _rows(schema: Mapping[str, Any]) -> Iterator[tuple[str, str, str]]:
    required = schema.get("required", ())
    for name, field in schema["properties"].items():
        shown = f"`{name}`" if name in required else f"`{name}` (optional)"
        yield shown, _type(field), field["description"].replace("|", "\\|")
        for child in _inner(field):
            for inner, kind, meaning in _rows(child):
                yield f"{shown} … {inner}", kind, meaning


def _inner(field: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    """Yield an object that is a value of a mapping and has no name."""
    values = field.get("additionalProperties")
    if isinstance(values, Mapping) and "properties" in values:
        yield values


def _type(field: Mapping[str, Any]) -> str:
    if "$ref" in field:
        name = field["$ref"].rpartition("/")[2]
        return f"[{name}](#{name})"
    if "const" in field:
        return f"`{json.dumps(field['const'])}`"
    if "enum" in field:
        return ", ".join(f"`{json.dumps(value)}`" for value in field["enum"])
    if "anyOf" in field:
        return " or ".join(_type(choice) for choice in field["anyOf"])
    kinds = field["type"] if isinstance(field["type"], list) else [field["type"]]
    return " or ".join(_kind(kind, field) for kind in kinds)


def _kind(kind: str, field: Mapping[str, Any]) -> str:
    if kind == "array":
        return f"list of {_type(field['items'])}"
    if kind == "object":
        values = field.get("additionalProperties")
        return f"mapping to {_type(values)}" if isinstance(values, Mapping) else "object"
    return _SIMPLE.get(kind, kind)
