"""The report of a run: scores, intervals, coverage, and who judged.

Reports of a single item are made here without numpy, because most calls of a server have one item.
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from itertools import combinations
from typing import TYPE_CHECKING, Any

from .claims import ChoiceShare
from .columns_and_scores import score_at
from .intervals import IntervalSettings, small_sample_notes
from .json_values import schema_of
from .metric import Metric
from .results import ItemResult, JsonValue, Outcome, UnscoredReason
from .signature import DataSums, data_fields

if TYPE_CHECKING:
    from pandas import DataFrame


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    """The scores of a run and their provenance.

    Scores are read by name: ``report["chair_i"]`` is the :class:`Score`, ``report.chair_i`` its
    value.
    """

    metric: str
    """The metric's name."""
    variant: str
    """The named version of the metric, such as ``published``."""
    signature: str
    """The run's signature; quote it with the scores."""
    scores: Mapping[str, Score]
    """The scores by name."""
    coverage: Coverage
    """Numbers of scored and unscored items."""
    groups: Mapping[str, Mapping[str, Mapping[str, Score]]] = field(default_factory=dict)
    """The same scores by field and value."""
    totals: Mapping[str, float] = field(default_factory=dict)
    """The sums that scores are computed from."""
    settings: Mapping[str, str] = field(default_factory=dict)
    """Settings behind the signature, in full."""
    item_set: str = ""
    """Hash of the item set, the same in any order of the items; empty if it is unknown."""
    references: str = ""
    """Hash of the items' references; empty if it is unknown."""
    notes: tuple[str, ...] = ()
    """Warnings about the scores, one sentence each."""
    judging: tuple[JudgeShare, ...] = ()
    """The judges' parts, in the order in which they were called. Empty if none was."""
    traits: Mapping[str, float] = field(default_factory=dict)
    """What responses have beside their answers: trait -> number, such as ``thought`` -> 12."""

    def __getitem__(self, name: str) -> Score:
        return self.scores[name]

    def __contains__(self, name: object) -> bool:
        return name in self.scores

    def __iter__(self) -> Iterator[str]:
        # Without it Python would iterate by calling report[0].
        return iter(self.scores)

    def __getattr__(self, name: str) -> float | None:
        # Only called for names that are not fields. Score names depend on the metric.
        if name not in self.scores:
            raise AttributeError(f"this {self.metric} report has no score {name!r}")
        return self.scores[name].value

    def records(self) -> list[dict[str, str | int | float | None]]:
        """Return one record for each score of the run and of its groups."""
        tables = [("", "", self.scores)]
        tables += [(key, value, s) for key, of in self.groups.items() for value, s in of.items()]
        return [
            {
                "group_by": key,
                "group": value,
                "score": name,
                "value": score.value,
                "ci_low": score.ci_low,
                "ci_high": score.ci_high,
                "n": score.n,
            }
            for key, value, scores in tables
            for name, score in scores.items()
        ]

    def to_pandas(self) -> DataFrame:
        """Return the scores of the run and of its groups as a DataFrame.

        Raises:
            ImportError: pandas is not installed.
        """
        try:
            from pandas import DataFrame
        except ImportError as err:
            # Not an extra of this package, which may not be published where pip looks.
            raise ImportError("report.to_pandas() needs pandas: pip install pandas") from err
        return DataFrame(self.records())

    def to_json(self) -> dict[str, JsonValue]:
        """Return the content of ``report.json``."""
        return {
            "schema": schema_of("report"),
            "metric": self.metric,
            "variant": self.variant,
            "signature": self.signature,
            "scores": {name: score.to_json() for name, score in self.scores.items()},
            "groups": {
                key: {
                    value: {name: score.to_json() for name, score in scores.items()}
                    for value, scores in values.items()
                }
                for key, values in self.groups.items()
            },
            "coverage": self.coverage.to_json(),
            "totals": {name: _plain(total) for name, total in self.totals.items()},
            "settings": dict(self.settings),
            "item_set": self.item_set,
            "references": self.references,
            "notes": list(self.notes),
            "judging": [share.to_json() for share in self.judging],
            # Most runs have none, and their files stay as they were.
            **({"traits": dict(sorted(self.traits.items()))} if self.traits else {}),
        }

    def to_text(self) -> str:
        """Return the text of ``report.json``, which is deterministic."""
        return json.dumps(self.to_json(), indent=1, ensure_ascii=False, allow_nan=False) + "\n"


