"""Common parts of all metrics: items, results, tallies, intervals, signatures, reports."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module


def names_on_use(
    package: str, names: Mapping[str, str]
) -> tuple[Callable[[str], object], Callable[[], list[str]]]:
    """Return ``__getattr__`` and ``__dir__`` of a package that imports its names on first use.

    Args:
        package: The package.
        names: Module -> the public names that it defines. A dot begins a module of the package.
            A module that is public itself is among its own names, or its only one.
    """
    homes = {name: home for home, defined in names.items() for name in defined.split()}

    def imported(name: str) -> object:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        home = homes[name]
        module = import_module(home, package)
        # A function of another package's module may have the module's name.
        is_module = home == f".{name}" or (names[home] == name and home.endswith(f".{name}"))
        return module if is_module else getattr(module, name)

    return imported, lambda: list(homes)
