"""Audits: a tool's number is derived again from its own archive, and compared with ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from ..archives.archive_files import ArchiveFile, open_file
from ..archives.found_files import FoundFile, found_files
from ..archives.gathering import gathered
from ..archives.layouts import ArchiveReader, chair_outputs, lmms_eval, vlmevalkit
from ..archives.records import named
from ..errors import ArchiveError, InvalidInputError
from . import chair, pope
from .printed import beside_archive, given_numbers, rows_told
from .result import Audit
from .scored import score_archive
from .values import AuditOptions, Cause, Printed, ScoreAudit
from .waterfall import Ratio, Stage, changed_rows, columns_of, score_of

__all__ = ["HARNESSES", "audit"]

HARNESSES: Mapping[str, tuple[str, ...]] = {
    "pope": ("pope",),
    "llava": ("pope",),
    "opera": ("pope",),
    "lmms-eval": ("pope", "chair"),
    "vlmevalkit": ("pope",),
    "chair": ("chair",),
}
"""Tool -> metrics whose numbers can be derived from its archives."""

_RATIOS = {"pope": pope.RATIOS, "chair": chair.RATIOS}
_COUNTED = {"pope": pope.counted, "chair": chair.counted}
_TABLES = (".xlsx", ".tsv", ".csv", ".json")
# Floating point is exact to sixteen digits; no tool prints more.
_FLOAT_ERROR = Fraction(1, 10**9)
_UNEXPLAINED = (
    "not explained",
    "the printed number does not follow from the archive by the tool's rules",
)
_ROUNDING = ("rounding", "digits that the printed number leaves out")


def audit(archive: str | Path, options: AuditOptions | None = None) -> Audit:
    """Derive a tool's printed numbers from its own archive, and explain how ours differ.

    Nothing is judged by a language model.

    Args:
        archive: A file of lmms-eval, VLMEvalKit, LLaVA, POPE or a CHAIR script; or a folder that
            holds one.
        options: What the numbers are compared with, and how the archive is read.

    Raises:
        ArchiveError: The archive can't be read, or its tool is not known.
        InvalidInputError: An option is wrong.
    """
    options = options or AuditOptions()
    file, metric = _opened(str(archive))
    notes: list[str] = []
    if (judged := _judged_beside(file)) is not None:
        notes.append(f"{judged.name} is read: it has the tool's own verdicts")
        file = open_file(replace(file.file, path=judged, name=str(judged)))
    harness = _harness(file, metric, options.harness)
    ratios = _RATIOS[metric]
    printed = {
        **beside_archive(file, metric, harness, options.category, list(ratios)),
        **given_numbers(options.printed, metric, list(ratios)),
    }
    scored = score_archive(metric, str(file.file.path), options)
    rows, stages = _COUNTED[metric](scored, harness, options)
    if not rows:
        raise InvalidInputError(
            f"{file.file.name}: no row has the category {options.category!r:.40}; leave out "
            "--category, or name one of the archive's"
        )
    scores = tuple(_scores(stages, ratios, printed))
    report = scored.report
    return Audit(
        archive=str(archive),
        harness=harness,
        metric=metric,
        signature="" if report is None else report.signature,
        causes=_causes(stages, scores, ratios),
        scores=scores,
        notes=(*notes, *_notes(scores, printed), *_rows_note(file, harness, options, len(rows))),
        rows=rows,
        stages=stages,
        ratios=ratios,
    )


def _opened(given: str) -> tuple[ArchiveFile, str]:
    """Return the file to audit and its metric."""
    files = found_files(given)
    if len(files) == 1:
        return _one(open_file(files[0]))
    for metric in _RATIOS:
        found = _gathered(files, given, metric)
        if len(found) > 1:
            raise ArchiveError(
                f"{given}: {len(found)} archives: {named([f.file.name for f in found])}. Audit one "
                "of them"
            )
        if found:
            return found[0], metric
    raise ArchiveError(
        f"{given}: no file that an audit reads; see `hallujudge archive inspect {given}`"
    )


def _gathered(files: list[FoundFile], given: str, metric: str) -> list[ArchiveFile]:
    try:
        return gathered(files, given, metric)[0]
    except ArchiveError:
        return []


def _one(file: ArchiveFile) -> tuple[ArchiveFile, str]:
    metrics = () if file.reader is None else file.reader.metrics
    metric = next((name for name in metrics if name in _RATIOS), "")
    if not metric:
        what = "plain records" if file.reader is None else file.reader.name
        raise ArchiveError(
            f"{file.file.name} is {what}; an audit reads archives of lmms-eval, VLMEvalKit and "
            "LLaVA for POPE, and outputs of CHAIR scripts"
        )
    return file, metric


def _judged_beside(file: ArchiveFile) -> Path | None:
    """Return VLMEvalKit's judged copy of a table of predictions; None if there is none."""
    if file.reader not in vlmevalkit.READERS or "extracted" in file.first:
        return None
    stem = file.file.path.stem
    copies = (file.file.path.with_name(f"{stem}_auxmatch{suffix}") for suffix in _TABLES)
    return next((path for path in copies if path.is_file()), None)


