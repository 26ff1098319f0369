"""A report together with the items of its run.

What a report becomes, such as a folder or a table, is made by modules that are imported when they
are needed: those of the package ``hallujudge``, which a client alone does not have.
"""

from __future__ import annotations

import html
import os
import tempfile
import threading
import weakref
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, overload

from hallujudge.judge_service import is_whole
from hallujudge.metrics import Evidence, Item, ItemResult, Outcome, Report, Score

from .. import report as rendering
from .. import runs
from ..errors import InvalidInputError, MissingExtraError, NotFoundError
from .item_lines import response_of
from .saved_items import without

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame

    from ..trackers import Tracker

# Items of a larger run go to a temporary file, so that memory stays bounded.
_IN_MEMORY = 20_000
_SAVED_AT_ONCE = 64


@dataclass(frozen=True, slots=True, kw_only=True)
class RunItem:
    """An item and its result."""

    item: Item
    """The scored item."""
    result: ItemResult
    """The outcome, with statistics and evidence."""

    @property
    def id(self) -> str:
        """The item's id."""
        return self.result.id

    @property
    def response(self) -> str | Mapping[str, str | None] | None:
        """What the model wrote; for items with several runs, run -> response."""
        return response_of(self.item)

    @property
    def outcome(self) -> Outcome:
        """Whether the item is scored."""
        return self.result.outcome

    @property
    def reason(self) -> str:
        """Why the item is unscored; empty if it is scored."""
        return self.result.reason

    @property
    def scores(self) -> Mapping[str, float | None]:
        """The item's own scores."""
        return self.result.scores

    @property
    def evidence(self) -> Evidence | None:
        """What the outcome is based on."""
        return self.result.evidence


