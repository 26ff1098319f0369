"""Files of a run's folder about labels: the plan, the labels, the calibration, the cascade."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from hallujudge.metrics.calibration.calibrated_scores import Calibration
from hallujudge.metrics.framework.json_values import file_text
from hallujudge.metrics.framework.signature import judge_of
from hallujudge.sdk.errors import InvalidInputError, OutputError
from hallujudge.sdk.report.export_formats import csv_text
from hallujudge.sdk.report.report_text import cut
from hallujudge.sdk.runs.manifest import CALIBRATION, CASCADE
from hallujudge.sdk.runs.stored_runs import StoredRun, read_run

from .human_labels import (
    FoundLabels,
    Label,
    MatchedLabels,
    find_labels,
    match_labels,
    matched_labels,
    read_labels,
)
from .label_plans import By, LabelPlan, plan_labels, read_plan
from .verdicts import read_verdicts

LABELS, PLAN = "labels.jsonl", "label-plan.json"

# A cell of a sheet holds the beginning of a long response.
_RESPONSE_CHARS = 2_000


def labels_text(labels: Iterable[Label]) -> str:
    """Return the text of ``labels.jsonl``."""
    lines = (json.dumps(label.to_json(), ensure_ascii=False) for label in labels)
    return "".join(f"{line}\n" for line in lines)


def cascade_text(calibration: Calibration, reference: str = "") -> str:
    """Return the text of ``cascade.json``; empty if no margin was asked for.

    Args:
        calibration: What the margin was learnt from.
        reference: Signature of the run whose verdicts were taken for labels; empty for labels.
    """
    if calibration.cascade is None:
        return ""
    content = {
        "metric": calibration.metric,
        # The option --cascade refuses a margin that was learnt of another judge.
        "judge": judge_of(calibration.run_signature),
        **asdict(calibration.cascade),
        "labels_sha256": calibration.labels_sha256,
        "reference": judge_of(reference) if reference else "",
        "run_signature": calibration.run_signature,
    }
    return file_text("cascade", content)


def write_calibration(folder: Path, calibration: Calibration) -> Path:
    """Write ``calibration.json`` into a run's folder, and return its path.

    Raises:
        OutputError: It can't be written.
    """
    return _write_text(folder / CALIBRATION, calibration.to_text())


def write_cascade(folder: Path, calibration: Calibration, reference: str = "") -> Path | None:
    """Write ``cascade.json`` into a run's folder, and return its path; None without a margin.

    Raises:
        OutputError: It can't be written.
    """
    text = cascade_text(calibration, reference)
    return _write_text(folder / CASCADE, text) if text else None


def _write_text(path: Path, text: str) -> Path:
    try:
        path.write_text(text, encoding="utf-8")
    except OSError as err:
        raise OutputError.of(path, err, "check the folder of the run") from err
    return path


@dataclass(frozen=True, slots=True, kw_only=True)
class AddedLabels:
    """The labels of a run after files were added."""

    path: Path
    """The file of labels."""
    found: FoundLabels
    """What it holds."""
    matched: MatchedLabels
    """The same by claim and item of the run."""
    note: str
    """Warnings about labels that replaced others, or are of another run; empty without any."""


def add_labels(folder: Path, files: Sequence[Path]) -> AddedLabels:
    """Add files of labels to those of a run's folder.

    Raises:
        InvalidInputError: No label is of the run.
        ArchiveError: A file can't be read.
        OutputError: The labels can't be written.
    """
    run = read_run(folder)
    path = run.folder / LABELS
    items = list(read_verdicts(run))
    # The run's own labels come first, so that new ones replace them.
    found = find_labels(*([path] if path.exists() else []), *files, items=items)
    labels = found.labels
    # Before the file is written: if no label is of this run, the file stays as it was.
    matched = matched_labels(labels, items, str(folder))
    _write_text(path, labels_text(labels))
    return AddedLabels(
        path=path,
        found=found,
        matched=matched,
        note=" ".join(filter(None, (found.changed_note, _other_run(labels, run)))),
    )


def _other_run(labels: Sequence[Label], run: StoredRun) -> str:
    """Return a warning about labels that name another run; empty if there are none."""
    named = [label.run for label in labels if label.run]
    own = run.identity() if named else ""
    others = sum(name != own for name in named)
    if not others:
        return ""
    return (
        f"{others:,} of {len(labels):,} labels were given to another run: to other responses, "
        "references or settings. Check that they are about the same responses."
    )


def next_plan(
    folder: Path, path: Path, *, count: int, by: By | None = None, seed: int | None = None
) -> LabelPlan:
    """Return what to label next in a run's folder.

    Args:
        folder: The run's folder.
        path: The plan, which is extended if it exists.
        count: How many more to label.
        by: Whether to draw claims or items; None for what the plan draws, or claims.
        seed: Seed of the random numbers; None for that of the plan, or 0.

    Raises:
        InvalidInputError: The plan draws other units or has another seed, or see
            :func:`plan_labels`.
        ArchiveError: A file can't be read.
    """
    run = read_run(folder)
    items = list(read_verdicts(run))
    before = read_plan(path) if path.exists() else None
    if before is not None:
        _check_kept(path, before, by, seed)
    truths: dict[tuple[str, int | None], bool] = {}
    if (run.folder / LABELS).exists():
        matched = match_labels(read_labels(run.folder / LABELS), items)
        truths |= {(item, None): truth for item, truth in matched.items.items()}
        truths |= dict(matched.claims.items())
    return plan_labels(
        items,
        signature=run.signature,
        count=count,
        by=by or "claim",
        seed=seed or 0,
        before=before,
        truths=truths,
    )


def _check_kept(path: Path, before: LabelPlan, by: By | None, seed: int | None) -> None:
    """Check that an earlier plan may be extended: what it draws and its seed stay."""
    if by not in (None, before.by):
        # Units drawn in two ways, or from two seeds, would have unknown chances to be labelled.
        why = f"draws {before.by}s, not {by}s"
    elif seed not in (None, before.seed):
        why = f"has the seed {before.seed}, not {seed}"
    else:
        return
    raise InvalidInputError(
        f"{path}: the plan {why}; extend it without the option, give another --out, or delete it"
    )


def plan_sheet(made: LabelPlan, run: Path) -> str:
    """Return a sheet to fill in, with what a person needs to see next to each claim."""
    items = {item.id: item for item in read_verdicts(read_run(run))}
    rows = (
        (
            *(unit.item, unit.claim, unit.text, items[unit.item].cluster),
            *(cut(items[unit.item].response, _RESPONSE_CHARS), "", ""),
        )
        for unit in made.units
    )
    return csv_text(("item", "claim", "text", "image", "response", "label", "annotator"), rows)