def _harness(file: ArchiveFile, metric: str, given: str) -> str:
    """Return the tool that an archive is of.

    Raises:
        InvalidInputError: The given tool is not known, or has no number of the metric.
    """
    harness = given or _told(file.reader)
    if metric not in HARNESSES.get(harness, ()):
        known = ", ".join(name for name, metrics in HARNESSES.items() if metric in metrics)
        if not harness:
            raise InvalidInputError(
                f"{file.file.name}: the layout does not tell whose numbers these are; name "
                f"the tool with --harness: {known}"
            )
        raise InvalidInputError(f"--harness {harness!r:.40}: choose from {known} for {metric}")
    return harness


def _told(reader: ArchiveReader | None) -> str:
    if reader in lmms_eval.READERS:
        return "lmms-eval"
    if reader in vlmevalkit.READERS:
        return "vlmevalkit"
    if reader in chair_outputs.READERS:
        return "chair"
    if reader is None or reader.convert is not None or "pope" not in reader.metrics:
        return ""
    return "llava" if "prompt" in reader.keys else "pope"


def _scores(
    stages: tuple[Stage, ...], ratios: Mapping[str, Ratio], printed: Mapping[str, Printed]
) -> Iterator[ScoreAudit]:
    """Yield the printed scores, or all if none is printed, that have a value in every stage."""
    for name, ratio in ratios.items():
        values = [value for stage in stages if (value := score_of(stage, ratio)) is not None]
        if (printed and name not in printed) or len(values) < len(stages):
            continue
        shares = dict(_of_number(printed.get(name), values[0]))
        for stage, (before, after) in zip(stages[1:], pairwise(values), strict=True):
            shares[stage.cause] = after - before
        yield ScoreAudit(
            name=name,
            printed=printed.get(name),
            rederived=values[0],
            ours=values[-1],
            shares=shares,
        )


def _of_number(printed: Printed | None, rederived: Fraction) -> Iterator[tuple[str, Fraction]]:
    """Yield what rounding explains of a printed number, and what nothing does."""
    if printed is None:
        return
    nearest = round(rederived / printed.unit) * printed.unit
    # Half a unit may be rounded up or down.
    if abs(printed.value - rederived) <= max(printed.unit / 2, _FLOAT_ERROR):
        nearest = printed.value
    yield _UNEXPLAINED[0], nearest - printed.value
    yield _ROUNDING[0], rederived - nearest


def _causes(
    stages: tuple[Stage, ...], scores: tuple[ScoreAudit, ...], ratios: Mapping[str, Ratio]
) -> tuple[Cause, ...]:
    columns = columns_of(ratios[score.name] for score in scores)
    about_number = [
        Cause(name=name, meaning=meaning, items=None, rows=None)
        for name, meaning in (_UNEXPLAINED, _ROUNDING)
    ]
    steps = [
        Cause(
            name=after.cause,
            meaning=after.meaning,
            items=sum(1 for _ in changed_rows(before, after, columns)),
            rows=after.rows,
        )
        for before, after in pairwise(stages)
    ]
    return (*about_number, *steps)


def _rows_note(file: ArchiveFile, harness: str, options: AuditOptions, found: int) -> Iterator[str]:
    """Yield a warning if the tool counted more rows than the archive has, or fewer."""
    told = None if options.category else rows_told(file, harness)
    if told is not None and told[0] != found:
        yield (
            f"{told[1]} counts {told[0]:,} rows, and the archive has {found:,}: rows were left out "
            "or added after the number was printed"
        )


def _notes(scores: tuple[ScoreAudit, ...], printed: Mapping[str, Printed]) -> Iterator[str]:
    if not printed:
        yield (
            "no printed number is beside the archive: the steps begin with the re-derived one; "
            "name it with --printed, such as --printed accuracy=0.854"
        )
    unexplained = [score.name for score in scores if score.shares.get(_UNEXPLAINED[0])]
    if unexplained:
        yield (
            f"{', '.join(unexplained)}: the archive does not give the printed number. It may be of "
            "another run, another category or more rows, or of other rules (--harness)"
        )
    shown = {score.name for score in scores}
    for name in printed:
        if name not in shown:
            yield f"{name}: undefined in one of the steps, since nothing counts in it"
