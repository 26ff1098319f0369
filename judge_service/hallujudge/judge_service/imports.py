"""Imports of slow modules outside the event loop."""

from __future__ import annotations

import asyncio
from importlib import import_module

__all__ = ["import_in_thread"]

_imported: set[str] = set()


async def import_in_thread(*names: str) -> None:
    """Import modules in a thread, so that the event loop keeps running.

    A later ``import`` statement finds the modules loaded.

    Args:
        names: The absolute names of the modules.

    Raises:
        ImportError: A module is not installed.
    """
    if not _imported.issuperset(names):
        await asyncio.to_thread(_import, names)


def _import(names: tuple[str, ...]) -> None:
    for name in names:
        import_module(name)
    # Recorded last: sys.modules already has modules that another thread is still importing.
    _imported.update(names)