@dataclass(frozen=True, slots=True, kw_only=True)
class Score:
    """A score over all items of a run or of a group."""

    name: str
    """The score's name."""
    value: float | None
    """The score: a fraction in [0, 1], or a count; None if undefined."""
    ci_low: float | None
    """Lower end of the interval; None without an interval."""
    ci_high: float | None
    """Upper end of the interval."""
    n: int
    """How many items the value is based on."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the score as ``report.json`` has it."""
        return {"value": self.value, "ci_low": self.ci_low, "ci_high": self.ci_high, "n": self.n}


@dataclass(frozen=True, slots=True, kw_only=True)
class Bound:
    """Best and worst case of a score over all unscored items and claims."""

    best: float
    """The score with every unscored item and claim at its best."""
    worst: float
    """The score with every unscored item and claim at its worst."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Coverage:
    """Numbers of scored and unscored items."""

    items: int
    """Number of items."""
    scored: int
    """Number of scored items."""
    unscored: int
    """Number of unscored items."""
    reasons: Mapping[str, int] = field(default_factory=dict)
    """Number of unscored items by reason."""
    bounds: Mapping[str, Bound] = field(default_factory=dict)
    """What unscored items, and claims without a verdict in scored items, could change, by score;
    empty when there are none."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the coverage as ``report.json`` has it."""
        return asdict(self)


def _plain(number: float) -> int | float:
    """Return a whole number as an integer."""
    return int(number) if float(number).is_integer() else number


# Sums of whole numbers do not depend on their order. Evidence has nine decimals.
_NANO = 10**9
_TOO_SMALL = str(UnscoredReason.MARGIN_TOO_SMALL)
_SHARE_DIGITS = 6
# Before the name of another member of a panel: claims on which both voted, and agreed.
_BOTH, _SAME = "both:", "same:"


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeShare:
    """A judge's part in a run. Times of calls are left out, which differ between equal runs."""

    judge: str
    """Its name."""
    decided: int
    """Verdicts that count."""
    declined: Mapping[str, int] = field(default_factory=dict)
    """Reason -> claims on which it gave no verdict that counts."""
    calls: int = 0
    """Calls that were answered, each in one item only."""
    prompt_tokens: int = 0
    """Tokens sent."""
    cached_tokens: int = 0
    """Those of them that the server had from an earlier prompt, if it reports them."""
    completion_tokens: int = 0
    """Tokens received."""
    cost: float | None = None
    """Their price; None without prices."""
    reused: int = 0
    """Replies that items shared with the one that paid, or found in the cache."""
    choice_share: ChoiceShare | None = None
    """How likely it would write one of the choices if nothing kept it from other words; None if
    that was not measured."""

    @property
    def asked(self) -> int:
        """Claims that it was asked about."""
        return self.decided + sum(self.declined.values())

    @property
    def escalated(self) -> int:
        """Verdicts whose margin was too small."""
        return self.declined.get(_TOO_SMALL, 0)

    def to_json(self) -> dict[str, JsonValue]:
        """Return the judge's part as ``report.json`` has it."""
        values = asdict(self)
        if self.choice_share is None:  # most judges have none
            del values["choice_share"]
        return values


