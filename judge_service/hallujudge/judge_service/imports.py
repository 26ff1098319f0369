"""Imports that take seconds, made beside the event loop."""

from __future__ import annotations

import asyncio
from importlib import import_module

__all__ = ["import_in_thread"]

_imported: set[str] = set()


async def import_in_thread(*names: str) -> None:
    """Import modules in a thread, so that the event loop goes on meanwhile.

    An ``import`` of the same modules afterwards finds them loaded.

    Args:
        names: Absolute names of the modules.

    Raises:
        ImportError: A module is not installed.
    """
    if not _imported.issuperset(names):
        await asyncio.to_thread(_import, names)


def _import(names: tuple[str, ...]) -> None:
    for name in names:
        import_module(name)
    # Noted at the end: a module that another thread still imports is in sys.modules already.
    _imported.update(names)
