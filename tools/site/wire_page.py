"""Generate the wire reference from the comments of the ``.proto`` files.

Descriptors have no comments at run time, so this module parses lines: buf's COMMENTS rules
guarantee a comment above every element.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

INTRODUCTION = """# Wire

This page is generated from the comments of the `.proto` files. The service is
`hallujudge.judge.v1.JudgeService`, served over gRPC together with the standard health and
reflection services. Errors carry `google.rpc.ErrorInfo`, `BadRequest` and `RetryInfo` details; see
[Exit codes and errors](exit-codes-and-errors.md).

"""
_BLOCK = re.compile(r"^(service|message|enum|oneof) (\w+) \{$")
_FIELD = re.compile(
    r"^(?:(optional|repeated) )?(map<[^>]+>|[\w.]+) (\w+) = (\d+)(?: \[([^\]]*)\])?;$"
)
_VALUE = re.compile(r"^(\w+) = (\d+);$")
_RPC = re.compile(r"^rpc (\w+)\((.*?)\) returns \((.*?)\)")


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """One field, enum value or method."""

    name: str
    type: str
    number: str
    comment: str


@dataclass(slots=True, kw_only=True)
class Block:
    """A service, message or enum."""

    kind: str
    name: str
    comment: str
    rows: list[Row] = field(default_factory=list)


def wire_page(paths: Sequence[Path]) -> str:
    """Return the page: services first, then messages and enums of each file.

    Raises:
        ValueError: A line of a file can't be parsed.
    """
    files = [(path.name, list(_blocks(path))) for path in paths]
    known = {block.name for _, blocks in files for block in blocks}
    services = [b for _, blocks in files for b in blocks if b.kind == "service"]
    parts = [INTRODUCTION, *(_rendered(block, known) for block in services)]
    for name, blocks in files:
        parts.append(f"## `{name}`\n\n")
        parts += [_rendered(block, known) for block in blocks if block.kind != "service"]
    return "".join(parts)


def _blocks(path: Path) -> Iterator[Block]:
    """Yield the file's top-level blocks; fields of a oneof belong to their message."""
    comment: list[str] = []
    open_blocks: list[Block] = []
    for number, raw in enumerate(path.read_text(encoding="utf-8").splitlines(), 1):
        line = raw.strip()
        if line.startswith("//"):
            comment.append(line.removeprefix("//").strip())
            continue
        text, comment = " ".join(comment), []
        if match := _BLOCK.match(line):
            kind, name = match.groups()
            is_nested = kind == "oneof"
            open_blocks.append(
                open_blocks[-1] if is_nested else Block(kind=kind, name=name, comment=text)
            )
        elif line == "}":
            block = open_blocks.pop()
            if not open_blocks:
                yield block
        elif open_blocks and line:
            open_blocks[-1].rows.append(_row(line, text, f"{path.name}:{number}"))


def _row(line: str, comment: str, place: str) -> Row:
    if match := _RPC.match(line):
        name, request, response = match.groups()
        return Row(name=name, type=f"{request} → {response}", number="", comment=comment)
    if match := _FIELD.match(line):
        label, kind, name, number, _ = match.groups()
        return Row(name=name, type=f"{label or ''} {kind}".strip(), number=number, comment=comment)
    if match := _VALUE.match(line):
        return Row(name=match[1], type="", number=match[2], comment=comment)
    raise ValueError(f"{place}: not understood: {line}")


def _rendered(block: Block, known: set[str]) -> str:
    head = {"service": "method", "enum": "value"}.get(block.kind, "field")
    lines = [f"### {block.name} {{ #{block.name} }}", "", block.comment, ""]
    if block.kind == "enum":
        lines += [f"| {head} | number | meaning |", "|---|---|---|"]
        lines += [f"| `{row.name}` | {row.number} | {_cell(row.comment)} |" for row in block.rows]
    elif block.rows:
        last = " | number" if block.kind == "message" else ""
        lines += [f"| {head} | type{last} | meaning |", "|---|---|" + "---|" * (2 if last else 1)]
        for row in block.rows:
            number = f" | {row.number}" if last else ""
            lines.append(
                f"| `{row.name}` | {_linked(row.type, known)}{number} | {_cell(row.comment)} |"
            )
    return "\n".join([*lines, "", ""])


def _linked(text: str, known: set[str]) -> str:
    """Return a type with links to the messages that it names."""
    escaped = text.replace("<", "&lt;").replace(">", "&gt;")
    return re.sub(r"\w+", lambda m: f"[{m[0]}](#{m[0]})" if m[0] in known else m[0], escaped)


def _cell(text: str) -> str:
    return re.sub(r"([|<>*_])", r"\\\1", text)
