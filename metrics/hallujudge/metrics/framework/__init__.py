"""Common parts of all metrics: items, results, tallies, intervals, signatures, reports."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import takewhile
from typing import Any


def names_on_use(name: str) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a module that imports its names on first use.

    The names are those that the module imports for type checkers, with ``if TYPE_CHECKING:``. They
    are read from its source: type checkers need them there, and a table of them would repeat them.

    Args:
        name: The module's name.
    """
    module = sys.modules[name]
    loader: Any = module.__loader__
    source = loader.get_data(module.__file__).decode()
    homes = dict(sorted(_imports_for_types(source)))

    def imported(wanted: str) -> object:
        if wanted not in homes:
            raise AttributeError(f"module {name!r} has no attribute {wanted!r}")
        home = homes[wanted]
        # As an import statement does: a name that the home does not define is a module in it.
        if home != "." and hasattr(found := import_module(home, module.__package__), wanted):
            return getattr(found, wanted)
        return import_module(f"{home.rstrip('.')}.{wanted}", module.__package__)

    return imported, lambda: list(homes)


def _imports_for_types(source: str) -> Iterator[tuple[str, str]]:
    """Yield each name that a module imports for type checkers, and the module that defines it."""
    lines = source.partition("\nif TYPE_CHECKING:\n")[2].splitlines()
    block = " ".join(takewhile(lambda line: not line or line.startswith(" "), lines))
    for statement in block.split("    from ")[1:]:
        home, _, names = statement.partition(" import ")
        for each in names.strip(" (),").split(","):
            yield each.split()[-1], home
