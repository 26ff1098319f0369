"""Example archives: a small one for each metric, in the layout that the metric's page describes."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from ..errors import NotFoundError, OutputError

__all__ = ["ExampleArchive", "example_archives", "write_example"]


@dataclass(frozen=True, slots=True, kw_only=True)
class ExampleArchive:
    """A small archive that we made up."""

    metric: str
    """The metric that scores it."""
    command: str
    """The command that scores it, to be run where the files are."""
    files: Mapping[str, str]
    """Path inside its folder -> text."""


@cache
def example_archives() -> Mapping[str, ExampleArchive]:
    """Return metric -> its example, sorted by metric."""
    text = files(__package__).joinpath("archive_examples.toml").read_text(encoding="utf-8")
    tables: Mapping[str, Mapping[str, Any]] = tomllib.loads(text)
    return {name: ExampleArchive(metric=name, **tables[name]) for name in sorted(tables)}


def write_example(metric: str, folder: str | Path) -> ExampleArchive:
    """Write the files of a metric's example to a folder.

    Args:
        metric: The metric.
        folder: Where the files go; it is made if it does not exist.

    Returns:
        The example.

    Raises:
        NotFoundError: There is no example for this metric.
        OutputError: A file exists with other content, or can't be written.
    """
    if (found := example_archives().get(metric)) is None:
        known = ", ".join(example_archives())
        raise NotFoundError(f"no example for metric {metric!r}; there is one for {known}")
    paths = {Path(folder) / name: text for name, text in found.files.items()}
    for path, text in paths.items():
        # A file of the user's own is never replaced.
        if path.exists() and not (path.is_file() and path.read_bytes() == text.encode()):
            raise OutputError(f"{path} exists already, with other content; give another folder")
    for path, text in paths.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_bytes(text.encode())
        except OSError as err:
            raise OutputError.of(path, err, "give another folder") from err
    return found
