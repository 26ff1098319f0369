"""A run's main score as the Hugging Face Hub shows it on the page of a model.

The Hub reads ``.eval_results/*.yaml`` of a model's repository, and lists the values of a benchmark
dataset as a leaderboard. An entry has one value; variant, interval, unscored items and signature
are in its notes.
"""

from __future__ import annotations

import json
import re
from datetime import UTC, datetime
from pathlib import Path

from hallujudge.metrics import Report
from hallujudge.sdk.errors import InvalidInputError, OutputError
from hallujudge.sdk.report.report_text import interval_label, main_score_of

FOLDER = ".eval_results"
"""The folder in the repository of a model."""

_DATASET = re.compile(r"([\w.-]+/[\w.-]+)(?::([\w.-]+))?", re.ASCII)
_TASK = "default"


def checked_dataset(dataset: str) -> tuple[str, str]:
    """Return the id of a dataset and the task within it.

    Raises:
        InvalidInputError: It is not the id of a dataset on the Hub.
    """
    found = _DATASET.fullmatch(dataset)
    if found is None:
        raise InvalidInputError(
            "hf-eval-results needs the benchmark's dataset on the Hub as ORG/NAME or "
            f"ORG/NAME:TASK, such as lmms-lab/POPE, not {dataset!r:.80}; give it with "
            "log_to(dataset=…)"
        )
    return found[1], found[2] or _TASK


def write_hub_results(report: Report, folder: Path, *, dataset: str) -> Path:
    """Write the entry of a report, and return its file.

    Args:
        report: The report.
        folder: A copy of the model's repository.
        dataset: The benchmark's dataset on the Hub, as ``ORG/NAME`` or ``ORG/NAME:TASK``.

    Raises:
        InvalidInputError: The dataset is not such an id, or the score has no value.
        OutputError: The file can't be written.
    """
    name, task = checked_dataset(dataset)
    main = main_score_of(report)
    if not main or report.scores[main].value is None:
        raise InvalidInputError(
            f"the {report.metric} report has no score with a value, and an entry of the Hub is a "
            "number; print(report) shows why"
        )
    target = folder / FOLDER / f"{report.metric}_{report.variant}.yaml"
    # Texts in JSON's quotes are YAML too.
    lines = [
        f"- dataset:\n    id: {_quoted(name)}\n    task_id: {_quoted(task)}",
        f"  value: {report.scores[main].value!r}",
        f"  date: {_quoted(datetime.now(UTC).strftime('%Y-%m-%d'))}",
        f"  notes: {_quoted(_notes(report, main))}",
    ]
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    except OSError as err:
        raise OutputError.of(target, err, "give another folder") from err
    return target


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def _notes(report: Report, main: str) -> str:
    score, coverage = report.scores[main], report.coverage
    parts = [f"hallujudge {report.metric} ({report.variant}), {main}"]
    if score.ci_low is not None and score.ci_high is not None:
        parts.append(f"{interval_label(report)} {score.ci_low:.4f} to {score.ci_high:.4f}")
    parts.append(f"{coverage.items} items, {coverage.unscored} unscored")
    if (bound := coverage.bounds.get(main)) is not None:
        parts.append(f"best case {bound.best:.4f}, worst case {bound.worst:.4f}")
    return "; ".join([*parts, f"signature {report.signature}"])
