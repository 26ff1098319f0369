"""Steps from a printed number to ours: rows, causes and shares, and the audit that shows them.

A *stage* is one way of counting: it assigns a few numbers to every row of an archive. A score is a
ratio of their sums, kept as a fraction, so that nothing is lost to floating point. Each stage
changes one thing in the stage before it, and the change of the score is the share of that cause.

The change from N/D to N'/D' is also the sum over rows of (n' - n - (d' - d) N/D) / D', where n, d
and n', d' are a row's numbers before and after. That is each row's own share.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple, TypeAlias, TypeVar

from hallujudge.metrics import Item, ItemResult, Outcome, Report
from hallujudge.metrics.framework.results import JsonValue
from hallujudge.sdk.archives import InputOptions, read_items
from hallujudge.sdk.archives.bad_records import without_skip
from hallujudge.sdk.archives.inputs import declared_inputs
from hallujudge.sdk.archives.opened_archives import open_responses
from hallujudge.sdk.archives.records import Record, read_records
from hallujudge.sdk.backends import BatchResult
from hallujudge.sdk.client import Client
from hallujudge.sdk.report.report_text import ABSENT, show_number
from hallujudge.sdk.report.table_pages import Cell, Grid, Page, Shown

_DIGITS = 5
_Row = TypeVar("_Row")


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditOptions:
    """What an archive's numbers are compared with, and how it is read."""

    references: tuple[str | Path, ...] = ()
    """Files of references, for archives without labels or objects."""
    printed: tuple[str, ...] = ()
    """Printed numbers, such as ``accuracy=0.854`` or ``f1=85.4%``; they replace those found."""
    harness: str = ""
    """The tool that printed the numbers; empty if the layout identifies it."""
    category: str = ""
    """The only category that the printed numbers are about, such as ``random``."""
    variant: str = ""
    """Our metric's variant; empty for its default."""
    join: str = "auto"
    """For POPE: how answers find their questions, as in ``hallujudge score pope``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit(Shown):
    """A tool's numbers, re-derived from its archive, and why ours differ."""

    schema = "audit"

    archive: str
    harness: str
    """The tool."""
    metric: str
    """Our metric."""
    signature: str
    """Signature of our scores."""
    causes: tuple[Cause, ...]
    """The causes, in the order of the steps."""
    scores: tuple[ScoreAudit, ...]
    notes: tuple[str, ...]
    """Warnings, one sentence each."""
    rows: Sequence[Row]
    """The rows of the archive."""
    stages: tuple[Stage, ...]
    """The ways of counting, from the tool's to ours."""
    ratios: Mapping[str, Ratio]
    """Score -> its definition."""

    def items(self) -> Iterator[ItemShare]:
        """Yield the rows behind each cause, with their shares."""
        columns = columns_of(self.ratios[score.name] for score in self.scores)
        for before, after in pairwise(self.stages):
            # Once for all rows: shares of a stage sum to its cause's share exactly, as fractions.
            shares = {s.name: shares_of(before, after, self.ratios[s.name]) for s in self.scores}
            for place in changed_rows(before, after, columns):
                yield ItemShare(
                    cause=after.cause,
                    row=self.rows[place],
                    before=before.counts[place],
                    after=after.counts[place],
                    shares={name: of.get(place, Fraction(0)) for name, of in shares.items()},
                )

    def to_json(self) -> Mapping[str, JsonValue]:
        """Return the audit as plain values."""
        return {
            "archive": self.archive,
            "harness": self.harness,
            "metric": self.metric,
            "signature": self.signature,
            "causes": [asdict(cause) for cause in self.causes],
            "scores": {score.name: score.to_json() for score in self.scores},
            "notes": list(self.notes),
        }

    def page(self) -> Page:
        """Return the audit as tables and sentences."""
        printed = {
            f"printed {score.name}": score.printed.source
            for score in self.scores
            if score.printed is not None
        }
        return Page(
            title=f"{self.metric}: the numbers of {self.harness}, and ours",
            grids=(steps(self.scores, self.causes, self.stages[0].rows),),
            sentences=(
                *(f"{cause.name}: {cause.meaning}" for cause in self.causes if self._counts(cause)),
                "Each column adds up from the first number to ours. Shares depend on the order of "
                "the steps.",
            ),
            notes=self.notes,
            sources={"archive": self.archive, **printed, "signature": self.signature},
        )

    def _counts(self, cause: Cause) -> bool:
        """Return whether a cause changes a row or a score."""
        return bool(cause.items) or any(score.shares.get(cause.name) for score in self.scores)


