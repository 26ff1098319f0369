"""The numbers that a tool printed: given, or beside its archive; totals compared with a run."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from hallujudge.metrics import Report
from hallujudge.sdk.archives.archive_files import Archive, first_values, open_file
from hallujudge.sdk.archives.formats import read_format
from hallujudge.sdk.archives.found_files import found_files
from hallujudge.sdk.archives.joins import read_mapping
from hallujudge.sdk.archives.layouts.archive_reader import mapping_at
from hallujudge.sdk.archives.layouts.harnesses import RESULTS_READERS
from hallujudge.sdk.archives.records import read_records
from hallujudge.sdk.errors import ArchiveError, InvalidInputError
from hallujudge.sdk.report.report_text import show_number
from hallujudge.sdk.report.table_pages import Grid, Page, Shown, values_of
from hallujudge.sdk.runs.stored_runs import read_run

from .waterfall import Printed

# Metrics whose numbers lmms-eval prints in percent.
_LMMS_PERCENT = frozenset({"chair"})
# A number as people and tools write it: 0.854, 85.4, 85.4%, 8.5e-05.
_NUMBER = re.compile(r"(\d{1,4}(?:\.\d{1,24})?)(?:e-(\d{1,2}))?(%?)", re.IGNORECASE)
# lmms-eval puts the time of a run before the name, lm-evaluation-harness after it; the results file
# has the same time.
_SAMPLES = re.compile(r"^(?P<before>\d[\dT_-]*_)?samples_(?P<task>.+?)(?P<after>_\d[\dT_.-]*)?$")
_SCORE_SUFFIXES = (".csv", ".tsv", ".xlsx", ".json")
# Tool's name in small letters -> ours. VLMEvalKit's Overall is F1.
_NAMES: Mapping[str, Mapping[str, str]] = {
    "pope": {
        "acc": "accuracy",
        "pope_accuracy": "accuracy",
        "pope_precision": "precision",
        "pope_recall": "recall",
        "pope_f1_score": "f1",
        "f1_score": "f1",
        "overall": "f1",
        "pope_yes_ratio": "yes_ratio",
    },
    "chair": {
        "chairi": "chair_i",
        "chairs": "chair_s",
        "coco_cap_chair_i": "chair_i",
        "coco_cap_chair_s": "chair_s",
        "coco_cap_chair_recall": "recall",
        "coco_cap_recall": "recall",
    },
    "naturalbench": {
        "naturalbench_q_acc": "question_accuracy",
        "naturalbench_i_acc": "image_accuracy",
        "naturalbench_g_acc": "group_accuracy",
        "acc": "accuracy",
        "q_acc": "question_accuracy",
        "i_acc": "image_accuracy",
        "g_acc": "group_accuracy",
    },
    "crpe": {"exact_match": "accuracy", "total": "accuracy"},
    "vlms-are-biased": {"overall_acc": "accuracy"},
}


def given_numbers(texts: Sequence[str], metric: str, scores: Sequence[str]) -> dict[str, Printed]:
    """Return the numbers that a user named, such as ``accuracy=0.854``.

    Raises:
        InvalidInputError: A text is not a score with a number.
    """
    found: dict[str, Printed] = {}
    for text in texts:
        name, equals, number = text.partition("=")
        if not equals:
            raise InvalidInputError(
                f"--printed {text!r:.80}: give a score and its number, such as accuracy=0.854"
            )
        name = _our_name(metric, name)
        if name not in scores:
            raise InvalidInputError(
                f"--printed {text!r:.80}: {name!r:.40} is not one of {', '.join(scores)}"
            )
        found[name] = number_of(number.strip(), "--printed")
    return found


def number_of(text: str, source: str, *, percent: bool = False) -> Printed:
    """Return a printed number; one above 1, or with a percent sign, is in percent.

    Raises:
        InvalidInputError: The text is not a number between 0 and 100.
    """
    match = _NUMBER.fullmatch(text)
    if match is None:
        raise InvalidInputError(
            f"{source}: {text!r:.40} is not a number such as 0.854, 85.4 or 85.4%"
        )
    digits, power, sign = match[1], int(match[2] or 0), match[3]
    # Fractions, since the shares of all causes must add up to the printed number exactly.
    value = Fraction(digits) / 10**power
    unit = Fraction(1, 10 ** (len(digits.partition(".")[2]) + power))
    # 1 alone is the whole, not one percent.
    if percent or sign or value > 1:
        value, unit = value / 100, unit / 100
    if value > 1:
        raise InvalidInputError(f"{source}: {text!r:.40} is more than 100 percent")
    return Printed(value=value, unit=unit, source=source)


def numbers_of_archive(
    archive: Archive, metric: str, harness: str, category: str, scores: Sequence[str]
) -> dict[str, Printed]:
    """Return the numbers that the tool left with its archive; empty if there are none.

    Raises:
        ArchiveError: A file of numbers can't be read.
    """
    if harness == "chair":
        return _of_chair(archive, scores)
    if category and harness != "vlmevalkit":
        # Other tools leave no numbers of categories with the archive.
        return {}
    if harness == "lmms-eval":
        path, task = _results_of(archive)
        return {} if path is None else numbers_of_results(path, metric, scores).get(task, {})
    return _of_table(archive, metric, category, scores) if harness == "vlmevalkit" else {}


def rows_counted(archive: Archive, harness: str) -> tuple[int, str] | None:
    """Return how many rows a tool reports to have counted, and the file with that number.

    lmms-eval writes it with its results, as ``n-samples``; None if there is no such number.
    """
    path, task = _results_of(archive) if harness == "lmms-eval" else (None, "")
    if path is None:
        return None
    # "original" would be the size of the data set, "effective" is what a limit left of it.
    counted = mapping_at(mapping_at(read_mapping(path, "results"), "n-samples"), task).get(
        "effective"
    )
    return (counted, path.name) if isinstance(counted, int) and counted > 0 else None


def _our_name(metric: str, name: object) -> str:
    """Return our name of a score; lmms-eval adds the filter after a comma."""
    plain = str(name).partition(",")[0].strip().casefold()
    return _NAMES.get(metric, {}).get(plain, plain)


def _of_chair(archive: Archive, scores: Sequence[str]) -> dict[str, Printed]:
    source = archive.content.source
    whole = next(first_values(source), {})
    overall = mapping_at(whole, "overall_metrics")
    return _numbers("chair", overall, f"overall_metrics of {archive.file.name}", scores)


def numbers_of_results(
    path: Path, metric: str, scores: Sequence[str]
) -> dict[str, dict[str, Printed]]:
    """Return the numbers of each task that a results file of lmms-eval has of a metric.

    Raises:
        ArchiveError: The file can't be read, or a score in it is not a number.
    """
    tasks = mapping_at(read_mapping(path, "results"), "results")
    percent = metric in _LMMS_PERCENT
    found = {
        task: _numbers(
            metric, mapping_at(tasks, task), f"{path.name}, task {task}", scores, percent=percent
        )
        for task in tasks
    }
    return {task: numbers for task, numbers in found.items() if numbers}


def _results_of(archive: Archive) -> tuple[Path | None, str]:
    """Return the results of a sample file of lmms-eval, if they are there, and its task."""
    path = next((p for p in _results_files(archive.file.path) if p.is_file()), None)
    return path, archive.task or archive.file.path.name.partition(".json")[0]


def _results_files(path: Path) -> Iterator[Path]:
    """Yield where releases of lmms-eval write the results of a sample file."""
    match = _SAMPLES.match(path.name.partition(".json")[0])
    before, after = (match["before"] or "", match["after"] or "") if match else ("", "")
    names = dict.fromkeys([f"{before}results{after}.json", "results.json"])
    return (path.with_name(name) for name in names)


def _of_table(
    archive: Archive, metric: str, category: str, scores: Sequence[str]
) -> dict[str, Printed]:
    path = archive.file.path
    # Scores are named after the predictions, also those of the judged copy.
    stem = path.name.removesuffix(path.suffix).removesuffix("_auxmatch")
    tables = (
        path.with_name(f"{stem}{end}{s}") for end in ("_score", "_acc") for s in _SCORE_SUFFIXES
    )
    table = next((path for path in tables if path.is_file()), None)
    if table is None:
        return {}
    wanted = category or ("total" if metric == "crpe" else "Overall")
    if metric == "crpe":
        value = {"accuracy": read_mapping(table, "scores").get(wanted)}
        return _numbers(metric, value, f"{table.name}, {wanted}", scores)
    for record in read_records(read_format(table).source):
        if str(record.values.get("split")) == wanted:
            values = {k: v for k, v in record.values.items() if k != "split"}
            # VLMEvalKit writes the scores of POPE in percent.
            return _numbers("pope", values, f"{table.name}, {wanted}", scores, percent=True)
    return {}


def _numbers(
    metric: str,
    values: Mapping[str, object],
    source: str,
    scores: Sequence[str],
    *,
    percent: bool = False,
) -> dict[str, Printed]:
    found: dict[str, Printed] = {}
    for name, value in values.items():
        ours = _our_name(metric, name)
        # Tools print nan, or N/A, for a score that is undefined.
        if ours in scores and isinstance(value, (int, float, str)) and not _is_absent(value):
            try:
                found[ours] = number_of(str(value).strip(), source, percent=percent)
            except InvalidInputError as err:
                raise ArchiveError(f"{err}; score {name!r:.40}") from err
    return found


def _is_absent(value: object) -> bool:
    return str(value).strip().casefold() in ("", "nan", "n/a", "none")


# Totals and a run --------------------------------------------------------------------------------


_KEYS = ("task", "score", "printed", "ours", "difference")
_DIGITS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PrintedTotal:
    """A printed number and ours."""

    task: str
    """The tool's task."""
    score: str
    """Our name of the score."""
    printed: float
    """The tool's number, as a fraction."""
    ours: float
    """The run's score."""
    difference: float
    """Ours minus printed; 0 if the printed digits agree."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TotalsAudit(Shown):
    """A results file without responses, next to a run of the same answers."""

    schema = "totals-audit"

    archive: str
    """The results file."""
    run: str
    """The run's folder."""
    metric: str
    signature: str
    """The run's signature."""
    totals: tuple[PrintedTotal, ...]
    """The scores that both have."""

    def page(self) -> Page:
        """Return the numbers as a table."""
        grid = Grid(
            title="Printed totals and ours",
            headings=_KEYS,
            rows=tuple(
                (
                    total.task,
                    total.score,
                    show_number(total.printed, digits=_DIGITS),
                    show_number(total.ours, digits=_DIGITS),
                    show_number(total.difference, signed=True, digits=_DIGITS),
                )
                for total in self.totals
            ),
            keys=_KEYS,
            values=values_of(self.totals, _KEYS),
        )
        return Page(
            title=f"{self.metric}: the totals of {Path(self.archive).name}, and ours",
            grids=(grid,),
            sentences=(
                "The file holds totals only, so what explains a difference can't be found: audit "
                "the sample files for that.",
            ),
            sources={self.run: self.signature},
        )


