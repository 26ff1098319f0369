"""Gates for continuous integration: limits on regressions and on scores, and their checks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import Literal, TypeAlias, cast

from hallujudge.metrics import Score
from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.framework.results import JsonValue

from ..errors import InvalidInputError
from ..report.report_text import interval_heading, show_number, show_range
from ..report.table_pages import Grid, Page, Shown
from .compared_runs import CompareOptions, RunData, checked_scores, read_runs
from .differences import coverage_notes, data_notes, own_notes, tested_pairs
from .item_pairs import PairedRuns
from .named_runs import RunLabel, RunSource, notes_of_row, sources_of
from .results import Pair, ScoreDifference

Decision: TypeAlias = Literal["shown", "observed", "possible"]
"""When a check fails: if its whole interval is beyond the limit (``shown``), if its value is
(``observed``), or if a part of its interval is (``possible``)."""

CheckKind: TypeAlias = Literal["regression", "maximum", "minimum", "unscored"]
"""What a check limits."""

_QUANTITIES = {
    "regression": "worse than the baseline by",
    "maximum": "value",
    "minimum": "value",
    "unscored": "items without a score",
}

_RULES: Mapping[Decision, str] = {
    "shown": "A check fails if its whole interval is beyond the limit.",
    "observed": "A check fails if its value is beyond the limit.",
    "possible": "A check fails if any part of its interval is beyond the limit.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class GateLimits:
    """What a gate allows."""

    max_regression: Mapping[str, float] = field(default_factory=dict)
    """Score -> how much worse than the baseline it may be."""
    maximum: Mapping[str, float] = field(default_factory=dict)
    """Score -> its largest allowed value."""
    minimum: Mapping[str, float] = field(default_factory=dict)
    """Score -> its smallest allowed value."""
    max_unscored: float | None = None
    """Largest allowed share of items without a score: unscored, or absent but in the baseline."""
    decide: Decision = "shown"
    """When a check fails: if its whole interval is beyond the limit (``shown``), if its value is
    (``observed``), or if a part of its interval is (``possible``)."""

    def check(self, *, baseline: bool) -> None:
        """Refuse limits that can't be checked.

        Args:
            baseline: Whether there is a run to compare with.

        Raises:
            InvalidInputError: There is no limit, or one is out of range or lacks a baseline.
        """
        if self.decide not in _RULES:
            raise InvalidInputError(
                f"decide is {self.decide!r:.80}; {choose_from(self.decide, _RULES)}"
            )
        unscored = {} if self.max_unscored is None else {"max_unscored": self.max_unscored}
        if not (self.max_regression or self.maximum or self.minimum or unscored):
            raise InvalidInputError(
                "there is no limit; give GateLimits(max_regression=…), GateLimits(maximum=…), "
                "GateLimits(minimum=…) or GateLimits(max_unscored=…)"
            )
        if self.max_regression and not baseline:
            raise InvalidInputError(
                "GateLimits(max_regression=…) needs a run to compare with: give baseline=…"
            )
        for name, limit in self.max_regression.items():
            # NaN compares as false with every number: such a limit would never fail.
            if not 0 <= limit < math.inf:
                raise InvalidInputError(
                    f"GateLimits(max_regression=…) of {name} is {limit}; give 0 or more"
                )
        if self.max_unscored is not None and not 0 <= self.max_unscored <= 1:
            raise InvalidInputError(
                f"GateLimits(max_unscored=…) is {self.max_unscored}; give a share from 0 "
                "to 1, such as 0.02"
            )
        for name, limit in (*self.maximum.items(), *self.minimum.items()):
            if not math.isfinite(limit):
                raise InvalidInputError(f"the limit of {name} is {limit}; give a finite number")


def gate(
    run: RunSource,
    *,
    baseline: RunSource | None = None,
    limits: GateLimits,
    options: CompareOptions | None = None,
) -> Gate:
    """Check a run against limits, for continuous integration.

    Args:
        run: Folder of the run, or a report that holds its items.
        baseline: The run that it is compared with; None if only absolute limits are checked.
        limits: What is allowed, and when a check fails.
        options: How runs are compared.

    Returns:
        The checks; ``gate(…).passed`` says whether all passed.

    Raises:
        InvalidInputError: A limit can't be checked, or the runs can't be compared.
        ArchiveError: A folder does not hold a complete run.
    """
    options = options or CompareOptions()
    # Before any run is read: a pipeline with a wrong option must fail at once.
    limits.check(baseline=baseline is not None)
    # The run comes first, as the report, the options and the notes are its own.
    sources = [run] if baseline is None else [run, baseline]
    return _gate_runs(read_runs(sources, options, least=1), limits, options)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateCheck:
    """One limit, and the number that it is for."""

    kind: CheckKind
    """What is limited."""
    score: str
    """The score's name; empty for the share of unscored items."""
    limit: float
    """The limit: the largest number that passes, for a minimum the smallest."""
    value: float
    """The number: how much worse the run is than the baseline, its score, or the share."""
    ci_low: float | None
    """Lower end of the number's interval; None without one."""
    ci_high: float | None
    """Upper end of the interval."""
    passed: bool
    """Whether the check passed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Gate(Shown):
    """The checks of a run."""

    schema = "gate"

    metric: str
    """The metric's name."""
    variant: str
    runs: tuple[RunLabel, ...]
    """The run, and its baseline if there is one."""
    checks: tuple[GateCheck, ...]
    """The checks, in the order in which they were given."""
    decide: Decision
    """When a check fails."""
    confidence: float
    """Confidence level of the intervals."""
    method: str
    """How intervals were made."""
    notes: tuple[str, ...] = ()
    """Warnings, one sentence each."""

    @property
    def passed(self) -> bool:
        """Whether every check passed."""
        return all(check.passed for check in self.checks)

    def to_json(self) -> Mapping[str, JsonValue]:
        """Return the gate as plain values."""
        return cast("Mapping[str, JsonValue]", {"passed": self.passed, **asdict(self)})

    def page(self) -> Page:
        """Return the checks as a table."""
        failed = sum(not check.passed for check in self.checks)
        grid = Grid(
            title=f"{failed} of {len(self.checks)} checks failed" if failed else "Passed",
            headings=(
                *("check", "score", "limit", "found"),
                interval_heading(self.confidence),
                "result",
            ),
            rows=tuple(map(_shown, self.checks)),
            keys=("kind", "score", "limit", "value", "ci_low", "ci_high", "passed"),
            values=tuple(tuple(asdict(check).values()) for check in self.checks),
            notes=(notes_of_row(self.runs),) * len(self.checks),
        )
        return Page(
            title=f"{self.metric} ({self.variant}): gate",
            grids=(grid,),
            sentences=(_RULES[self.decide],),
            notes=self.notes,
            sources={**sources_of(self.runs), "method": self.method},
        )


