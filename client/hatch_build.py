"""Builds the package ``hallujudge-client`` from a part of the source roots beside this folder."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface

ROOTS = ("protos", "sdk", "metrics", "synonym_graphs", "judge_service")
"""The source roots, in the checkout and in this package's sdist."""


def client_files(tree: Path, files: Iterable[str], without: Iterable[str]) -> list[Path]:
    """Return the files of the package, relative to the tree that holds the source roots.

    Args:
        tree: The checkout, or an unpacked sdist.
        files: Patterns of the files.
        without: Patterns of files that are left out.
    """
    left_out = {path for pattern in without for path in tree.glob(_of_files(pattern))}
    found = {path for pattern in files for path in tree.glob(_of_files(pattern))} - left_out
    plain = (path for path in found if path.is_file() and path.suffix not in (".pyc", ".pyo"))
    return sorted(path.relative_to(tree) for path in plain)


def _of_files(pattern: str) -> str:
    """Return a pattern whose ``**`` at the end matches files too, as in Python 3.13."""
    return f"{pattern}/*" if pattern.endswith("**") and sys.version_info < (3, 13) else pattern


class ClientFiles(BuildHookInterface[Any]):
    """Adds the package's files, wherever the source roots are."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Add the files to a wheel or an sdist; an editable install has the source roots."""
        if version == "editable":
            return
        here = Path(self.root)
        tree = here if all((here / root).is_dir() for root in ROOTS) else here.parent
        for path in client_files(tree, self.config["files"], self.config["without"]):
            # A wheel has what the source roots hold.
            target = path if self.target_name == "sdist" else Path(*path.parts[1:])
            build_data["force_include"][str(tree / path)] = target.as_posix()
