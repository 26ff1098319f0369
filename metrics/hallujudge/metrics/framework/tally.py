"""Tallies: statistics of items, summed in any order and in any number of parts."""

from __future__ import annotations

import json
import re
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from hashlib import blake2b
from itertools import islice

from ..errors import MergeError
from .arrays import BoolArray, FloatArray, np
from .claims import choice_share_notes
from .intervals import IntervalSettings, small_sample_notes
from .metric import Metric
from .report import Coverage, JudgeShare, JudgingCounts, Report, Score, cascade_notes
from .response_traits import TraitSums
from .results import ItemResult, Outcome
from .signature import DataSums, data_fields
from .statistics_table import BUCKETS, Clusters, Rows, Table

MISSING = ""
"""The group of items without a value."""

_BATCH = 4096
_NOTHING_HASHED = blake2b(digest_size=8)
_NUMBERS = re.compile("([0-9]+)")


class Tally:
    """Statistics of a run's items: map, merge, finish.

    An item costs sixteen bytes, four or eight for each statistic and four for each grouping field;
    its text, evidence and id are not kept. A single item is kept as it is until there is a second.
    Beyond 131,072 items, metrics that allow it keep no more than sums of 65,536 random groups of
    clusters, and memory no longer grows at all.

    Args:
        metric: The metric whose items are added.
        group_by: Fields to report groups by.
        signed: Whether hashes of items and references are added up, which signatures need.
    """

    def __init__(
        self, metric: Metric, group_by: Iterable[str] = (), *, signed: bool = True
    ) -> None:
        self._metric = metric
        self._signed = signed
        self._repeated_by = metric.repeated_by
        # The overall scores always need the groups by which items repeat.
        keys = (*group_by, *filter(None, [self._repeated_by]))
        self._groups = {key: GroupCodes(split=key in metric.split_fields) for key in keys}
        # Most calls of a server have one item, whose report needs no columns: OneItemReport.
        self.only: ItemResult | None = None
        """The item, while there is no second one."""
        self._empty = True
        self._unscored_rows = 0
        self._unscored_times = 0

    @classmethod
    def of(
        cls,
        metric: Metric,
        results: Iterable[ItemResult],
        group_by: Iterable[str] = (),
        *,
        signed: bool = True,
    ) -> Tally:
        """Return the tally of results, which are read in batches to bound memory."""
        tally, left = cls(metric, group_by, signed=signed), iter(results)
        while batch := list(islice(left, _BATCH)):
            tally.add_all(batch)
        return tally

    @cached_property
    def _rows(self) -> Rows:
        return Rows(self._metric.columns, len(self._groups), folds=self._metric.folds)

    @cached_property
    def _reasons(self) -> Counter[str]:
        return Counter()

    @cached_property
    def _data(self) -> DataSums:
        return DataSums()

    @cached_property
    def _judging(self) -> JudgingCounts:
        return JudgingCounts()

    @cached_property
    def _traits(self) -> TraitSums:
        return TraitSums(self._metric)

    @property
    def judging(self) -> tuple[JudgeShare, ...]:
        """The judges' parts so far."""
        return self._judging.shares()

    def add(self, result: ItemResult) -> None:
        """Add one item; see :meth:`add_all`."""
        self.add_all((result,))

    def add_all(self, results: Sequence[ItemResult]) -> None:
        """Add items.

        An unscored item has no statistics, except in metrics with a score of unparsed answers,
        where it has a row that counts in that score only.
        """
        if self._empty and len(results) == 1:
            self.only, self._empty = results[0], False
            return
        self._settle()
        self._put(results)

    def _settle(self) -> None:
        """Put the only item into its columns, before these are read or grow."""
        self._empty = False
        if self.only is not None:
            only, self.only = self.only, None
            self._put((only,))

    def _put(self, results: Sequence[ItemResult]) -> None:
        if self._signed:
            # What a variant leaves out has neither of these; see ItemResult.left_out.
            self._data.add([each for each in results if each.statistics or each.reason])
        for result in results:
            if result.outcome is Outcome.UNSCORED:
                self._reasons[result.reason] += 1
                self._unscored_rows += bool(result.statistics)
                self._unscored_times += self._times(result)
        # Looking at each evidence takes a thirtieth of the time of scoring an answer.
        if any(hasattr(kind, "judging") for kind in {type(result.evidence) for result in results}):
            for result in results:
                if judging := getattr(result.evidence, "judging", ()):
                    self._judging.add(judging)
        if marked := [result for result in results if result.traits]:
            self._traits.add(marked)
        rows = [result for result in results if result.statistics]
        codes = [
            of.codes([result.fields.get(key, MISSING) for result in rows])
            for key, of in self._groups.items()
        ]
        self._rows.append(_keys(rows), [result.statistics for result in rows], codes)

    def merge(self, other: Tally) -> None:
        """Add all items of another tally of the same metric.

        Raises:
            MergeError: The other tally's metric or groups differ.
        """
        # Parts of one process share the metric, and no signature need be made of it.
        if other._metric is not self._metric:
            mine, theirs = str(self._metric.signature), str(other._metric.signature)
            if mine != theirs:
                raise MergeError(f"can't merge tallies of {theirs} into tallies of {mine}")
        if list(self._groups) != list(other._groups):
            groups = [", ".join(each._groups) or "nothing" for each in (other, self)]
            raise MergeError("can't merge tallies grouped by {} into tallies by {}".format(*groups))
        self._settle()
        other._settle()
        # Numbers of groups are given in the order in which a part met them.
        theirs_here = [
            codes.translated(other._groups[key], numbers)
            for (key, codes), numbers in zip(self._groups.items(), other._rows.codes, strict=True)
        ]
        self._rows.extend(other._rows, theirs_here)
        self._reasons.update(other._reasons)
        self._judging.merge(other._judging)
        self._traits.merge(other._traits)
        self._data.merge(other._data)
        self._unscored_rows += other._unscored_rows
        self._unscored_times += other._unscored_times

    def to_bytes(self) -> bytes:
        """Return the tally as bytes, for :meth:`merge_bytes` in this or another process."""
        self._settle()
        counters, numbers = self._rows.packed()
        head = {
            **counters,
            "groups": {key: list(codes.known) for key, codes in self._groups.items()},
            "reasons": self._reasons,
            "unscored": [self._unscored_rows, self._unscored_times],
            "judging": self._judging.to_json(),
            "data": self._data.to_json(),
            "traits": self._traits.to_json(),
        }
        text = json.dumps(head, separators=(",", ":")).encode()
        # The head's length comes first, since the numbers after it may be any bytes.
        return len(text).to_bytes(4, "little") + text + numbers

    def merge_bytes(self, data: bytes) -> None:
        """Add all items of another tally of the same metric, from its bytes.

        Raises:
            MergeError: The bytes are damaged, or the other tally's metric or groups differ.
        """
        size = int.from_bytes(data[:4], "little")
        try:
            head = json.loads(data[4 : 4 + size])
            other = Tally(self._metric, head["groups"])
            other._rows.unpack(head, data[4 + size :])
            for key, values in head["groups"].items():
                for value in values:
                    other._groups[key].code(value)
            other._reasons.update(head["reasons"])
            other._unscored_rows, other._unscored_times = head["unscored"]
            other._judging = JudgingCounts.of(head["judging"])
            other._data = DataSums(*map(int, head["data"]))
            other._traits = TraitSums.of(self._metric, head.get("traits", {}))
        except (ValueError, KeyError, TypeError, OverflowError) as err:
            raise MergeError(f"a tally of {self._metric.name} is damaged: {err}") from err
        self.merge(other)

    def clusters(self) -> Clusters:
        """Return the sums of each cluster, for the comparison with another run."""
        return self._repeated(self._table()).by_cluster()

    def _table(self) -> Table:
        self._settle()
        rows = self._rows
        rows.settle()
        return Table(self._metric, rows.keys, rows.weights, rows.columns)

    def finish(
        self,
        intervals: IntervalSettings,
        *,
        version: str,
        settings: Mapping[str, str] | None = None,
        notes: tuple[str, ...] = (),
        check: Callable[[], None] = lambda: None,
    ) -> Report:
        """Return the report over all items added so far; more may be added later.

        Args:
            intervals: How intervals are made.
            version: The version of Hallujudge, for the signature.
            settings: The settings behind the signature, in full.
            notes: What limits the use of the scores, whatever the items are.
            check: Called before each group; what it raises ends the report.
        """
        metric, table = self._metric, self._table()
        overall, judging = self._repeated(table), self.judging
        groups = self._groups_of(table, intervals, check)
        items, references = self._data.texts()
        coverage, totals = self._coverage(overall), overall.totals()
        method = f"{intervals.text}-{BUCKETS}-groups" if self._rows.folded else intervals.text
        signature = metric.signature.extended(
            *self._traits.fields(),
            ("ci", method),
            ("n", str(coverage.items)),
            ("unscored", str(coverage.unscored)),
            *data_fields(items, references),
            ("v", version),
        )
        return Report(
            metric=metric.name,
            variant=metric.variant,
            signature=str(signature),
            scores=overall.scores(intervals),
            groups={
                key: {value: scores for value, (scores, _) in parts.items()}
                for key, parts in groups.items()
            },
            coverage=coverage,
            totals=totals,
            settings=settings or {},
            item_set=items,
            references=references,
            judging=judging,
            traits=self._traits.counts,
            notes=(
                *notes,
                *self._traits.notes(totals, coverage.items),
                # A server's report of no items is the start of a client's, which makes these.
                *(metric.notes_on(totals) if coverage.items else ()),
                *self._repeat_notes(totals, coverage),
                *choice_share_notes((each.judge, each.choice_share) for each in judging),
                *cascade_notes(judging),
                *self._judging.panel_notes(),
                *small_sample_notes(
                    overall.clusters_by_score(),
                    {
                        key: {value: size for value, (_, size) in parts.items()}
                        for key, parts in groups.items()
                    },
                ),
            ),
        )

    def _groups_of(
        self, table: Table, intervals: IntervalSettings, check: Callable[[], None]
    ) -> dict[str, dict[str, tuple[dict[str, Score], int]]]:
        """Return every group's scores and number of clusters, by field and value."""
        return {
            key: {
                value: (part.scores(intervals), part.clusters)
                for value in codes.values
                for part in [_part(table, codes, value, numbers, check)]
            }
            for (key, codes), numbers in zip(self._groups.items(), self._rows.codes, strict=True)
            # A field that no scored item has makes no groups.
            if codes.values not in ([], [MISSING])
        }

    def _times(self, result: ItemResult) -> int:
        """Return how often an item counts in the overall scores."""
        key = self._repeated_by
        return len(self._groups[key].parts(result.fields.get(key, MISSING))) if key else 1

    def _repeated(self, table: Table) -> Table:
        """Return the table with each row as often as it counts in the overall scores."""
        if not self._repeated_by:
            return table
        place = list(self._groups).index(self._repeated_by)
        return table.repeated(self._groups[self._repeated_by].times(self._rows.codes[place]))

    def _repeat_notes(self, totals: Mapping[str, float], coverage: Coverage) -> Iterator[str]:
        """Yield how many rows of items the overall scores count, if these are more than items."""
        rows, unit = totals.get(self._metric.unit, 0), self._metric.unit
        if self._repeated_by and rows > coverage.scored:
            yield (
                f"The overall scores count {rows:,.0f} rows of {coverage.scored:,} {unit}: "
                f"{self._metric.variant} counts each once for every {self._repeated_by} that it "
                "has. Other variants count it once."
            )

    def _coverage(self, table: Table) -> Coverage:
        unscored = self._reasons.total()
        # A row of an unscored item counts in a score of unparsed answers only.
        scored = self._rows.items - self._unscored_rows
        return Coverage(
            items=scored + unscored,
            scored=scored,
            unscored=unscored,
            reasons=dict(sorted(self._reasons.items())),
            bounds=table.bounds(self._unscored_times, self._rows.largest),
        )


