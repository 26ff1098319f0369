"""The runs that an overview may have: which of several it shows, and which requests failed.

Batch APIs write the failed requests of a file to another one, which holds nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from itertools import takewhile
from pathlib import Path
from typing import Literal, TypeAlias

from hallujudge.metrics.errors import choose_from

from ..archives.archive_files import open_file
from ..archives.found_files import FoundFile
from ..archives.inputs import References
from ..archives.inspection import ArchiveSummary
from ..errors import InvalidInputError
from ..report.report_text import counted

# Names of models come from logs and become folders: slashes and other marks are replaced.
_UNSAFE = re.compile(r"[^\w.+-]+")
# File systems allow 255 bytes for a name, and a character may take several of them.
_MAX_NAME_CHARS = 100
# OpenAI names files of a batch such as batch_1_output.jsonl and batch_1_error.jsonl.
_BETWEEN_WORDS = re.compile(r"[-_. ]")


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """An archive that was not scored."""

    archive: str
    reason: str
    """Why it was not scored, and what to do."""
    command: str = ""
    """Command that scores it alone, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """A run: one metric over one archive."""

    model: str
    """Name of the model."""
    metric: str
    name: str
    """Name of the run among the model's: the metric, and the task or file if there are several."""
    archive: Path
    """The file, or a folder that the metric's own reader reads; of a URL, the copy."""
    source: str
    """The same for messages: a path or a URL."""
    layout: str
    """Name of the archive's layout; empty for plain records."""
    failed: tuple[Path, ...] = ()
    """Files of requests of the same run that failed."""
    command: str
    """Command that scores it alone."""
    variant: str = ""
    """The metric's variant; empty for the default."""
    allow_missing: bool = False
    """Whether questions without an answer are unscored instead of an error."""
    references: References | None = None
    """References of the metric; None where the archive has its own."""
    own: Mapping[str, object] = field(default_factory=dict)
    """Options of the metric's archives by name."""
    copies: Mapping[str, str] = field(default_factory=dict)
    """Files of a URL -> their names for messages."""
    task: str = ""
    """The tool's task; empty if it does not say."""
    file_task: str = ""
    """What the file's name says of the task, without its time and model."""
    records: int = 0
    """How many records the archive has; 0 if they were not counted."""
    first_id: str = ""
    """The first id; empty if it is not known."""

    @property
    def folder(self) -> Path:
        """Folder of the run below the output folder."""
        return Path(_safe(self.model), _safe(self.name))

    @property
    def responses(self) -> Path | list[Path]:
        """The archive, and the files of failed requests if there are any."""
        return [self.archive, *self.failed] if self.failed else self.archive


def _safe(name: str) -> str:
    """Return a name of a folder: letters, digits, dots and dashes."""
    return _UNSAFE.sub("_", name).strip("._")[:_MAX_NAME_CHARS] or "model"


RunChoice: TypeAlias = Literal["newest", "largest", "all"]
"""Which of several runs are scored: the newest whole one, the largest one, or all."""
RUN_CHOICES: tuple[RunChoice, ...] = ("newest", "largest", "all")

# Tools write the time of a run into names: 20250102_030405, 2025-01-02T03-04-05, T20250102.
_TIME = re.compile(
    r"(?<!\d)(20\d\d)-?([01]\d)-?([0-3]\d)(?:[T_-]?([0-2]\d)[-:]?([0-5]\d)[-:]?([0-5]\d))?(?!\d)"
)
# The suffixes of a file's name; a model's version, as in llava-1.5-7b, is not one.
_SUFFIXES = re.compile(r"(\.[a-z]\w*)+$", re.IGNORECASE)
# Runs with a limit, such as --limit 8, are smaller; a later release of a benchmark may lack some
# questions.
_WHOLE = 0.9


def stem_of(name: str) -> str:
    """Return a file's name without its suffixes, such as ``.jsonl.gz``."""
    return _SUFFIXES.sub("", name) or name


def task_of_file(name: str, model: str, task: str) -> str:
    """Return what a file's name says of the task, so that files of several models say the same.

    Args:
        name: Name of the file, such as ``llava-1.5-7b_POPE.xlsx``.
        model: Name of the model, which may follow folders.
        task: Name of the task, if the tool says it; Inspect AI puts a random id after it.
    """
    stem = stem_of(name)
    if task and task in stem:
        # The last time that it is named: a model's name may have the task's in it.
        stem = stem[: stem.rindex(task) + len(task)]
    timed = _TIME.search(stem)
    if timed:
        # A zone may follow the time, such as +00-00.
        stem = stem[: timed.start()] + stem[timed.end() :].lstrip("+-_0123456789")
    stem = stem.removeprefix(model.rpartition("/")[2]).strip("_-")
    return "" if stem == task else stem


