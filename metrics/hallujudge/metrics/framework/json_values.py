"""JSON values, and the files of them that Hallujudge writes: names and versions in one table.

A file in JSON names its schema, such as ``hallujudge.report/1``. The version is raised when an
older release could misread the file; a new field is no reason. A release reads all older versions.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import Final

FILE_SCHEMAS: Final[Mapping[str, int]] = MappingProxyType(
    {
        "analysis": 1,
        "asked": 1,
        "audit": 1,
        "calibration": 1,
        "cascade": 1,
        "comparison": 1,
        "degraded": 1,
        "gate": 1,
        "item": 1,
        "judge-card": 1,
        "judge-panel": 1,
        "label": 1,
        "label-plan": 1,
        "label-scores": 1,
        "leaderboard": 1,
        "leaderboards": 1,
        "overview": 1,
        "paper-table": 1,
        "parsers": 1,
        "report": 1,
        "totals-audit": 1,
    }
)
"""Kind of file -> the version that this release writes."""

# Nine digits at most: of thousands, which a file may hold, int() makes an error.
_NAME = re.compile(r"hallujudge\.(?P<kind>[a-z-]+)/(?P<version>[1-9]\d{0,8})", re.ASCII)


def schema_of(kind: str) -> str:
    """Return the schema that a file of a kind names."""
    return f"hallujudge.{kind}/{FILE_SCHEMAS[kind]}"


def file_text(kind: str, content: Mapping[str, object]) -> str:
    """Return the text of a file of a kind, which is deterministic; ends with a line feed."""
    values = {"schema": schema_of(kind), **content}
    # NaN is not JSON, and other programs could not read the file.
    return json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False) + "\n"


def schema_problem(found: object, kind: str) -> str:
    """Return why a file that names a schema can't be read by this release; empty if it can.

    Args:
        found: The schema that the file names; None if it names none, as files that people write.
        kind: The kind that the file should have.
    """
    if found is None:
        return ""
    match = _NAME.fullmatch(found) if isinstance(found, str) else None
    if match is None or match["kind"] != kind:
        return f"its schema is {found!r:.60}, not {schema_of(kind)}"
    return newer_schema(found)


def newer_schema(found: object) -> str:
    """Return why a file of any kind is from a newer release; empty if it is not.

    Args:
        found: The schema that the file names, or anything else under that key.
    """
    match = _NAME.fullmatch(found) if isinstance(found, str) else None
    if match is None or int(match["version"]) <= FILE_SCHEMAS.get(match["kind"], 0):
        return ""
    kind = match["kind"]
    known = f"reads up to {schema_of(kind)}" if kind in FILE_SCHEMAS else "does not know it"
    return f"its schema is {found}, and this release {known}; update hallujudge"


def well_formed(text: str) -> str:
    """Return the text with lone surrogates replaced; JSON can hold them, UTF-8 can't."""
    if text.isascii():
        return text
    # Two halves that belong together make their character in UTF-16; only lone ones are replaced.
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")


def well_formed_value(value: object) -> object:
    """Return a JSON value with lone surrogates replaced, but for what its objects hold."""
    if isinstance(value, str):
        return well_formed(value)
    return list(map(well_formed_value, value)) if isinstance(value, list) else value


def json_kind(value: object) -> str:
    """Return what a value is called in a JSON file, with its article; for messages."""
    if value is None:
        return "null"
    if isinstance(value, Mapping):
        return "an object"
    # By the exact type, since True is an int too.
    names = {list: "a list", tuple: "a list", str: "a text", bool: "a truth value"}
    return names.get(type(value), "a number" if isinstance(value, (int, float)) else "no JSON")
