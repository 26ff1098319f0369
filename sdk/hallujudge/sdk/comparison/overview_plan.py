"""The runs that a tree of archives holds: which file, which metric, which model."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from ..archives.archive_files import aborted_reason
from ..archives.found_files import FoundFile, found_files, is_url, unread_texts
from ..archives.further_files import (
    ArchiveFolders,
    GivenFiles,
    JoinedArchive,
    command_of,
    file_kind,
)
from ..archives.inspection import ArchiveSummary, inspect_file
from ..archives.readers import folder_files
from ..errors import ArchiveError, InvalidInputError
from .named_runs import renamed_models
from .planned_runs import (
    LeftOut,
    PlannedRun,
    RunChoice,
    chosen_runs,
    failed_requests,
    stem_of,
    task_of_file,
)

_PICKLES = (".pkl", ".pickle")
_DATABASE = ".sqlite"
_REPLIES = "a SQLite database, in which ask and judges keep replies"
_UNREAD = "not read: its name is that of notes or output; end it in .jsonl if it holds responses"


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    """The runs of a tree, and what is not scored."""

    runs: tuple[PlannedRun, ...]
    """The runs, by model and name."""
    left_out: tuple[LeftOut, ...]
    """Files with responses that no run reads, and why."""
    beside: tuple[LeftOut, ...]
    """Files without responses of their own, and what they are."""
    other_runs: tuple[LeftOut, ...] = ()
    """Archives of further runs of a model and task, of which another one is scored."""


def plan_of(
    folder: str | Path,
    out: Path,
    given: GivenFiles,
    *,
    choice: RunChoice = "newest",
    model_names: Mapping[str, str] | None = None,
) -> Plan:
    """Return the runs that a folder holds.

    Args:
        folder: The folder, or its URL.
        out: Folder of the results, whose files are left out if it is in the same place.
        given: Further files of metrics, where they are known; they are not archives.
        choice: Which of several runs of one model and task are scored.
        model_names: Name of a model in the archives -> its name in the overview.

    Raises:
        ArchiveError: It is not a folder, can't be read or has no files.
        InvalidInputError: The results would be among the archives, a given file is missing, or no
            model has a name that is replaced.
    """
    # Results in the archives' folder would be read as archives by the next call.
    _refuse_same_folder(folder, out)
    given.refuse_missing()
    # By their real paths: a link into the folder of results holds results too.
    own, further = Path(os.path.realpath(out)), given.paths()
    files = [
        file
        for file in _files(folder)
        if own not in file.path.resolve().parents and file.path.resolve() not in further
    ]
    root = next((file.root for file in files if file.root is not None), Path(folder))
    paths = {file.name: file.path for file in files}
    # First: the files of such a folder are one run together, not one each.
    whole, rest = _whole_folders(files, root, given)
    summaries = [inspect_file(file) for file in rest]
    kept, others = _with_responses(summaries)
    # Before logs of aborted runs: a file of failures alone is not a run of its own.
    kept, failed = failed_requests(kept, {file.name: file for file in rest})
    aborted = _run_again(kept)
    joined, left_out = _joined(
        [s for s in kept if s not in aborted], ArchiveFolders(summaries, paths, given)
    )
    left_out = [
        *(
            LeftOut(archive=s.path, reason=aborted_reason(s.path, s.status), command=s.command)
            for s in aborted
        ),
        *failed.left_out,
        *left_out,
    ]
    read = {
        file.path: file_kind(name, each.metric)
        for each in joined
        for name, files in each.found.items()
        for file in files
    }
    kinds = {**{other.path: _kind(other) for other in others}, **read}
    of_runs = (_run(each, paths, root, failed.by_archive) for each in joined)
    found = [*whole, *of_runs]
    names = renamed_models([run.model for run in found], model_names or {})
    runs, others_of_task = chosen_runs(
        [replace(run, model=names[run.model]) for run in found], choice
    )
    # Otherwise a folder of references alone has an empty overview, without a reason.
    if not runs and not left_out:
        left_out = [_reason(s) for s in summaries if s.role == "companion" and s.next_step]
    return Plan(
        runs=tuple(_named(runs)),
        left_out=tuple(left_out),
        beside=(
            *(LeftOut(archive=s.path, reason=kinds[s.path]) for s in summaries if s.path in kinds),
            *failed.answered,
            *_unread(folder, own, further),
        ),
        other_runs=tuple(LeftOut(archive=run.source, reason=why) for run, why in others_of_task),
    )


def _refuse_same_folder(folder: str | Path, out: Path) -> None:
    """Refuse to write results where they would be taken for archives, or archives for results."""
    archives, results = (Path(os.path.realpath(each)) for each in (folder, out))
    if not is_url(folder) and (archives == results or results in archives.parents):
        raise InvalidInputError(
            f"{out} is the folder of the archives, or holds it; give another folder for the results"
        )


def _unread(folder: str | Path, out: Path, further: Collection[Path]) -> Iterator[LeftOut]:
    """Yield the files of a local folder that are taken for notes by their names alone."""
    if is_url(folder):
        return
    for path in unread_texts(Path(folder)):
        place = path.resolve()
        if out not in place.parents and place not in further:
            yield LeftOut(archive=str(path), reason=_UNREAD)


def _joined(
    archives: Sequence[ArchiveSummary], folders: ArchiveFolders
) -> tuple[list[JoinedArchive], list[LeftOut]]:
    """Return archives with their metrics and further files, and those that can't be scored."""
    joined: list[JoinedArchive] = []
    left_out: dict[str, LeftOut] = {}
    for summary in archives:
        found, entry = _joined_one(summary, folders)
        joined += found
        if not found:
            left_out[summary.path] = entry
    # Another archive's references may have the layout of responses.
    read = _found_paths(joined)
    kept = []
    for each, error in folders.unshared([j for j in joined if j.summary.path not in read]):
        if error is None:
            kept.append(each)
        else:
            left_out[each.summary.path] = _left_out(each.summary, error)
    read = _found_paths(kept)
    return kept, [entry for path, entry in left_out.items() if path not in read]


