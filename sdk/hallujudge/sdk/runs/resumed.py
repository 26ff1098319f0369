"""The archive of a run that is resumed, which the stopped run has checked already."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from hallujudge.judge_service.installation import __version__

from ..archives.inputs import CheckedArchive
from ..archives.json_lines import Marks
from ..errors import HallujudgeError
from ..spec import group_keys
from .inputs import files_of, input_options, of_file
from .manifest import Manifest
from .marks import read_marks
from .names import MANIFEST, partial

if TYPE_CHECKING:
    from ..archives import ItemSource
    from ..score_run import ScoreRun

__all__ = ["checked_archive", "items_of"]


def items_of(run: ScoreRun) -> ItemSource:
    """Return the items of a run. If it is resumed, its archive is not checked a second time.

    Raises:
        ArchiveError: A file can't be used, or ids don't join.
    """
    resumed = run.resume and run.folder is not None
    return run.items(checked_archive(run, Path(run.folder or "")) if resumed else None)


def checked_archive(run: ScoreRun, folder: Path) -> CheckedArchive | None:
    """Return what a stopped run knew of its archive; None if it must be checked anew.

    A run writes its manifest after the whole archive was checked. Files with the same bytes, read
    by the same release with the same options, need no second check.

    Args:
        run: The run that goes on.
        folder: Where it stopped.
    """
    try:
        manifest = Manifest.read(partial(folder, MANIFEST))
        marks = Marks.of(read_marks(folder, manifest))
        same = manifest.release == __version__ and _reads_the_same(run, manifest)
    except (HallujudgeError, OSError, ValueError):
        # Starting the run tells what is wrong with its folder.
        return None
    return CheckedArchive(count=manifest.items, marks=marks) if same and marks.marks else None


def _reads_the_same(run: ScoreRun, manifest: Manifest) -> bool:
    files = files_of(run)
    if files is None or files.keys() != manifest.inputs.keys() or run.metric != manifest.metric:
        return False
    before = {key: value for key, value in manifest.settings.items() if key.startswith("input.")}
    now = {f"input.{name}": value for name, value in input_options(run).items()}
    groups = list(group_keys(run.metric, run.group_by))
    return (
        before == now
        and manifest.settings.get("group_by") == groups
        and all(of_file(path, manifest.inputs[name]) for name, path in files.items())
    )
