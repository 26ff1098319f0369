"""Example files: a small archive of each metric, and a package with a benchmark of one's own."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import pairwise
from keyword import iskeyword
from pathlib import Path
from shlex import split

from hallujudge.metrics.answers.closed_questions import ClosedQuestions
from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.families import benchmark_name_fault, benchmark_named
from hallujudge.metrics.framework.papers import paper_examples

from ..errors import InvalidInputError, NotFoundError, OutputError
from .inputs import declared_inputs

_NAME, _MODULE, _TITLE = "chart-pairs", "chart_pairs", "Chart pairs"
# Path in the package -> our file.
_PACKAGE = {
    "pyproject.toml": "pyproject.toml.txt",
    "README.md": "README.md.txt",
    f"{_MODULE}/__init__.py": "",
    f"{_MODULE}/benchmark.py": "benchmark.py.txt",
    f"{_MODULE}/judge.txt": "judge.txt",
    f"{_MODULE}/{_MODULE}.toml": "paper.toml",
    "examples/answers.jsonl": "answers.jsonl",
    "tests/test_benchmark.py": "test_benchmark.py.txt",
}

REFERENCES = "references"
"""Role of a file of references."""


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
    found = paper_examples()
    return {name: ExampleArchive(metric=name, **found[name]) for name in sorted(found)}


def usual_files(metric: str) -> Mapping[str, tuple[str, ...]]:
    """Return the usual names of the files that a metric's responses are scored with.

    Returns:
        The metric's options, and ``references`` -> names.
    """
    return _usual_files(metric, benchmark_named(metric))


@cache
def _usual_files(metric: str, declared: ClosedQuestions | None) -> Mapping[str, tuple[str, ...]]:
    found: dict[str, list[str]] = {}
    if declared is not None:
        found[REFERENCES] = [*filter(None, (declared.question_files,))]
    if (example := example_archives().get(metric)) is not None:
        flags = {option.flag: option.name for option in declared_inputs(metric).own}
        words = split(example.command)
        for flag, value in pairwise(words):
            if value in example.files and flag != "--responses":
                found.setdefault(flags.get(flag, REFERENCES), []).append(value)
    elif declared is not None:
        found |= {table.name: [f"{table.name}.json"] for table in declared.tables}
    return {name: tuple(names) for name, names in found.items()}


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
        known = choose_from(metric, example_archives())
        raise NotFoundError(f"there is no example for metric {metric!r}; {known}")
    _write_new(folder, found.files)
    return found


def write_benchmark(name: str, folder: str | Path) -> tuple[str, ...]:
    """Write a package with a benchmark of one's own, which pip can install: a working example.

    Args:
        name: The benchmark's name, such as ``chart-pairs``.
        folder: Where the files go; it is made if it does not exist.

    Returns:
        Path of each file inside its folder.

    Raises:
        InvalidInputError: The name can't be that of a benchmark, or of its package.
        OutputError: A file exists with other content, or can't be written.
    """
    module = name.replace("-", "_")
    fault = benchmark_name_fault(name)
    if not fault and (iskeyword(module) or module in (*sys.stdlib_module_names, "hallujudge")):
        fault = f"{name!r} is a word of Python's own, or one of its modules; give another name"
    if fault:
        raise InvalidInputError(fault)
    names = {_NAME: name, _MODULE: module, _TITLE: name.replace("-", " ").capitalize()}
    ours = files(__package__).joinpath("new_benchmark")
    made = {}
    for path, source in _PACKAGE.items():
        text = ours.joinpath(source).read_text(encoding="utf-8") if source else ""
        for old, new in names.items():
            path, text = path.replace(old, new), text.replace(old, new)
        made[path] = text
    _write_new(folder, made)
    return tuple(made)


def _write_new(folder: str | Path, texts: Mapping[str, str]) -> None:
    """Write files, of which none may exist with other content."""
    paths = {Path(folder) / name: text for name, text in texts.items()}
    # All are looked at first, so that no folder is left half written.
    for path, text in paths.items():
        # A file of the user's own is never replaced.
        if path.exists() and not (path.is_file() and path.read_bytes() == text.encode()):
            raise OutputError(f"{path} exists already, with other content; give another folder")
    for path, text in paths.items():
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            # As bytes, since Windows would otherwise change the line ends.
            path.write_bytes(text.encode())
        except OSError as err:
            raise OutputError.of(path, err, "give another folder") from err