def audit_totals(archive: str | Path, run: str | Path) -> TotalsAudit:
    """Compare the totals of a results file with the scores of a run.

    Args:
        archive: The results file of lmms-eval or lm-evaluation-harness.
        run: The folder of the run.

    Raises:
        ArchiveError: The file is of another kind, or the folder does not hold a complete run.
        InvalidInputError: The file has no number of the run's metric.
    """
    files = found_files(archive)
    if len(files) != 1 or open_file(files[0]).reader not in RESULTS_READERS:
        raise ArchiveError(
            f"{archive} is not a results file of lmms-eval, which a run is compared with; leave "
            "the run out to audit an archive of answers"
        )
    # The file has no responses, so that ours are those of a run of the same answers.
    report = read_run(run).report
    totals = tuple(_totals(files[0].path, report))
    if not totals:
        raise InvalidInputError(
            f"{archive}: no task has a number of a score of {report.metric}; give a run of its "
            "metric"
        )
    return TotalsAudit(
        archive=str(archive),
        run=str(run),
        metric=report.metric,
        signature=report.signature,
        totals=totals,
    )


def _totals(path: Path, report: Report) -> Iterator[PrintedTotal]:
    found = numbers_of_results(path, report.metric, list(report.scores))
    for task, numbers in found.items():
        for name, printed in numbers.items():
            ours = report.scores[name].value
            if ours is not None:
                exact = Fraction(ours) - printed.value
                # Digits that the tool left out are not a difference.
                agrees = abs(exact) <= printed.unit / 2
                yield PrintedTotal(
                    task=task,
                    score=name,
                    printed=float(printed.value),
                    ours=ours,
                    difference=0.0 if agrees else float(exact),
                )
