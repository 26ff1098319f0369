"""Errors of this package.

::

    GraphError (ValueError)
    ├── GraphFormatError     the text is not a graph: unreadable, too large, wrong layout
    ├── GraphInvalidError    the text is a graph, but one that contradicts itself
    └── GraphNotFoundError   no graph of that name, and no file at that path
"""

from __future__ import annotations

from collections.abc import Iterable


class GraphError(ValueError):
    """The root of this package's errors."""


class GraphFormatError(GraphError):
    """A graph file cannot be read as one.

    Attributes:
        source: The file or name that was read.
        place: Where in it: a line ("line 3") or a JSON path ("$.categories.cat"); may be empty.
    """

    def __init__(self, message: str, *, source: str, place: str = "") -> None:
        where = f"{source}, {place}" if place else source
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
        super().__init__(
            f"{name}: {len(self.problems)} problem(s): {shown}{tail}. "
            "Mend the file; `hallujudge graph validate` has the whole list."
        )


class GraphNotFoundError(GraphError):
    """Neither a shipped graph nor a file goes by this name.

    Attributes:
        value: What was asked for.
        shipped: The names that would have worked.
    """

    def __init__(self, value: str, *, shipped: Iterable[str]) -> None:
        self.value = value
        self.shipped = tuple(shipped)
        names = ", ".join(self.shipped) or "none"
        super().__init__(
            f"no synonym graph {value!r}. Shipped graphs: {names}. "
            "Give one of these names, or the path of a graph file."
        )
