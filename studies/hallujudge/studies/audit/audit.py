"""Audits: a tool's printed number is derived again from its own archive and compared with ours."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

from msgspec import structs

from hallujudge.metrics.errors import choose_from
from hallujudge.sdk.archives.archive_files import Archive, gathered, open_file
from hallujudge.sdk.archives.found_files import FoundFile, found_files
from hallujudge.sdk.archives.json_files import named
from hallujudge.sdk.archives.layouts import LMMS_EVAL_READERS, VLMEVALKIT_READERS, harnesses
from hallujudge.sdk.archives.layouts.archive_reader import ArchiveReader
from hallujudge.sdk.archives.layouts.benchmarks import CHAIR_SCRIPT_READERS
from hallujudge.sdk.archives.records import no_records
from hallujudge.sdk.errors import ArchiveError, InvalidInputError

from . import answers, chair, pope
from .printed_numbers import given_numbers, numbers_of_archive, rows_counted
from .waterfall import (
    Audit,
    AuditOptions,
    Cause,
    Printed,
    Ratio,
    ScoreAudit,
    Stage,
    changed_rows,
    columns_of,
    score_archive,
    score_of,
)

HARNESSES: Mapping[str, tuple[str, ...]] = {
    **dict.fromkeys(("pope", "llava", "opera"), ("pope",)),
    "lmms-eval": ("pope", "chair", *answers.RATIOS),
    "vlmevalkit": ("pope", *answers.RATIOS),
    "chair": ("chair",),
}
"""Tool -> metrics whose numbers can be derived from its archives."""
_RATIOS = {"pope": pope.RATIOS, "chair": chair.RATIOS, **answers.RATIOS}
_COUNTED = {
    **{"pope": pope.counted, "chair": chair.counted},
    **dict.fromkeys(answers.RATIOS, answers.counted),
}
# VLMEvalKit writes predictions as XLSX and scores as CSV, unless configured otherwise.
_TABLE_SUFFIXES = (".xlsx", ".tsv", ".csv", ".json")
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
    # The tool scores that copy, and it alone has the verdicts.
    if (judged := _judged_copy(file)) is not None:
        notes.append(f"{judged.name} is read: it has the tool's own verdicts")
        file = open_file(structs.replace(file.file, path=judged, name=str(judged)))
    harness = _harness(file, metric, options.harness)
    ratios = _RATIOS[metric]
    printed = {
        **numbers_of_archive(file, metric, harness, options.category, list(ratios)),
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
    return Audit(
        archive=str(archive),
        harness=harness,
        metric=metric,
        signature=scored.report.signature,
        causes=_causes(stages, scores, ratios),
        scores=scores,
        notes=(
            *notes,
            *_notes(scores, printed),
            *_rows_note(file, metric, harness, options, len(rows)),
        ),
        rows=rows,
        stages=stages,
        ratios=ratios,
    )


def _opened(given: str) -> tuple[Archive, str]:
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


def _gathered(files: list[FoundFile], given: str, metric: str) -> list[Archive]:
    try:
        return gathered(files, given, metric)[0]
    except ArchiveError:
        # Another metric may read the files; if none does, the caller says so.
        return []


def _one(file: Archive) -> tuple[Archive, str]:
    metrics = () if file.reader is None else file.reader.metrics
    metric = next((name for name in metrics if name in _RATIOS), "")
    if not metric:
        if file.reader is None and not file.first:
            raise no_records(file.file.name, "answer")
        what = "plain records" if file.reader is None else file.reader.name
        if file.reader in harnesses.RESULTS_READERS:
            raise ArchiveError(
                f"{file.file.name} is {what}: compare them with a run (--run RUN, "
                "audit_totals), or give the folder that holds its sample files too"
            )
        raise ArchiveError(
            f"{file.file.name} is {what}; an audit reads archives of lmms-eval, VLMEvalKit and "
            "LLaVA for POPE, outputs of CHAIR scripts, and answers of NaturalBench, CRPE and VLMs "
            "are Biased"
        )
    return file, metric


def _judged_copy(file: Archive) -> Path | None:
    """Return VLMEvalKit's judged copy of a table of predictions; None if there is none."""
    if file.reader not in VLMEVALKIT_READERS or "extracted" in file.first:
        return None
    stem = file.file.path.stem
    copies = (file.file.path.with_name(f"{stem}_auxmatch{suffix}") for suffix in _TABLE_SUFFIXES)
    return next((path for path in copies if path.is_file()), None)


def _harness(file: Archive, metric: str, given: str) -> str:
    """Return the tool that an archive is of.

    Raises:
        InvalidInputError: The given tool is not known, or has no number of the metric.
    """
    harness = given or _tool_of(file.reader)
    if metric not in HARNESSES.get(harness, ()):
        known = [name for name, metrics in HARNESSES.items() if metric in metrics]
        if not harness:
            raise InvalidInputError(
                f"{file.file.name}: the layout does not tell whose numbers these are; name "
                f"the tool with --harness: {', '.join(known)}"
            )
        raise InvalidInputError(
            f"--harness {harness!r:.40} has no number of {metric}; {choose_from(harness, known)}"
        )
    return harness


def _tool_of(reader: ArchiveReader | None) -> str:
    if reader in LMMS_EVAL_READERS:
        return "lmms-eval"
    if reader in VLMEVALKIT_READERS:
        return "vlmevalkit"
    if reader in CHAIR_SCRIPT_READERS:
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


def _rows_note(
    file: Archive, metric: str, harness: str, options: AuditOptions, found: int
) -> Iterator[str]:
    """Yield a warning if the tool counted more rows than the archive has, or fewer."""
    if metric == "naturalbench":
        # The tool counts answers, and we count groups of four.
        yield from (answers.NOT_PRINTED,) if harness == "lmms-eval" else ()
        return
    counted = None if options.category else rows_counted(file, harness)
    if counted is not None and counted[0] != found:
        yield (
            f"{counted[1]} counts {counted[0]:,} rows, and the archive has {found:,}: rows were "
            "left out or added after the number was printed"
        )


def _notes(scores: tuple[ScoreAudit, ...], printed: Mapping[str, Printed]) -> Iterator[str]:
    if not printed:
        yield (
            "there is no printed number with the archive: the steps begin with the re-derived one; "
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