@dataclass(frozen=True, slots=True, kw_only=True)
class Printed:
    """A number that a tool printed."""

    value: Fraction
    """The number as a fraction in [0, 1]."""
    unit: Fraction
    """The value of its last digit."""
    source: str
    """Where it is from."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Row:
    """A row of an archive that is counted."""

    id: str
    """Id of the item."""
    response: str
    """What the model wrote; empty if the archive has no response."""
    label: str = ""
    """The right answer; empty where there are none."""
    category: str = ""
    """Category of the row, or several with commas; empty without one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Cause:
    """A cause of a difference."""

    name: str
    """Name of the cause."""
    meaning: str
    """What it is, in a sentence."""
    items: int | None
    """How many rows it changes; None if it is about the number as a whole."""
    rows: int | None
    """How many rows count after it, repeated ones repeatedly; None as above."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScoreAudit:
    """One score, from the printed number to ours."""

    name: str
    """Name of the score."""
    printed: Printed | None
    """The printed number; None if there is none, and the steps begin at the re-derived one."""
    rederived: Fraction
    """The score by the tool's own rules, from the archive."""
    ours: Fraction
    """Our score."""
    shares: Mapping[str, Fraction]
    """Cause -> change of the score, in order; they add up to ours minus the first number."""

    @property
    def first(self) -> Fraction:
        """The number that the steps begin with."""
        return self.rederived if self.printed is None else self.printed.value

    def to_json(self) -> dict[str, JsonValue]:
        """Return the score as an object; ``exact`` has every number as a ratio."""
        exact = {name: str(share) for name, share in self.shares.items()}
        printed = self.printed
        return {
            "printed": None if printed is None else float(printed.value),
            "printed_in": "" if printed is None else printed.source,
            "rederived": float(self.rederived),
            "ours": float(self.ours),
            "difference": float(self.ours - self.first),
            "shares": {name: float(share) for name, share in self.shares.items()},
            "exact": {"first": str(self.first), "shares": dict(exact), "ours": str(self.ours)},
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ItemShare:
    """What one row contributes to one cause."""

    cause: str
    """Name of the cause."""
    row: Row
    before: Mapping[str, int]
    """How the row is counted before."""
    after: Mapping[str, int]
    """How the row is counted after; empty if it is not."""
    shares: Mapping[str, Fraction]
    """Score -> the row's share of the cause's share."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the line of the file of items."""
        row = self.row
        return {
            "cause": self.cause,
            "id": row.id,
            "category": row.category,
            "label": row.label,
            "response": row.response,
            "before": dict(self.before),
            "after": dict(self.after),
            "shares": {name: float(share) for name, share in self.shares.items()},
        }


def steps(scores: Sequence[ScoreAudit], causes: Sequence[Cause], rows: int) -> Grid:
    """Return the steps from the printed numbers to ours, with a column for each score.

    Args:
        scores: The scores.
        causes: The causes; the first two are about the printed numbers as a whole.
        rows: How many rows the tool counts.
    """
    names = tuple(score.name for score in scores)
    columns = [_column(score, causes) for score in scores]
    heads = [
        ("printed", ABSENT, ABSENT),
        *((c.name, _whole(c.items), _whole(c.rows)) for c in causes[:2]),
        ("re-derived", ABSENT, _whole(rows)),
        *((c.name, _whole(c.items), _whole(c.rows)) for c in causes[2:]),
        ("ours", ABSENT, _whole(causes[-1].rows)),
    ]
    return Grid(
        title="From the printed numbers to ours",
        headings=("step", "items", "rows", *names),
        rows=tuple((*head, *cells) for head, *cells in zip(heads, *columns, strict=True)),
        keys=("cause", "items", "rows", *names),
        values=tuple(_step_values(scores, cause) for cause in causes),
    )


def _whole(number: int | None) -> str:
    return ABSENT if number is None else f"{number:,}"


def _step_values(scores: Sequence[ScoreAudit], cause: Cause) -> tuple[Cell, ...]:
    shares = (score.shares.get(cause.name) for score in scores)
    return (
        cause.name,
        cause.items,
        cause.rows,
        *(None if share is None else float(share) for share in shares),
    )


def _column(score: ScoreAudit, causes: Sequence[Cause]) -> list[str]:
    """Return a score's cells: differences of rounded sums, so that they add up as shown."""
    # Sums are rounded and not differences, or the column would not add up as it is shown.
    sums = [score.first]
    for cause in causes:
        sums.append(sums[-1] + score.shares.get(cause.name, Fraction(0)))
    shown = [round(number, _DIGITS) for number in sums]
    steps = [
        show_number(float(after - before), signed=True, digits=_DIGITS)
        if cause.name in score.shares
        else ABSENT
        for cause, (before, after) in zip(causes, pairwise(shown), strict=True)
    ]
    # The first two causes lead from the printed number to the re-derived one.
    first, rederived, ours = (
        show_number(float(number), digits=_DIGITS) for number in (shown[0], shown[2], shown[-1])
    )
    printed = ABSENT if score.printed is None else first
    return [printed, *steps[:2], rederived, *steps[2:], ours]


Counts: TypeAlias = "Mapping[str, int]"
"""Column -> number, of one row or of all; an absent column is zero."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Ratio:
    """A score as a ratio of sums of columns; a repeated column counts repeatedly."""

    numerator: tuple[str, ...]
    """Columns that are added up."""
    denominator: tuple[str, ...]
    """The same."""


class Stage(NamedTuple):
    """One way of counting the rows of an archive."""

    cause: str
    """Name of what changes in this stage."""
    meaning: str
    """What changes, in a sentence."""
    counts: Sequence[Counts]
    """Numbers of each row; an empty mapping if the row does not count."""

    @property
    def rows(self) -> int:
        """How many rows count, repeated ones repeatedly."""
        return sum(row.get("rows", 0) for row in self.counts)


def stages_of(
    tool: str,
    rules: Mapping[str, str],
    rows: Sequence[_Row],
    count: Callable[[_Row, Collection[str]], Counts],
) -> list[Stage]:
    """Return the ways of counting rows: by all rules of a tool, then without one after another.

    Args:
        tool: Whose rules they are, as sentences name it.
        rules: Cause -> meaning: the rules that are left out. One that is out stays out, so that
            the causes add up.
        rows: The rows.
        count: Returns how a row is counted by the causes whose rules are in force.
    """
    kept = {*rules}
    first = [count(row, kept) for row in rows]
    stages = [Stage("re-derived", f"by the {tool}'s rules, from the archive", first)]
    for cause, meaning in rules.items():
        kept = kept - {cause}
        stages.append(Stage(cause, meaning, [count(row, kept) for row in rows]))
    return stages


def columns_of(ratios: Iterable[Ratio]) -> frozenset[str]:
    """Return the columns that scores depend on, and that of the rows."""
    used = (column for ratio in ratios for column in (*ratio.numerator, *ratio.denominator))
    return frozenset(["rows", *used])


def _added(row: Counts, columns: Sequence[str]) -> int:
    return sum(row.get(column, 0) for column in columns)


def _total(stage: Stage, columns: Sequence[str]) -> int:
    return sum(_added(row, columns) for row in stage.counts)


def score_of(stage: Stage, ratio: Ratio) -> Fraction | None:
    """Return a score in a stage; None if its denominator is zero."""
    bottom = _total(stage, ratio.denominator)
    return Fraction(_total(stage, ratio.numerator), bottom) if bottom else None


def changed_rows(before: Stage, after: Stage, columns: Collection[str]) -> Iterator[int]:
    """Yield the positions of the rows that two stages count differently in some columns."""
    for place, (old, new) in enumerate(zip(before.counts, after.counts, strict=True)):
        if old != new and any(old.get(name, 0) != new.get(name, 0) for name in columns):
            yield place


def shares_of(before: Stage, after: Stage, ratio: Ratio) -> dict[int, Fraction]:
    """Return each changed row's share of a score's change; they add up to it.

    Rows that do not change the score's columns are left out. Both stages must have the score.
    """
    start = score_of(before, ratio)
    bottom = _total(after, ratio.denominator)
    assert start is not None, "the caller left out scores without a value"
    shares: dict[int, Fraction] = {}
    # With top = score * bottom before: after - before = (change of top - before * change of bottom)
    # / bottom after. Both changes are sums over rows, which makes this share of a row exact.
    for place in changed_rows(before, after, {*ratio.numerator, *ratio.denominator}):
        old, new = before.counts[place], after.counts[place]
        top = _added(new, ratio.numerator) - _added(old, ratio.numerator)
        under = _added(new, ratio.denominator) - _added(old, ratio.denominator)
        shares[place] = (top - under * start) / bottom
    return shares


class ScoredRow(NamedTuple):
    """A record of an archive, with the item and the result that scoring makes of it."""

    record: Record
    item: Item
    result: ItemResult
    whole: Item
    """The item as the archive has it, with the thoughts that our variant takes off."""
    is_repeated: bool
    """Whether a record before it has the same id."""

    @property
    def response(self) -> str:
        """What the model wrote; empty without a response."""
        return getattr(self.item, "response", None) or ""

    @property
    def label(self) -> str:
        """The item's label; empty where items have none."""
        return getattr(self.item, "label", "")

    def counts(self, places: Mapping[str, int]) -> dict[str, int]:
        """Return our statistics at some places by column, as one row; empty if it is unscored."""
        if self.result.outcome is not Outcome.SCORED:
            return {}
        statistics = self.result.statistics
        # An item that the variant leaves out is scored, and has no statistics.
        known = places if statistics else {}
        return {"rows": 1, **{name: int(statistics[place]) for name, place in known.items()}}


class Scored(NamedTuple):
    """An archive with our results."""

    rows: Sequence[ScoredRow]
    report: Report


def _repeated(results: Iterable[ItemResult]) -> Iterator[bool]:
    """Yield for each result whether one before it is of a record with the same id."""
    # Scoring names the second "42" "42#2".
    counts: dict[str, int] = {}
    for result in results:
        base, _, number = result.id.rpartition("#")
        again = counts.get(base, 0) + 1
        is_repeated = base in counts and number == str(again)
        counts[base if is_repeated else result.id] = again if is_repeated else 1
        yield is_repeated


def score_archive(metric: str, path: str, options: AuditOptions) -> Scored:
    """Score an archive in this process; every record is scored, duplicates included.

    Raises:
        ArchiveError: The archive can't be read or joined with its references.
    """
    # Duplicates, and missing or unknown ids, are steps of the audit and not errors.
    inputs = declared_inputs(metric).used_of(
        InputOptions(
            allow_duplicates=True, allow_missing=True, allow_unknown=True, join=options.join
        )
    )
    pairs: list[tuple[Item, ItemResult]] = []

    def keep(batch: BatchResult) -> None:
        pairs.extend(zip(batch.items, batch.results, strict=True))

    references = list(options.references) or None
    with without_skip(), Client.embedded() as client:
        report = client.score(
            metric,
            responses=path,
            references=references,
            variant=options.variant,
            inputs=inputs,
            # The batches are kept already; a report with items would hold them a second time.
            keep_items=False,
            on_batch=keep,
        )
    source = open_responses(path, metric).source
    assert source is not None, "it was scored"
    repeated = _repeated(result for _, result in pairs)
    # Not strict: questions without an answer come last; no tool counts them.
    whole = read_items(metric, path, references, options=inputs)
    parts = zip(read_records(source), pairs, whole, repeated, strict=False)
    return Scored([ScoredRow(record, *pair, item, n) for record, pair, item, n in parts], report)