def _part(
    table: Table, codes: GroupCodes, value: str, numbers: array[int], check: Callable[[], None]
) -> Table:
    check()
    return table.where(codes.mask(value, numbers))


def cluster_key(group_id: str) -> int:
    """Return a cluster's 64-bit key, the same on every machine, so that tallies can be merged."""
    # A copy is made in half the time of a new one.
    hashed = _NOTHING_HASHED.copy()
    hashed.update(group_id.encode("utf-8", "surrogatepass"))
    return int.from_bytes(hashed.digest())


def _keys(results: Iterable[ItemResult]) -> Sequence[int]:
    """Return the clusters' keys; consecutive items of one cluster are hashed once."""
    keys: list[int] = []
    last, key = None, 0
    for result in results:
        if result.group_id != last:
            last = result.group_id
            key = cluster_key(last)
        keys.append(key)
    return keys


def _by_numbers(value: str) -> tuple[list[tuple[int, str]], str]:
    """Return what groups are ordered by: their text, in which 4 comes before 10."""
    # Of two whole numbers the longer one is larger, however many digits a hostile value has.
    bare = (part.lstrip("0") if n % 2 else part for n, part in enumerate(_NUMBERS.split(value)))
    return [(len(part) if n % 2 else 0, part) for n, part in enumerate(bare)], value