def _shown(check: GateCheck) -> tuple[str, ...]:
    sign = "at least " if check.kind == "minimum" else "at most "
    signed = check.kind == "regression"
    return (
        _QUANTITIES[check.kind],
        check.score or "–",
        f"{sign}{check.limit:g}",
        show_number(check.value, signed=signed),
        show_range(check.ci_low, check.ci_high, signed=signed),
        "passed" if check.passed else "failed",
    )


def _gate_runs(runs: Sequence[RunData], limits: GateLimits, options: CompareOptions) -> Gate:
    """Check runs that were read: the run, and its baseline if there is one."""
    run, settings = runs[0], options.settings()
    for names in (limits.max_regression, limits.maximum, limits.minimum):
        checked_scores(run.metric, tuple(names))
    pair = _pair(runs, limits, options)
    checks = [
        *_regressions(run, pair, limits),
        *_absolutes(run, limits, options),
        *_unscored(run, pair, limits),
    ]
    return Gate(
        metric=run.metric.name,
        variant=run.metric.variant,
        runs=tuple(each.label for each in runs),
        checks=tuple(checks),
        decide=limits.decide,
        confidence=settings.confidence,
        method=settings.text,
        notes=(
            *data_notes(runs, options),
            *(coverage_notes(pair) if pair else ()),
            *own_notes(runs),
        ),
    )


