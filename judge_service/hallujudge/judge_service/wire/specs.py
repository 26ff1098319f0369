"""Where specs have another shape than their messages."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ..engine.spec import GraphLayout, GraphSource, InlineGraph, ShippedGraph
from .fields import Codec
from .places import MalformedError

__all__ = ["TYPES"]

_LAYOUTS: Mapping[str, GraphLayout] = {
    "": "auto",
    "auto": "auto",
    "json": "json",
    "table": "table",
}


def _write_graph(source: GraphSource, message: Any) -> None:
    if isinstance(source, ShippedGraph):
        message.shipped = source.name
    else:
        inline = message.inline
        inline.name, inline.text, inline.layout = source.name, source.text, source.layout


def _read_graph(message: Any) -> GraphSource:
    kind = message.WhichOneof("source")
    if kind is None:
        raise MalformedError("needs a source; set 'shipped' or 'inline'")
    if kind == "shipped":
        return ShippedGraph(name=message.shipped)
    inline = message.inline
    if inline.layout not in _LAYOUTS:
        raise MalformedError(f"{inline.layout!r} is not one of json, table, auto", "inline.layout")
    return InlineGraph(name=inline.name, text=inline.text, layout=_LAYOUTS[inline.layout])


TYPES: Mapping[tuple[Any, str], Codec] = {
    (GraphSource, "GraphSource"): Codec(_write_graph, _read_graph)
}
"""The name of a shipped graph is a string, not a message."""