class RunItems(Sequence[RunItem]):
    """The items of a run, in the order of the responses: ``items[0]``, or by id ``items["42"]``.

    The first 20,000 are held in memory, the rest in a temporary file that is read on
    demand.
    """

    def __init__(self) -> None:
        self._held: list[RunItem] = []
        self._file: Any = None
        # Of each batch in the file: the position of its first item, and its place.
        self._starts: list[int] = []
        self._offsets: list[int] = []
        self._end = 0
        self._count = 0
        # Positions of each id, found when the first one is asked for.
        self._places: dict[str, list[int]] | None = None
        # Without pread, reading seeks in the file, and several threads may read.
        self._lock = threading.Lock()

    @classmethod
    def of(cls, items: Sequence[RunItem]) -> RunItems:
        """Return the items of a batch that is in memory."""
        made = cls()
        for start in range(0, len(items), _SAVED_AT_ONCE):
            made.add(list(items[start : start + _SAVED_AT_ONCE]))
        return made

    def __reduce__(self) -> tuple[object, ...]:
        # A copy gets its own temporary file.
        return (RunItems.of, (list(self),))

    def add(self, added: list[RunItem]) -> None:
        """Add the items of a batch, without pictures that a judge was shown."""
        if not added:
            return
        if any(getattr(each.item, "pictures", ()) for each in added):
            pairs = without(((each.item, each.result) for each in added), "pictures")
            added = [RunItem(item=item, result=result) for item, result in pairs]
        if self._file is None and self._count + len(added) <= _IN_MEMORY:
            self._held += added
        else:
            self._write(added)
        self._count += len(added)
        self._places = None

    def __len__(self) -> int:
        return self._count

    def __iter__(self) -> Iterator[RunItem]:
        yield from self._held
        for number in range(len(self._starts)):
            yield from self._read(number)

    def __contains__(self, value: object) -> bool:
        return value in self._by_id() if isinstance(value, str) else super().__contains__(value)

    @overload
    def __getitem__(self, index: int | str) -> RunItem: ...

    @overload
    def __getitem__(self, index: slice) -> list[RunItem]: ...

    def __getitem__(self, index: int | str | slice) -> RunItem | list[RunItem]:
        if isinstance(index, slice):
            return [self[position] for position in range(*index.indices(len(self)))]
        if isinstance(index, str):
            index = self._place(index)
        position = range(self._count)[index]
        if position < len(self._held):
            return self._held[position]
        number = bisect_right(self._starts, position) - 1
        return self._read(number)[position - self._starts[number]]

    def __repr__(self) -> str:
        return f"<{self._count:,} items>"

    def _by_id(self) -> Mapping[str, list[int]]:
        if self._places is None:
            places: dict[str, list[int]] = {}
            for position, item in enumerate(self):
                places.setdefault(item.id, []).append(position)
            self._places = places
        return self._places

    def _place(self, item_id: str) -> int:
        known = self._by_id()
        places = known.get(item_id, ())
        if len(places) == 1:
            return places[0]
        if places:
            shown = " and ".join(map(str, places[:2]))
            raise InvalidInputError(
                f"{len(places)} items have the id {item_id!r:.80}; give a position, such as {shown}"
            )
        alike = get_close_matches(item_id, known, n=3) or list(islice(known, 3))
        raise NotFoundError(
            f"no item has the id {item_id!r:.80}; ids of this run are {len(known):,}, such as "
            f"{', '.join(map(repr, alike))}"
            if known
            else "the report holds no items; score with keep_items=True to keep them"
        )

    def _write(self, items: list[RunItem]) -> None:
        if self._file is None:
            # The file exists as long as the items do.
            self._file = tempfile.TemporaryFile(prefix="hallujudge-")  # noqa: SIM115
            weakref.finalize(self, self._file.close)
        data = runs.scored_bytes([(entry.item, entry.result) for entry in items])
        with self._lock:
            self._starts.append(self._count)
            self._offsets.append(self._file.seek(0, 2))
            self._file.write(data)
            self._file.flush()
            self._end = self._file.tell()

    def _read(self, number: int) -> list[RunItem]:
        start, end = [*self._offsets, self._end][number : number + 2]
        if hasattr(os, "pread"):
            # Processes forked from this one share the position of the file, but not the lock.
            data = os.pread(self._file.fileno(), end - start, start)
        else:
            with self._lock:
                self._file.seek(start)
                data = self._file.read(end - start)
        return [RunItem(item=item, result=result) for item, result in runs.scored_of(data)]


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport(Report):
    """A report with its items: ``report.items["42"]``, ``report.wrong()``, ``report.plot()``.

    ``print(report)`` shows it as a table; a notebook shows the first screen of the page.
    """

    items: RunItems = field(default_factory=RunItems, repr=False, compare=False)
    """The items with their results, in the order of the responses."""
    inputs: tuple[Path, ...] = field(default=(), repr=False, compare=False)
    """The files that the run read, which :meth:`save` never overwrites."""

    @classmethod
    def of(cls, report: Report, items: RunItems, inputs: tuple[Path, ...] = ()) -> RunReport:
        """Return a report together with its items."""
        # asdict would copy all that the fields hold, as plain values.
        values = {entry.name: getattr(report, entry.name) for entry in fields(Report)}
        return cls(**values, items=items, inputs=inputs)

    @property
    def holds_items(self) -> bool:
        """Whether all items of the run are here; some variants leave out further ones."""
        return len(self.items) >= self.coverage.items

    def save(
        self,
        folder: str | Path,
        *,
        html: bool = False,
        keep_text: bool = True,
        overwrite: bool = False,
    ) -> Path:
        """Write ``report.json`` and ``items.jsonl``, as ``hallujudge score`` does.

        Args:
            folder: Created if it does not exist.
            html: Whether to write ``report.html`` too.
            keep_text: Whether responses are written; otherwise their SHA-256 is.
            overwrite: Whether to replace another run in the folder.

        Returns:
            The folder.

        Raises:
            InvalidInputError: The report does not hold its items, or the folder holds a file that
                the run read and that would be overwritten.
            OutputError: The files can't be written.
        """
        self._need_items("save it")
        with MissingExtraError.unless_whole("report.save()"):
            runs.save_report(
                self,
                self.items,
                self.inputs,
                Path(folder),
                html=html,
                keep_text=keep_text,
                overwrite=overwrite,
            )
        return Path(folder)

    def wrong(self) -> list[RunItem]:
        """Return the scored items with a hallucination or a wrong answer, as the page counts them.

        Raises:
            InvalidInputError: The report does not hold its items.
        """
        self._need_items("list them")
        with MissingExtraError.unless_whole("report.wrong()"):
            return runs.wrong_items(self.items)

    def plot(self) -> Figure:
        """Return the scores and the groups with their intervals as a figure of matplotlib.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        with MissingExtraError.unless_whole("report.plot()"):
            return rendering.plot_report(self)

    def items_to_pandas(self) -> DataFrame:
        """Return the items as a DataFrame: outcome, response, fields, scores and statistics.

        Evidence, and the responses of items with several, are mappings.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        with MissingExtraError.unless_whole("report.items_to_pandas()"):
            return runs.items_frame(lambda: runs.lines_of(self, self.items))

    def items_to_parquet(self, path: str | Path) -> Path:
        """Write the items as a Parquet file and return its path.

        Raises:
            MissingExtraError: pyarrow is not installed.
            OutputError: The file can't be written.
        """
        with MissingExtraError.unless_whole("report.items_to_parquet()"):
            runs.write_parquet(Path(path), lambda: runs.lines_of(self, self.items))
        return Path(path)

    def log_to(
        self, to: str | Tracker, *, step: int | None = None, model: str = "", dataset: str = ""
    ) -> None:
        """Log scores, signature and page to an experiment tracker.

        Args:
            to: Such as ``"mlflow"``; see :func:`hallujudge.sdk.trackers.log_report`.
            step: The step of training.
            model: The evaluated model, as ``ORG/NAME``.
            dataset: The benchmark's dataset on the Hub, as ``ORG/NAME`` or ``ORG/NAME:TASK``.

        Raises:
            InvalidInputError: The tracker is unknown, or lacks its folder, model or dataset.
            MissingExtraError: Its package is not installed.
        """
        with MissingExtraError.unless_whole("report.log_to()"):
            save = partial(self.save, html=True) if self.items else None
            runs.log_run(self, self.items, save, to, step=step, model=model, dataset=dataset)

    @property
    def latex(self) -> str:
        """The scores as a LaTeX table with booktabs' rules and the signature as a footnote."""
        with MissingExtraError.unless_whole("report.latex"):
            return rendering.render_latex(self)

    @property
    def markdown(self) -> str:
        """The report as GitHub-flavoured Markdown."""
        with MissingExtraError.unless_whole("report.markdown"):
            return rendering.render_markdown(self)

    @property
    def csv(self) -> str:
        """The scores of the run and of its groups as CSV, with all digits."""
        with MissingExtraError.unless_whole("report.csv"):
            return rendering.render_csv(self)

    def _need_items(self, doing: str) -> None:
        if not self.holds_items:
            raise InvalidInputError(
                f"the report holds {len(self.items)} of its {self.coverage.items} items; score "
                f"with keep_items=True to {doing}"
            )

    def __str__(self) -> str:
        if not is_whole():
            return _plain_table(self)
        return rendering.render_table(self).rstrip("\n")

    def _repr_html_(self) -> str:
        if not is_whole():
            return f"<pre>{html.escape(_plain_table(self))}</pre>"
        return rendering.render_notebook(self)


def _plain_table(report: Report) -> str:
    """Return scores and signature as text, where the package that makes tables is not installed."""
    rows = (f"{name:<24} {_row(score)}" for name, score in report.scores.items())
    return "\n".join([*rows, report.signature])


def _row(score: Score) -> str:
    value, low, high = (
        "undefined" if number is None else f"{number:.4g}"
        for number in (score.value, score.ci_low, score.ci_high)
    )
    interval = "" if score.ci_low is None else f"[{low}, {high}]"
    return f"{value:>10}  {interval:<20}  n={score.n}"
