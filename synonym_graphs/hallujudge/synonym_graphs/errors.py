"""Errors of the synonym graph package.

::

    GraphError (ValueError)
    ├── GraphFormatError     the file is not a graph: unreadable, too large, wrong layout
    ├── GraphInvalidError    the file is a graph, but contradicts itself
    └── GraphNotFoundError   no graph has this name, and no file has this path
"""

from __future__ import annotations

from collections.abc import Iterable


class GraphError(ValueError):
    """Base class of this package's errors."""


class GraphFormatError(GraphError):
    """A file cannot be read as a synonym graph.

    Attributes:
        source: The file or name that was read.
        place: A line ("line 3") or a JSON path ("$.categories.cat"); may be empty.
    """

    def __init__(self, message: str, *, source: str, place: str = "") -> None:
        # "$" is the whole file.
        where = f"{source}, {place}" if place not in ("", "$") else source
        super().__init__(f"{where}: {message}")
        self.source = source
        self.place = place


class GraphInvalidError(GraphError):
    """A graph was read, but breaks the rules that every graph must keep.

    Attributes:
        problems: Every problem that was found, not only the first.
    """

    def __init__(self, problems: Iterable[str], *, name: str = "graph") -> None:
        self.problems = tuple(problems)
        shown = "; ".join(self.problems[:10])
        more = len(self.problems) - 10
        tail = f"; and {more} more" if more > 0 else ""
        count = len(self.problems)
        super().__init__(
            f"{name}: {count} problem{'' if count == 1 else 's'}: {shown}{tail}. "
            "Correct the graph; hallujudge graph validate prints the whole list"
        )


class GraphNotFoundError(GraphError):
    """No shipped graph and no file has this name.

    Attributes:
        value: The name or path that was given.
        shipped: The names of the shipped graphs.
    """

    def __init__(self, value: str, *, shipped: Iterable[str]) -> None:
        self.value = value
        self.shipped = tuple(shipped)
        names = ", ".join(self.shipped) or "none"
        super().__init__(
            f"no synonym graph {value!r:.300}. Shipped graphs: {names}. "
            "Give one of these names, or the path of a graph file."
        )
