"""Runs by their names: the keys with values that names may have, and labels and notes of runs."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeAlias

from ..archives.json_files import named
from ..errors import InvalidInputError
from ..runs.run_report import RunReport

MODEL, METRIC = "model", "metric"
RunSource: TypeAlias = "str | Path | RunReport"
"""The folder of a run, or a report that holds its items."""


@dataclass(frozen=True, slots=True, kw_only=True)
class RunLabel:
    """A run that is compared."""

    name: str
    """Name of the run."""
    source: str
    """Its folder; empty for a report in memory."""
    signature: str
    items: int
    """How many items it has."""
    scored: int
    """How many of them are scored."""
    notes: tuple[str, ...] = ()
    """What limits the use of its scores, as its own report says."""


def run_names(
    sources: Sequence[RunSource],
    given: Sequence[str],
    model_names: Mapping[str, str] | None = None,
    *,
    distinct: bool = True,
) -> list[str]:
    """Return a name for each run: as given, or of its folder.

    Args:
        sources: The runs.
        given: Their names; empty for those of their folders.
        model_names: Name -> the name that a run gets in place of it.
        distinct: Whether two runs may not have one name.

    Raises:
        InvalidInputError: The names do not fit the runs.
    """
    if given and len(given) != len(sources):
        raise InvalidInputError(
            f"{len(given)} name{'s' * (len(given) != 1)} for {len(sources)} runs; give one name "
            "for each run"
        )
    names = list(given) or _folder_names(sources)
    if model_names:
        names = list(map(renamed_models(names, model_names).__getitem__, names))
    # By the real folder: a link to a run is the same run.
    folders = [_real(source) for source in sources if not isinstance(source, RunReport)]
    if twice := [folder for folder in folders if folders.count(folder) > 1]:
        raise InvalidInputError(f"{twice[0]} is given twice; give different runs")
    if distinct:
        check_distinct(names)
    return names


def renamed_models(models: Iterable[str], names: Mapping[str, str]) -> dict[str, str]:
    """Return model -> its name in tables.

    Args:
        models: The models.
        names: Name of a model -> another name.

    Raises:
        InvalidInputError: A model that is renamed is not there.
    """
    known = list(dict.fromkeys(models))
    for name in names:
        if name not in known:
            raise InvalidInputError(
                f"no run is of the model {name!r:.80}, which is renamed; models are "
                f"{', '.join(known)}"
            )
    return {model: names.get(model, model) for model in known}


def check_distinct(names: Sequence[str]) -> None:
    """Check that runs have different names.

    Raises:
        InvalidInputError: Two have one name.
    """
    if repeated := [name for name in names if names.count(name) > 1]:
        raise InvalidInputError(
            f"two runs have the name {repeated[0]!r:.80}; give each run once, under its own name"
        )


def run_keys(sources: Sequence[RunSource], given: Sequence[str]) -> list[dict[str, str]]:
    """Return the keys of each run's name with their values.

    Args:
        sources: The runs.
        given: Their names; empty for those of their folders.

    Raises:
        InvalidInputError: The names do not fit the runs, or their keys differ.
    """
    # Runs of several metrics may be of one model, so that names may be equal.
    keys = [keys_of(name) for name in run_names(sources, given, distinct=False)]
    for each in keys[1:]:
        # A table needs a value of each key for every run.
        if lacking := sorted(each.keys() ^ keys[0].keys()):
            raise InvalidInputError(
                f"the runs {run_name(keys[0])!r:.80} and {run_name(each)!r:.80} do not both have "
                f"the key {lacking[0]!r:.40}; give each run the same keys"
            )
    return keys


def keys_of(name: str) -> dict[str, str]:
    """Return the keys of a run's name: of ``llava``, or of ``model=llava,split=random``.

    Raises:
        InvalidInputError: A key has no value.
    """
    if "=" not in name:
        return {MODEL: name}
    pairs = [part.partition("=") for part in name.split(",")]
    if not all(key.strip() and value.strip() for key, _, value in pairs):
        raise InvalidInputError(
            f"the name {name!r:.80}: give a name, or keys with values, such as "
            "model=llava,split=random"
        )
    # Every run has a model as its first key, named or not: rows of tables are models by default.
    return {MODEL: "", **{key.strip(): value.strip() for key, _, value in pairs}}


def run_name(keys: Mapping[str, str]) -> str:
    """Return the name of a run: the values of its keys, without that of its metric."""
    values = [value for key, value in keys.items() if value and key != METRIC]
    # A folder may have the name of the metric; next to other values, it says nothing more.
    return "/".join([value for value in values if value != keys.get(METRIC)] or values)


def _real(folder: str | Path) -> Path:
    # Path.resolve raises a RuntimeError for links that go around in a circle.
    return Path(os.path.realpath(folder))


def _folder_names(sources: Sequence[RunSource]) -> list[str]:
    """Return the folders' names, with as many parents as make them distinct."""
    parts = [
        (f"run {place}",) if isinstance(source, RunReport) else _real(source).parts
        for place, source in enumerate(sources, start=1)
    ]
    if len(set(parts)) < len(parts):
        # One folder is given twice. The caller refuses it and shows the path as it was given.
        return list(map(str, sources))
    for depth in range(1, max(map(len, parts)) + 1):
        names = ["/".join(part[-depth:]) for part in parts]
        if len(set(names)) == len(names):
            break
    return names


def notes_of_runs(runs: Iterable[tuple[str, Iterable[str]]]) -> Iterator[str]:
    """Yield the notes of runs after their names; runs with equal notes share a line.

    Args:
        runs: The run's name and its notes.
    """
    names: dict[str, dict[str, None]] = {}
    for name, notes in runs:
        for note in notes:
            # A dict in place of a set: names keep the order of the runs.
            names.setdefault(note, {})[name] = None
    for note, of in names.items():
        yield f"{named(list(of))}: {note}"


def notes_of_row(runs: Iterable[RunLabel]) -> str:
    """Return the notes of the runs behind a row of a table, as one text."""
    return " ".join(notes_of_runs((run.name, run.notes) for run in runs))


def sources_of(runs: tuple[RunLabel, ...]) -> dict[str, str]:
    """Return the name and signature of each run."""
    return {run.name: run.signature for run in runs}