def chosen_runs(
    runs: Sequence[PlannedRun], choice: RunChoice
) -> tuple[list[PlannedRun], list[tuple[PlannedRun, str]]]:
    """Return the runs that are scored, and the others with the reason.

    Runs of one model and metric are of one task if their tool says so, or their files' names differ
    in nothing but a time, and if their first ids are equal: parts of one run have other ids.

    Args:
        runs: All runs of a tree.
        choice: Which of several runs of one task are scored.

    Raises:
        InvalidInputError: There is no such choice.
    """
    if choice not in RUN_CHOICES:
        raise InvalidInputError(f"runs is {choice!r:.40}; {choose_from(choice, RUN_CHOICES)}")
    tasks: dict[tuple[str, ...], list[PlannedRun]] = {}
    for run in runs:
        tasks.setdefault(_task(run), []).append(run)
    kept, others = [], []
    for same in tasks.values():
        chosen = same if choice == "all" else [_chosen(same, choice)]
        kept += chosen
        others += [(run, _why(run, chosen[0])) for run in same if run not in chosen]
    return kept, others


def _task(run: PlannedRun) -> tuple[str, ...]:
    if not run.first_id:
        # Without ids, parts of one run and repeated runs look alike: each is a task of its own.
        return (run.source,)
    return run.model, run.metric, run.task or f"file {run.file_task}", run.first_id


def _chosen(runs: Sequence[PlannedRun], choice: RunChoice) -> PlannedRun:
    if choice == "largest":
        # Of equally large runs the newest.
        return max(runs, key=lambda run: (run.records, _time(run)))
    # A newer run with a limit must not replace the whole one before it.
    most = max(run.records for run in runs)
    return max((run for run in runs if run.records >= _WHOLE * most), key=_time)


def _time(run: PlannedRun) -> tuple[str, str]:
    """Return the time that the name of a run's file or folder has, and that of its writing."""
    written = datetime.fromtimestamp(run.archive.stat().st_mtime, tz=UTC).strftime("%Y%m%d%H%M%S")
    # A file's own time comes after those of its folders. A date alone counts as midnight.
    found = _TIME.findall(run.source)
    return "".join(found[-1]).ljust(len(written), "0") if found else written, written


def _why(run: PlannedRun, chosen: PlannedRun) -> str:
    return (
        f"another run of {run.model}, {run.metric}, with {counted(run.records, 'record')}; "
        f"{chosen.source} has {chosen.records:,}. The option runs = all scores both"
    )


@dataclass(slots=True)
class FailedRequests:
    """Failed requests, by the file that has the replies to the others."""

    by_archive: dict[str, list[ArchiveSummary]] = field(default_factory=dict)
    """File of replies -> files of its failed requests."""
    left_out: list[LeftOut] = field(default_factory=list)
    """Those whose file of replies is not known, or has some of their ids."""
    answered: list[LeftOut] = field(default_factory=list)
    """Those that were all sent again, and answered."""


def failed_requests(
    archives: Sequence[ArchiveSummary], files: Mapping[str, FoundFile]
) -> tuple[list[ArchiveSummary], FailedRequests]:
    """Return the archives of models, and the failed requests among the archives.

    A file of failed requests names no model, so it would count as one of its own.

    Args:
        archives: Archives of responses.
        files: Name of a file -> the file.
    """
    kept, found = [], FailedRequests()
    for each in archives:
        # A file of failures without an archive beside it is scored as it is, all unscored.
        failed_only = not each.model and 0 < each.records == each.failures
        beside = _beside(each, archives) if failed_only else []
        if not beside:
            kept.append(each)
            continue
        nearest = _nearest(each, beside)
        if len(nearest) > 1:
            names = ", ".join(Path(other.path).name for other in nearest)
            why = f"its requests failed, and it may belong to each of {names}; begin its name as"
            found.left_out.append(LeftOut(archive=each.path, reason=f"{why} the right one's does"))
            continue
        (archive,) = nearest
        # Files are read for their ids only here, as few archives have failed requests.
        failed, replied = _ids(files[each.path]), _ids(files[archive.path])
        # Tools that repeat failed requests add the replies, and leave the old file as it was.
        if failed <= replied:
            why = f"failed requests that were answered in {Path(archive.path).name}"
            found.answered.append(LeftOut(archive=each.path, reason=why))
        elif failed & replied:
            why = f"{archive.path} has replies to {len(failed & replied):,} of its failed requests"
            reason = f"{why}; remove their lines"
            found.left_out.append(LeftOut(archive=each.path, reason=reason))
        else:
            found.by_archive.setdefault(archive.path, []).append(each)
    return kept, found


def _beside(failed: ArchiveSummary, archives: Sequence[ArchiveSummary]) -> list[ArchiveSummary]:
    """Return the archives of models that the same tool wrote into the same folder."""
    place = Path(failed.path).parent
    return [
        other
        for other in archives
        if other.model and other.layout == failed.layout and Path(other.path).parent == place
    ]


def _nearest(failed: ArchiveSummary, beside: Sequence[ArchiveSummary]) -> list[ArchiveSummary]:
    """Return those whose names begin with the most words of the failed requests' name."""
    common = [_common(Path(failed.path).name, Path(other.path).name) for other in beside]
    most = max(common)
    return [other for other, words in zip(beside, common, strict=True) if words == most]


def _common(name: str, other: str) -> int:
    """Return the number of words with which both names begin."""
    pairs = zip(_BETWEEN_WORDS.split(name), _BETWEEN_WORDS.split(other), strict=False)
    return sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], pairs))


def _ids(file: FoundFile) -> set[str]:
    return {str(record.values.get("id")) for record in open_file(file).records()}