class JudgingCounts:
    """Sums of the judges' parts in items, in any order and any number of parts."""

    def __init__(self) -> None:
        self._sums: dict[str, Counter[str]] = {}
        self._declined: dict[str, Counter[str]] = {}

    def add(self, judging: Iterable[Mapping[str, Any]]) -> None:
        """Add the entries of an item's ``evidence.judging``."""
        members: list[Mapping[str, Any]] = []
        for part in judging:
            sums, declined = self._of(part["judge"])
            sums.update(
                decided=part["answered"],
                calls=part["calls"],
                prompt_tokens=part["prompt_tokens"],
                cached_tokens=part["cached_tokens"],
                completion_tokens=part["completion_tokens"],
                reused=part["reused"],
            )
            if part["cost"] is not None:
                # Without a price the cost is unknown, which a sum of 0 would hide.
                sums.update(cost=round(part["cost"] * _NANO), priced=1)
            if shares := part.get("choice_shares"):
                nano = sum(round(share * _NANO) for share in shares)
                sums.update(choice_share=nano, measured=len(shares))
            declined.update({reason: row["claims"] for reason, row in part["declined"].items()})
            if "votes" in part:
                sums.update(votes=part["answered"], dissents=part["dissents"])
                members.append(part)
        self._add_pairs(members)

    def _add_pairs(self, members: Sequence[Mapping[str, Any]]) -> None:
        """Count for each two members of a panel the claims on which both voted, and agreed."""
        for one, other in combinations(members, 2):
            both = [(a, b) for a, b in zip(one["votes"], other["votes"], strict=True) if a and b]
            sums, name = self._sums[one["judge"]], other["judge"]
            sums.update(
                {f"{_BOTH}{name}": len(both), f"{_SAME}{name}": sum(a == b for a, b in both)}
            )

    def panel_notes(self) -> tuple[str, ...]:
        """Return how often the members of a panel agree; none without a panel."""
        parts = [
            f"{judge} differs from the panel in {_of(sums['dissents'], sums['votes'])} votes"
            for judge, sums in self._sums.items()
            if sums["votes"]
        ]
        for judge, sums in self._sums.items():
            for other in (key.removeprefix(_BOTH) for key in sums if key.startswith(_BOTH)):
                if both := sums[_BOTH + other]:
                    same = _of(sums[_SAME + other], both)
                    parts.append(f"{judge} and {other} agree on {same} claims")
        return (f"Panel: {'; '.join(parts)}.",) if parts else ()

    def merge(self, other: JudgingCounts) -> None:
        """Add the sums of another part."""
        for judge, sums in other._sums.items():
            mine, declined = self._of(judge)
            mine.update(sums)
            declined.update(other._declined[judge])

    def to_json(self) -> dict[str, JsonValue]:
        """Return the sums for :meth:`of`."""
        return {
            judge: [dict(sums), dict(self._declined[judge])] for judge, sums in self._sums.items()
        }

    @classmethod
    def of(cls, values: Mapping[str, Any]) -> JudgingCounts:
        """Return the sums of what :meth:`to_json` returned."""
        made = cls()
        for judge, (sums, declined) in values.items():
            made._sums[judge], made._declined[judge] = Counter(sums), Counter(declined)
        return made

    def shares(self) -> tuple[JudgeShare, ...]:
        """Return each judge's part, in the order in which they were asked."""
        if not self._sums:
            return ()
        return tuple(
            JudgeShare(
                judge=judge,
                decided=sums["decided"],
                declined=dict(sorted(self._declined[judge].items())),
                calls=sums["calls"],
                prompt_tokens=sums["prompt_tokens"],
                cached_tokens=sums["cached_tokens"],
                completion_tokens=sums["completion_tokens"],
                cost=sums["cost"] / _NANO if sums["priced"] else None,
                reused=sums["reused"],
                choice_share=_choice_share(sums),
            )
            for judge, sums in self._sums.items()
        )

    def _of(self, judge: str) -> tuple[Counter[str], Counter[str]]:
        return self._sums.setdefault(judge, Counter()), self._declined.setdefault(judge, Counter())


def _choice_share(sums: Counter[str]) -> ChoiceShare | None:
    if not (count := sums["measured"]):
        return None
    return ChoiceShare(mean=round(sums["choice_share"] / _NANO / count, _SHARE_DIGITS), n=count)


def cascade_notes(shares: Iterable[JudgeShare]) -> tuple[str, ...]:
    """Return who decided in a run whose first judge left verdicts to others; none without such.

    What was saved is estimated: the later judges are assumed to need as much for the claims that
    the first judge decided as for those that it left to them.
    """
    by_part = list(shares)
    if not by_part:
        return ()
    # Judges are in the order in which they were asked.
    first = next((share for share in by_part if share.escalated), None)
    if first is None:
        return ()
    others = [share for share in by_part if share is not first and share.asked]
    decided = first.decided + sum(share.decided for share in others)
    parts = [
        f"{first.judge} decided {_of(first.decided, first.asked)} verdicts",
        f"{_of(first.escalated, first.asked)} had too small a margin",
        *(f"{share.judge} decided {_of(share.decided, first.asked)}" for share in others),
        f"{_of(first.asked - decided, first.asked)} are without a verdict",
    ]
    saved = [_saved(first, share) for share in others]
    return (f"Cascade: {'; '.join(parts)}.{''.join(filter(None, saved))}",)


