"""The runs that a tree of archives holds: which file, which metric, which model."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from shlex import quote

from ..archives.archive_files import aborted_reason
from ..archives.found_files import FoundFile, found_files, is_url
from ..archives.inputs import declared_inputs
from ..archives.inspection import ArchiveSummary, inspect_file
from ..archives.readers import folder_files
from ..errors import ArchiveError


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """An archive that was not scored."""

    archive: str
    """The archive."""
    reason: str
    """Why it was not scored, and what to do."""
    command: str = ""
    """Command that scores it alone, if there is one."""


# Names of models come from logs and become folders: slashes and other marks are replaced.
_UNSAFE = re.compile(r"[^\w.+-]+")
# What tells files of one run apart.
_WHAT_IT_HOLDS = re.compile(r"(answer|response|prediction|review)s?", re.IGNORECASE)
# File systems allow 255 bytes for a name, and a character may take several of them.
_MAX_NAME_CHARS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """A run: one metric over one archive."""

    model: str
    """Name of the model."""
    metric: str
    """The metric."""
    name: str
    """Name of the run among the model's: the metric, and the task or file if there are several."""
    archive: Path
    """The file, or a folder that the metric's own reader reads; of a URL, the copy."""
    source: str
    """The same for messages: a path or a URL."""
    layout: str
    """Name of the archive's layout; empty for plain records."""
    command: str
    """Command that scores it alone."""
    variant: str = ""
    """The metric's variant; empty for the default."""
    allow_missing: bool = False
    """Whether questions without an answer are unscored instead of an error."""
    tables: Mapping[str, Path] = field(default_factory=dict)
    """Options of the metric's archives -> files that belong to this one by their names."""

    @property
    def folder(self) -> Path:
        """Folder of the run below the output folder."""
        return Path(_safe(self.model), _safe(self.name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The runs of a tree, and what is not scored."""

    runs: tuple[PlannedRun, ...]
    """The runs, by model and name."""
    left_out: tuple[LeftOut, ...]
    """Files with responses that no run reads, and why."""
    beside: tuple[LeftOut, ...]
    """Files without responses of their own, and what they are."""


def plan_of(folder: str | Path, out: Path, references: Mapping[str, object]) -> Plan:
    """Return the runs that a folder holds.

    Args:
        folder: The folder, or its URL.
        out: Folder of the results, whose files are left out if it is in the same place.
        references: Metric -> its references, where they are known; their files are no archives.

    Raises:
        ArchiveError: It is not a folder, can't be read or has no files.
    """
    known = frozenset(references)
    own = Path(os.path.realpath(out))
    listed = ((each if isinstance(each, list) else [each]) for each in references.values())
    paths_given = (each for part in listed for each in part if isinstance(each, (str, Path)))
    given = {Path(each).resolve() for each in paths_given}
    files = [
        file
        for file in _files(folder)
        if own not in file.path.resolve().parents and file.path.resolve() not in given
    ]
    root = next((file.root for file in files if file.root is not None), Path(folder))
    paths = {file.name: file.path for file in files}
    whole, rest = _whole_folders(files, root)
    summaries = [inspect_file(file) for file in rest]
    kept, others = _with_responses(summaries)
    beside = tuple(LeftOut(archive=other.path, reason=_kind(other)) for other in others)
    runs = list(whole)
    aborted = _run_again(kept)
    left_out = [
        LeftOut(archive=s.path, reason=aborted_reason(s.path, s.status), command=s.command)
        for s in aborted
    ]
    for summary in (s for s in kept if s not in aborted):
        path = paths[summary.path]
        tables = {s.table: paths[s.path] for s in summaries if _belongs(s, paths, path)}
        planned = list(_runs_of(summary, path, known, root, tables))
        runs += planned
        if not planned:
            left_out.append(_reason(summary))
    if not runs and not left_out:
        left_out = [_reason(s) for s in summaries if s.role == "companion" and s.next_step]
    return Plan(runs=tuple(_named(runs)), left_out=tuple(left_out), beside=beside)


def _files(folder: str | Path) -> list[FoundFile]:
    """Return the files of a folder or its URL."""
    if is_url(folder):
        files = found_files(folder)
        if files[0].root is None:
            raise ArchiveError(
                f"{files[0].name}: not a folder; the URL of a folder ends with a slash"
            )
        return files
    if not Path(folder).is_dir():
        raise ArchiveError(f"{folder}: not a folder; give the folder that holds the archives")
    return found_files(folder)


def _whole_folders(
    files: Sequence[FoundFile], root: Path
) -> tuple[list[PlannedRun], list[FoundFile]]:
    """Return runs over folders in the layout of a released script, and the other files."""
    runs: list[PlannedRun] = []
    taken: set[Path] = set()
    sources: dict[Path, str] = {}
    for file in files:
        # Some layouts have folders in folders: the outermost one that a reader reads counts.
        folder, source = file.path.parent, file.name.rpartition("/")[0]
        while folder not in sources and (folder == root or root in folder.parents):
            sources[folder] = source
            folder, source = folder.parent, source.rpartition("/")[0]
    for parent, source in sorted(sources.items()):
        metric, read = folder_files(parent)
        if metric and not taken.issuperset(read):
            taken.update(read)
            command = f"hallujudge score {metric} --responses {source} --out results"
            runs.append(
                PlannedRun(
                    model=_model("", parent, root),
                    metric=metric,
                    name=metric,
                    archive=parent,
                    source=source,
                    layout="a folder of the released script",
                    command=command,
                )
            )
    return runs, [file for file in files if file.path not in taken]


def _with_responses(
    summaries: Sequence[ArchiveSummary],
) -> tuple[list[ArchiveSummary], list[ArchiveSummary]]:
    """Return the files that hold responses, without copies of others, and those that do not."""
    own = {
        (Path(s.path).parent, metric)
        for s in summaries
        if s.role == "responses"
        for metric in s.metrics
    }
    archives = [Path(s.path) for s in summaries if s.role == "responses" and s.metrics]
    kept = [
        s
        for s in summaries
        if (s.problem and not _is_spare(Path(s.path), archives))
        or (s.role == "responses" and not _is_settings(s, archives))
        or (s.role == "companion" and s.metrics and (Path(s.path).parent, s.metrics[0]) not in own)
    ]
    paths = {summary.path for summary in kept}
    return kept, [summary for summary in summaries if summary.path not in paths]


def _run_again(summaries: Sequence[ArchiveSummary]) -> list[ArchiveSummary]:
    """Return the logs of aborted runs whose tasks have a log of a whole run."""
    ended = {(s.model, s.task) for s in summaries if s.role == "responses" and not s.status}
    return [s for s in summaries if s.status and (s.model, s.task) in ended]


def _kind(summary: ArchiveSummary) -> str:
    """Return what a file without responses of its own is."""
    if summary.problem:
        return "a pickle of VLMEvalKit, which repeats a table"
    what = summary.layout or "one object without an id and a response"
    return f"{what}, for {', '.join(summary.metrics)}" if summary.metrics else what


def _is_spare(path: Path, archives: Iterable[Path]) -> bool:
    """Return whether a file is a pickle that VLMEvalKit wrote with a table, by its name."""
    return path.suffix.lower() in (".pkl", ".pickle") and any(
        path.parent == archive.parent and path.name.startswith(_stem(archive))
        for archive in archives
    )


def _is_settings(summary: ArchiveSummary, archives: Iterable[Path]) -> bool:
    """Return whether a file next to archives is one object without an id and a response."""
    plain = not summary.layout and not summary.metrics and not summary.problem
    one = plain and summary.records == 1 and len(summary.unknown_keys) > 1
    return one and any(Path(summary.path).parent == archive.parent for archive in archives)


def _belongs(companion: ArchiveSummary, paths: Mapping[str, Path], answers: Path) -> bool:
    """Return whether a file has more on the answers of another: ``a.reviews``, ``a.answers``."""
    if not companion.table:
        return False
    path = paths[companion.path]
    names = [_WHAT_IT_HOLDS.sub("", each.name) for each in (path, answers)]
    return path.parent == answers.parent and names[0] == names[1]


def _runs_of(
    summary: ArchiveSummary,
    path: Path,
    references: frozenset[str],
    root: Path,
    tables: Mapping[str, Path],
) -> Iterator[PlannedRun]:
    """Yield the runs of a file: of metrics whose references it carries, or that are known."""
    for metric in summary.metrics:
        taken = {option.name for option in declared_inputs(metric).own}
        own = {name: file for name, file in tables.items() if name in taken}
        command = summary.command
        for name, file in own.items():
            command = re.sub(rf"--{name} \S+", f"--{name} {quote(str(file))}", command)
        lacks = summary.needs_references and metric not in references and not own
        if lacks or summary.unknown_keys:
            continue
        yield PlannedRun(
            model=_model(summary.model, path.parent, root) or path.name.partition(".")[0],
            metric=metric,
            name=f"{metric} {summary.task}".strip(),
            archive=path,
            source=summary.path,
            layout=summary.layout,
            command=command,
            variant=summary.variant,
            allow_missing=summary.allow_missing,
            tables=own,
        )


def _model(named: str, folder: Path, root: Path) -> str:
    return named or "/".join(folder.relative_to(root).parts)


def _reason(summary: ArchiveSummary) -> LeftOut:
    why = summary.problem or summary.next_step
    if summary.unknown_keys:
        why = "its keys are not known"
        why += (
            "; the command guesses them, check the guesses"
            if summary.command
            else f"; {summary.next_step}"
        )
    if not why and "--references" not in summary.command and " -R " not in summary.command:
        why = f"it is {summary.layout}, which needs more than this file; the command says what"
    if not why:
        metric = summary.metrics[0]
        why = (
            f"it is {summary.layout}, which has no references: give them with "
            f"--references {metric}=FILE"
        )
    return LeftOut(archive=summary.path, reason=why, command=summary.command)


def _named(runs: Sequence[PlannedRun]) -> list[PlannedRun]:
    """Return the runs with short names that are unique for each model.

    A task is named only where a model has several files of a metric, and a file only where a task
    has several.
    """
    short = [replace(run, name=run.metric) for run in runs]
    for names in (runs, [replace(r, name=f"{r.name} {_stem(r.archive)}") for r in runs]):
        counts = _counts(short)
        short = [
            named if counts[run.model, run.name] > 1 else run
            for run, named in zip(short, names, strict=True)
        ]
    return sorted(_apart(short), key=lambda run: (run.model, run.name))


def _counts(runs: Iterable[PlannedRun]) -> Mapping[tuple[str, str], int]:
    return Counter((run.model, run.name) for run in runs)


def _apart(runs: Iterable[PlannedRun]) -> Iterator[PlannedRun]:
    """Yield the runs with different folders."""
    seen: Counter[Path] = Counter()
    for run in runs:
        seen[run.folder] += 1
        number = seen[run.folder]
        yield run if number == 1 else replace(run, name=f"{run.name} {number}")


def _stem(path: Path) -> str:
    return path.name.partition(".")[0]


def _safe(name: str) -> str:
    """Return a name of a folder: letters, digits, dots and dashes."""
    return _UNSAFE.sub("_", name).strip("._")[:_MAX_NAME_CHARS] or "model"