class GroupCodes:
    """Maps the values of a grouping field to small numbers.

    Args:
        split: Whether a value lists several groups, separated by commas.
    """

    def __init__(self, *, split: bool) -> None:
        self._of: dict[str, int] = {}
        self._split = split

    def code(self, value: str) -> int:
        """Return the number of a value, a new one if it has none."""
        return self._of.setdefault(value, len(self._of))

    def codes(self, values: Sequence[str]) -> list[int]:
        """Return the number of each value, as :meth:`code` does."""
        # A batch has few distinct values, and most of them are known.
        for value in dict.fromkeys(values):
            self.code(value)
        return list(map(self._of.__getitem__, values))

    @property
    def known(self) -> Iterable[str]:
        """Return the values in the order of their numbers."""
        return self._of

    def translated(self, other: GroupCodes, codes: Iterable[int]) -> list[int]:
        """Return numbers of another table as those of this one."""
        here = [self.code(value) for value in other._of]
        return [here[code] for code in codes]

    def parts(self, value: str) -> tuple[str, ...]:
        """Return the distinct groups that a value names; the empty group if it names none."""
        if not self._split:
            return (value,)
        parts = dict.fromkeys(part.strip() for part in value.split(","))
        return tuple(part for part in parts if part) or (MISSING,)

    @property
    def values(self) -> list[str]:
        """Return the groups in the order of their text, where the number 4 comes before 10."""
        return sorted({part for value in self._of for part in self.parts(value)}, key=_by_numbers)

    def mask(self, value: str, codes: array[int]) -> BoolArray:
        """Return which rows belong to a group."""
        wanted = [code for known, code in self._of.items() if value in self.parts(known)]
        mask: BoolArray = np.isin(np.array(codes, dtype=np.int32), wanted)
        return mask

    def times(self, codes: array[int]) -> FloatArray:
        """Return the number of groups of each row."""
        # One look at each distinct value, and not at each row.
        counts = np.array([len(self.parts(value)) for value in self._of], dtype=np.float64)
        times: FloatArray = counts[np.array(codes, dtype=np.int32)]
        return times
