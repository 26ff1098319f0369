"""Files that hold nothing but the failed requests of another file, as batch APIs write them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import takewhile
from pathlib import Path

from ..archives.archive_files import open_file
from ..archives.found_files import FoundFile
from ..archives.inspection import ArchiveSummary
from .planned_runs import LeftOut

# OpenAI names files of a batch such as batch_1_output.jsonl and batch_1_error.jsonl.
_BETWEEN_WORDS = re.compile(r"[-_. ]")


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
        beside = _beside(each, archives) if _has_failures_only(each) else []
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
        failed, replied = _ids(files[each.path]), _ids(files[archive.path])
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


def _has_failures_only(archive: ArchiveSummary) -> bool:
    return not archive.model and 0 < archive.records == archive.failures


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
