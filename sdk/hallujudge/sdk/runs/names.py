"""Names of the files in a run's folder."""

from __future__ import annotations

from pathlib import Path

from ..analysis import ANALYSIS_FILE

__all__ = [
    "CALIBRATION",
    "CASCADE",
    "ITEMS",
    "JOURNAL",
    "MANIFEST",
    "MARKS",
    "PAGE",
    "PARQUET",
    "PARSERS",
    "REPORT",
    "STALE",
    "VERDICTS",
    "partial",
    "staged",
]

ITEMS, REPORT, PAGE, PARQUET = "items.jsonl", "report.json", "report.html", "items.parquet"
MANIFEST, JOURNAL = "manifest.json", "journal.bin"

MARKS = "marks.bin"
"""Places of the archive at which a resumed run can begin to read; removed with the last item."""

CALIBRATION = "calibration.json"
"""The scores corrected by human labels, which ``calibrate`` writes."""

CASCADE = "cascade.json"
"""The margin from which on verdicts are kept, which ``calibrate --agreement`` writes."""

PARSERS = "parsers.json"
"""The comparison of answer parsers, which ``score pope --all-parsers`` writes."""

VERDICTS = "verdicts.sqlite"
"""The verdict cache of a run whose settings name none."""

STALE = (REPORT, PAGE, PARQUET, ANALYSIS_FILE, PARSERS, CALIBRATION, CASCADE)
"""Files about other items: an earlier run's, removed when new results are swapped in."""


def partial(folder: Path, name: str) -> Path:
    """Return where a file is written until the run is complete."""
    stem, _, suffix = name.partition(".")
    return folder / f"{stem}.partial.{suffix}"


def staged(folder: Path, name: str) -> Path:
    """Return where a complete file waits to be swapped in."""
    return folder / f".{name}.part"
