"""Sheets on which people score responses from 1 to 5, as in appendix C of the Tri-HE paper."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path
from random import Random

from hallujudge.sdk.archives.formats import read_format
from hallujudge.sdk.archives.json_files import amount, named, shown
from hallujudge.sdk.archives.records import Record, read_records
from hallujudge.sdk.comparison.named_runs import RunSource
from hallujudge.sdk.errors import ArchiveError, InvalidInputError
from hallujudge.sdk.report.export_formats import csv_text

from .analyzed_run import AnalyzedRun, analyzed_runs

GUIDELINE = """\
Look at the image, and score each response from 1 to 5:

5  Nothing in the response is hallucinated.
4  Most of its sentences are free of hallucination.
3  About half of its sentences are hallucinated.
2  Nearly all is hallucinated; one or two sentences fit the image and the question.
1  All is hallucinated or beside the point, or the response can hardly be understood.

A conclusion that defies common sense is hallucinated. So is one that may be true, but does not
follow from the image. Leave the score empty if you can't tell.
"""
"""The guideline for annotators: the paper's scale (Table 8) in our own words."""

# Table 8 of the paper.
_SCALE = range(1, 6)
_COLUMNS = ("key", "image", "item", "response", "score", "annotator")
# 48 bits: among 10,000 responses, two share a key in one of 5.6 million sheets.
_KEY_BYTES = 6


def score_sheet(*runs: RunSource, images: int, seed: int = 0) -> str:
    """Return a CSV sheet with the responses of runs to randomly drawn images.

    The responses of all runs are mixed, without the names of their models. Responses with the same
    item and text are one row.

    Args:
        runs: Folders of ``tri-he``.
        images: How many images to draw; the paper has 20.
        seed: Seed of the random numbers.

    Raises:
        InvalidInputError: The number is wrong, or a run is of another metric or keeps no responses.
        ArchiveError: A folder does not hold a complete run.
    """
    if images < 1:
        raise InvalidInputError(f"the number of images is {images}; give at least 1")
    rows: dict[str, tuple[str, str, str]] = {}
    # Numbers as names, since a sheet does not show which run a response is of.
    for run in analyzed_runs(runs, [str(number) for number in range(len(runs))]):
        rows |= _responses(run)
    # Sorted, so that the draw depends on the seed and not on the order of the runs.
    known = sorted({image for image, _, _ in rows.values()})
    rng = Random(seed)  # noqa: S311 - a seeded draw, no secret
    drawn = set(rng.sample(known, min(images, len(known))))
    # All responses to the drawn images, as in section 5.3 of the paper.
    chosen = sorted(key for key, (image, _, _) in rows.items() if image in drawn)
    # Mixed, since neighbours in the order of the runs would show which model wrote them.
    rng.shuffle(chosen)
    return csv_text(_COLUMNS, ((key, *rows[key], "", "") for key in chosen))


def _responses(run: AnalyzedRun) -> Iterator[tuple[str, tuple[str, str, str]]]:
    """Yield the key of each response, with its image, its item and its text."""
    if run.metric != "tri-he":
        raise InvalidInputError(f"{run.source}: a run of {run.metric}; give runs of tri-he")
    found = False
    for record in run.items():
        if (key := key_of(record)) is not None:
            found = True
            values = record.values
            yield key, (str(values["group_id"]), str(values["id"]), str(values["response"]))
    if not found:
        raise InvalidInputError(f"{run.source}: no responses; score without --no-text")


def key_of(record: Record) -> str | None:
    """Return what identifies a response in sheets; None without one.

    It begins with a letter, so that no spreadsheet takes it for a number.
    """
    response = record.values.get("response")
    if not isinstance(response, str) or not response.strip():
        return None
    # JSON may hold half of a surrogate pair, which UTF-8 refuses without the handler.
    text = f"{record.values['id']}\n{response}".encode("utf-8", "surrogatepass")
    return f"r{blake2b(text, digest_size=_KEY_BYTES).hexdigest()}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetScores:
    """The scores of filled sheets."""

    scores: Mapping[str, tuple[float, ...]]
    """Key of a response -> the scores of its annotators."""
    blank: int
    """Rows without a score."""

    def notes(self, known: Iterable[str]) -> Iterator[str]:
        """Yield what was left out.

        Args:
            known: The keys of the runs' responses.
        """
        if self.blank:
            blank = amount(self.blank, "row of the sheets has", "rows of the sheets have")
            yield f"{blank} no score yet"
        if unknown := sorted(self.scores.keys() - set(known)):
            others = amount(
                len(unknown), "response of the sheets is", "responses of the sheets are"
            )
            yield f"{others} in none of the runs: {named(unknown)}"


def read_sheets(paths: Sequence[str | Path]) -> SheetScores:
    """Return the scores of filled sheets, one for each annotator of a response.

    Raises:
        ArchiveError: A file is not such a sheet, a score is not on the scale, or an annotator has
            scored a response twice.
    """
    scores: dict[str, dict[str, float]] = {}
    blank = 0
    for path in paths:
        for record in read_records(read_format(Path(path)).source):
            key, annotator, score = _row(record, str(path))
            if score is None:
                blank += 1
                continue
            # Two scores of one person would count as agreement of two people.
            if annotator in scores.setdefault(key, {}):
                raise ArchiveError(
                    f"{record.place}: {annotator} has scored the response {key} before; name "
                    "several people in the column annotator"
                )
            scores[key][annotator] = score
    found = {key: tuple(of.values()) for key, of in scores.items()}
    return SheetScores(scores=found, blank=blank)


def _row(record: Record, file: str) -> tuple[str, str, float | None]:
    """Return the key, the annotator (the file, if none is named) and the score of a row."""
    values = record.values
    if missing := [name for name in ("key", "score") if name not in values]:
        raise ArchiveError(
            f"{record.place}: no column {missing[0]!r}; found {named(sorted(values))}. Give a "
            "sheet of hallujudge label scores"
        )
    key, annotator = str(values["key"]), str(values.get("annotator") or file)
    # A column of numbers with an empty cell becomes one of floats in many tools.
    given = str("" if values["score"] is None else values["score"]).strip().removesuffix(".0")
    if not given:
        return key, annotator, None
    if given not in map(str, _SCALE):
        raise ArchiveError(
            f"{record.place}: the score is {shown(values['score'])}; give a whole number from 1 "
            "to 5, or none"
        )
    return key, annotator, float(given)
