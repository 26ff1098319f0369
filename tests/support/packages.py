"""Packages that are installed for a test."""

from __future__ import annotations

from pathlib import Path

import pytest


def install(
    folder: Path, monkeypatch: pytest.MonkeyPatch, group: str, *entries: str, name: str = "added"
) -> None:
    """Install the modules of a folder as a package that registers entry points.

    Args:
        folder: The folder.
        monkeypatch: Puts the folder on the path.
        group: The group of the entry points.
        entries: The entry points, such as ``shout = shouting``.
        name: The name of the package.
    """
    info = folder / f"{name}-1.0.dist-info"
    info.mkdir()
    (info / "entry_points.txt").write_text("\n".join([f"[{group}]", *entries, ""]))
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n")
    monkeypatch.syspath_prepend(folder)
