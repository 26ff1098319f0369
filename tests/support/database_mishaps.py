"""What happens to a database file while a server uses it."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path


def copied(path: Path) -> Path:
    """Return a copy of a database in its state of now."""
    old = path.with_name("old.sqlite")
    set_back(old, path)
    return old


def deleted(path: Path, _old: Path) -> None:
    """Delete it."""
    path.unlink()


def replaced(path: Path, old: Path) -> None:
    """Move an older copy into its place."""
    old.replace(path)


def set_back(path: Path, old: Path) -> None:
    """Write an older copy into it."""
    with closing(sqlite3.connect(old)) as source, closing(sqlite3.connect(path)) as target:
        source.backup(target)


def log_deleted(path: Path, _old: Path) -> None:
    """Delete its write-ahead log."""
    path.with_name(f"{path.name}-wal").unlink()
