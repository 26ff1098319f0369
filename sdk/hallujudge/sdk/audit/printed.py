"""Printed numbers: those that the user names, and those that tools leave beside their archives."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from fractions import Fraction
from pathlib import Path

from ..archives.archive_files import ArchiveFile, first_values
from ..archives.formats import read_format
from ..archives.layouts.reader import mapping_at
from ..archives.qa import read_mapping
from ..archives.records import read_records
from ..errors import ArchiveError, InvalidInputError
from .values import Printed

__all__ = ["beside_archive", "given_numbers", "rows_told"]

# A number as people and tools write it: 0.854, 85.4, 85.4%, 8.5e-05.
_NUMBER = re.compile(r"(\d{1,4}(?:\.\d{1,24})?)(?:e-(\d{1,2}))?(%?)", re.IGNORECASE)
_SAMPLES = re.compile(r"^(?P<before>\d[\dT_-]*_)?samples_(?P<task>.+?)(?P<after>_\d[\dT_.-]*)?$")
_TABLES = (".csv", ".tsv", ".xlsx", ".json")
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
    value = Fraction(digits) / 10**power
    unit = Fraction(1, 10 ** (len(digits.partition(".")[2]) + power))
    if percent or sign or value > 1:
        value, unit = value / 100, unit / 100
    if value > 1:
        raise InvalidInputError(f"{source}: {text!r:.40} is more than 100 percent")
    return Printed(value=value, unit=unit, source=source)


def beside_archive(
    archive: ArchiveFile, metric: str, harness: str, category: str, scores: Sequence[str]
) -> dict[str, Printed]:
    """Return the numbers that the tool left with its archive; empty if there are none.

    Raises:
        ArchiveError: A file of numbers can't be read.
    """
    if harness == "chair":
        return _of_chair(archive, scores)
    if category and harness != "vlmevalkit":
        # Other tools print no numbers of categories beside the archive.
        return {}
    if harness == "lmms-eval":
        return _of_lmms(archive, metric, scores)
    return _of_table(archive, category, scores) if harness == "vlmevalkit" else {}


def _our_name(metric: str, name: object) -> str:
    """Return our name of a score; lmms-eval adds the filter after a comma."""
    plain = str(name).partition(",")[0].strip()
    return _NAMES[metric].get(plain.casefold(), plain.casefold())


def _of_chair(archive: ArchiveFile, scores: Sequence[str]) -> dict[str, Printed]:
    source = archive.content.source
    whole = next(first_values(source), {})
    overall = mapping_at(whole, "overall_metrics")
    return _numbers("chair", overall, f"overall_metrics of {archive.file.name}", scores)


def _of_lmms(archive: ArchiveFile, metric: str, scores: Sequence[str]) -> dict[str, Printed]:
    path, task = _results_of(archive)
    if path is None:
        return {}
    entry = mapping_at(mapping_at(read_mapping(path, "results"), "results"), task)
    # lmms-eval's CHAIR is in percent, its POPE is not.
    percent = metric == "chair"
    return _numbers(metric, entry, f"{path.name}, task {task}", scores, percent=percent)


def rows_told(archive: ArchiveFile, harness: str) -> tuple[int, str] | None:
    """Return how many rows a tool says that it counted, and the file that says so.

    lmms-eval writes it beside its results, as ``n-samples``; None if there is no such number.
    """
    path, task = _results_of(archive) if harness == "lmms-eval" else (None, "")
    if path is None:
        return None
    told = mapping_at(mapping_at(read_mapping(path, "results"), "n-samples"), task).get("effective")
    return (told, path.name) if isinstance(told, int) and told > 0 else None


def _results_of(archive: ArchiveFile) -> tuple[Path | None, str]:
    """Return the results of a sample file of lmms-eval, if they are there, and its task."""
    path = next((p for p in _results_files(archive.file.path) if p.is_file()), None)
    return path, archive.task or archive.file.path.name.partition(".json")[0]


def _results_files(path: Path) -> Iterator[Path]:
    """Yield where releases of lmms-eval write the results of a sample file."""
    match = _SAMPLES.match(path.name.partition(".json")[0])
    before, after = (match["before"] or "", match["after"] or "") if match else ("", "")
    names = dict.fromkeys([f"{before}results{after}.json", "results.json"])
    return (path.with_name(name) for name in names)


def _of_table(archive: ArchiveFile, category: str, scores: Sequence[str]) -> dict[str, Printed]:
    path = archive.file.path
    stem = path.name.removesuffix(path.suffix).removesuffix("_auxmatch")
    tables = (path.with_name(f"{stem}{end}{s}") for end in ("_score", "_acc") for s in _TABLES)
    table = next((path for path in tables if path.is_file()), None)
    if table is None:
        return {}
    wanted = category or "Overall"
    for record in read_records(read_format(table).source):
        if str(record.values.get("split")) == wanted:
            values = {k: v for k, v in record.values.items() if k != "split"}
            return _numbers("pope", values, f"{table.name}, {wanted}", scores, percent=True)
    return {}


def _is_absent(value: object) -> bool:
    return str(value).strip().casefold() in ("", "nan", "n/a", "none")


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