def _pair(runs: Sequence[RunData], limits: GateLimits, options: CompareOptions) -> Pair | None:
    """Compare the run with its baseline, over the scores that have a limit."""
    if len(runs) == 1:
        return None
    run, baseline = runs
    scores = checked_scores(run.metric, tuple(limits.max_regression))
    # Without names, checked_scores returns all scores; a gate then tests none.
    wanted = tuple(score for score in scores if score.name in limits.max_regression)
    # The baseline is the first run of the pair, so that a positive difference is a rise.
    [pair] = tested_pairs([(PairedRuns.of(baseline, run), wanted)], options.settings())
    return pair


def _regressions(run: RunData, pair: Pair | None, limits: GateLimits) -> Iterator[GateCheck]:
    if pair is None:
        return
    for name, limit in limits.max_regression.items():
        worse = _worsening(run, pair[name])
        yield _decided("regression", name, limit, worse, limits.decide)


def _worsening(run: RunData, found: ScoreDifference) -> Score:
    """Return by how much a score is worse than the baseline's, with its interval."""
    if found.direction == "neither":
        raise InvalidInputError(
            f"{run.metric.name}'s {found.score} has no better end, so that it can't regress; limit "
            "its value instead"
        )
    if found.direction == "lower":
        value, low, high = found.difference, found.ci_low, found.ci_high
    else:
        value, low, high = (
            # Turned around, so that more is worse; the ends change places.
            # Not -number, since that of 0.0 is shown as -0.0000.
            None if number is None else 0.0 - number
            for number in (found.difference, found.ci_high, found.ci_low)
        )
    return Score(name=found.score, value=value, ci_low=low, ci_high=high, n=found.clusters)


def _absolutes(run: RunData, limits: GateLimits, options: CompareOptions) -> Iterator[GateCheck]:
    if not (limits.maximum or limits.minimum):
        return
    # Made again, since the intervals of report.json may have another confidence.
    scores = run.report(options.confidence).scores
    for name, limit in limits.maximum.items():
        yield _decided("maximum", name, limit, scores[name], limits.decide)
    for name, limit in limits.minimum.items():
        yield _decided("minimum", name, limit, scores[name], limits.decide)


def _decided(kind: CheckKind, name: str, limit: float, found: Score, decide: Decision) -> GateCheck:
    """Check a number and its interval against a limit.

    Raises:
        InvalidInputError: The number is undefined, or has no interval that decides.
    """
    value, low, high = found.value, found.ci_low, found.ci_high
    # An undefined score passes no limit: a run that scored nothing would be a success.
    if value is None:
        raise InvalidInputError(
            f"{name} is undefined, so that its limit can't be checked; see the coverage of the run"
        )
    if decide == "observed":
        low_end = high_end = value
    # Neither may a score without an interval, which is that of few images.
    elif low is None or high is None:
        raise InvalidInputError(
            f"{name} has no interval, so that its limit can't be checked; score more images, or "
            "use the value alone with GateLimits(decide=observed)"
        )
    else:
        low_end, high_end = low, high
    # For a minimum, signs are turned, so that a larger number is worse for every kind of limit.
    ends = (low_end, high_end) if kind != "minimum" else (-high_end, -low_end)
    beyond = ends[1 if decide == "possible" else 0]
    passed = beyond <= (limit if kind != "minimum" else -limit)
    return GateCheck(
        kind=kind, score=name, limit=limit, value=value, ci_low=low, ci_high=high, passed=passed
    )


def _unscored(run: RunData, pair: Pair | None, limits: GateLimits) -> Iterator[GateCheck]:
    if limits.max_unscored is None:
        return
    # A run that leaves out the baseline's hard items must not pass by that.
    absent = pair.coverage.only_first if pair else 0
    items = run.label.items + absent
    # A run without items is not a success.
    share = (items - run.label.scored) / items if items else 1.0
    yield GateCheck(
        kind="unscored",
        score="",
        limit=limits.max_unscored,
        value=share,
        ci_low=None,
        ci_high=None,
        passed=share <= limits.max_unscored,
    )