def _of(part: int, whole: int) -> str:
    return f"{part:,} of {whole:,} ({part / whole:.1%})"


def _saved(first: JudgeShare, later: JudgeShare) -> str:
    """Return what a later judge would have taken for the verdicts of the first one."""
    if not later.calls:
        return ""
    # The later judges were asked only about what the first one left to them.
    times = first.decided / (first.asked - first.decided)
    cost = "" if later.cost is None else f", cost {later.cost * times:.4g} (spent {later.cost:.4g})"
    return (
        f" Saved, estimated: {later.calls * times:,.0f} calls of {later.judge} (made "
        f"{later.calls:,}){cost}."
    )


_ONE_SCORED = Coverage(items=1, scored=1, unscored=0)


class OneItemReport:
    """Makes reports of runs with one scored item, equal to those of :meth:`Tally.finish`.

    Arrays of one number take numpy far longer than the numbers take Python, and what such reports
    share is made once (docs/decisions/one-item.md).

    Args:
        metric: The metric.
        intervals: How intervals would be made; one item has none, but its signature names them.
        version: The version of Hallujudge, for the signature.
        settings: The settings behind the signature, in full.
        notes: What limits the use of the scores, whatever the items are.
    """

    def __init__(
        self,
        metric: Metric,
        intervals: IntervalSettings,
        *,
        version: str,
        settings: Mapping[str, str],
        notes: tuple[str, ...] = (),
    ) -> None:
        # Such metrics make columns from whole tables, and one item has none.
        plain = not (metric.overrides("derive") or metric.overrides("expand"))
        self._fits = plain and not metric.repeated_by
        self._metric = metric
        self._settings = settings
        self._notes = notes
        self._names = (metric.unit, *[column.name for column in metric.columns])
        # Without labels, whose sums have no meaning.
        self._summed = [metric.unit, *[one.name for one in metric.columns if not one.label]]
        self._scores = metric.scores
        numbers = (("ci", intervals.text), ("n", "1"), ("unscored", "0"))
        self._signature = str(metric.signature.extended(*numbers))
        self._version = version

    def of(self, result: ItemResult | None) -> Report | None:
        """Return the report of a run's only item.

        Args:
            result: The item.

        Returns:
            None if the scores need a table: there is no item, it has no statistics, it has claims
            without a verdict, its response has a trait, a judge was called, or the metric makes
            more columns than an item has or counts an item repeatedly.
        """
        if result is None or result.outcome is not Outcome.SCORED or not result.statistics:
            return None
        if not self._fits or result.traits or hasattr(result.evidence, "judging"):
            return None
        numbers = dict(zip(self._names, map(float, (1, *result.statistics)), strict=True))
        unresolved = self._metric.unresolved
        if unresolved and numbers[unresolved]:
            return None
        data = DataSums()
        data.add((result,))
        return self._report(numbers, data.texts())

    def _report(self, numbers: Mapping[str, float], sums: tuple[str, str]) -> Report:
        fields = (*data_fields(*sums), ("v", self._version))
        metric, totals = self._metric, {name: numbers[name] for name in self._summed}
        scores, items = {}, {}
        for score in self._scores:
            number = score_at(score, numbers)
            value = None if math.isnan(number) else number
            if value is not None:  # whether the score depends on the item at all
                items[score.name] = int(any(map(numbers.__getitem__, score.columns)))
            count = int(numbers[score.count or metric.unit])
            scores[score.name] = Score(
                name=score.name, value=value, ci_low=None, ci_high=None, n=count
            )
        return Report(
            metric=metric.name,
            variant=metric.variant,
            signature="|".join([self._signature, *[f"{key}:{value}" for key, value in fields]]),
            scores=scores,
            coverage=_ONE_SCORED,
            totals=totals,
            settings=dict(self._settings),
            item_set=sums[0],
            references=sums[1],
            notes=(*self._notes, *metric.notes_on(totals), *small_sample_notes(items, {})),
        )