def _found_paths(joined: Iterable[JoinedArchive]) -> set[str]:
    """Return the further files of archives."""
    return {file.path for each in joined for files in each.found.values() for file in files}


def _joined_one(
    summary: ArchiveSummary, folders: ArchiveFolders
) -> tuple[list[JoinedArchive], LeftOut]:
    """Return an archive with each of its metrics, and why it is left out if there is none."""
    found: list[JoinedArchive] = []
    entry = _reason(summary)
    # A guess at the keys is offered as a command, and never scored unasked.
    if summary.unknown_keys:
        return found, entry
    try:
        metrics = folders.metrics_of(summary)
    except ArchiveError as err:
        return found, _left_out(summary, err)
    errors = []
    for metric in metrics:
        try:
            found.append(folders.joined(summary, metric))
        except ArchiveError as err:
            errors.append(_left_out(summary, err))
    return found, errors[0] if errors else entry


def _left_out(summary: ArchiveSummary, error: ArchiveError) -> LeftOut:
    return LeftOut(archive=summary.path, reason=str(error), command=command_of(error))


def _run(
    joined: JoinedArchive,
    paths: Mapping[str, Path],
    root: Path,
    failed: Mapping[str, Sequence[ArchiveSummary]],
) -> PlannedRun:
    """Return the run of an archive, with its failed requests."""
    summary = joined.summary
    path = paths[summary.path]
    more = failed.get(summary.path, ())
    files = (summary, *more, *(file for held in joined.found.values() for file in held))
    model = _model(summary.model, path.parent, root) or stem_of(path.name)
    return PlannedRun(
        model=model,
        metric=joined.metric,
        name=f"{joined.metric} {summary.task}".strip(),
        file_task=task_of_file(path.name, model, summary.task),
        archive=path,
        source=summary.path,
        layout=summary.layout,
        failed=tuple(paths[each.path] for each in more),
        command=joined.command,
        variant=summary.variant,
        allow_missing=summary.allow_missing,
        references=joined.references,
        own=joined.own,
        copies={str(paths[file.path]): file.path for file in files},
        task=summary.task,
        # Failed requests count: otherwise a run with many of them looks like a part.
        records=summary.records + sum(each.records for each in more),
        first_id=next(iter(summary.ids), ""),
    )


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
    files: Sequence[FoundFile], root: Path, given: GivenFiles
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
                    references=given.references.get(metric),
                    own=given.inputs.get(metric, {}),
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
    # Tools write copies into the same folder, or under the same name into another.
    tasks = {(s.model, s.task) for s in summaries if s.role == "responses" and s.task}
    archives = [Path(s.path) for s in summaries if s.role == "responses" and s.metrics]
    kept = [
        s
        for s in summaries
        if (s.problem and not _is_spare(Path(s.path), archives))
        or (s.role == "responses" and not _is_settings(s, archives))
        or (
            (s.role == "companion" and s.metrics)
            and (Path(s.path).parent, s.metrics[0]) not in own
            and (s.model, s.task) not in tasks
        )
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
        is_pickle = Path(summary.path).suffix.lower() in _PICKLES
        return "a pickle of VLMEvalKit, which repeats a table" if is_pickle else _REPLIES
    what = summary.layout or "one object without an id and a response"
    return f"{what}, for {', '.join(summary.metrics)}" if summary.metrics else what


def _is_spare(path: Path, archives: Iterable[Path]) -> bool:
    """Return whether a file is a pickle that VLMEvalKit wrote with a table, or keeps replies."""
    return path.suffix.lower() == _DATABASE or (
        path.suffix.lower() in _PICKLES
        and any(
            path.parent == archive.parent and path.name.startswith(stem_of(archive.name))
            for archive in archives
        )
    )


def _is_settings(summary: ArchiveSummary, archives: Iterable[Path]) -> bool:
    """Return whether a file next to archives is one object without an id and a response."""
    plain = not summary.layout and not summary.metrics and not summary.problem
    one = plain and summary.records == 1 and len(summary.unknown_keys) > 1
    return one and any(Path(summary.path).parent == archive.parent for archive in archives)


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
    return LeftOut(archive=summary.path, reason=why, command=summary.command)


def _named(runs: Sequence[PlannedRun]) -> list[PlannedRun]:
    """Return the runs with short names that are unique for each model.

    A task is named only where a model has several files of a metric, and a file only where a task
    has several. Then the runs of all models are named so, and stay in one table.
    """
    short = [replace(run, name=run.metric) for run in runs]
    for names in (runs, [replace(r, name=f"{r.name} {r.file_task}".strip()) for r in runs]):
        counts = Counter((run.model, run.name) for run in short)
        several = {name for (_, name), count in counts.items() if count > 1}
        short = [
            named if run.name in several else run for run, named in zip(short, names, strict=True)
        ]
    # The order of files in a folder depends on the file system.
    return sorted(_apart(short), key=lambda run: (run.model, run.name))


def _apart(runs: Iterable[PlannedRun]) -> Iterator[PlannedRun]:
    """Yield the runs with different folders."""
    seen: Counter[Path] = Counter()
    for run in runs:
        # Names that differ in replaced characters alone have one folder.
        seen[run.folder] += 1
        number = seen[run.folder]
        yield run if number == 1 else replace(run, name=f"{run.name} {number}")
