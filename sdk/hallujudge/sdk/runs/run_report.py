"""A report together with the items of its run; items as DataFrames and Parquet files."""

from __future__ import annotations

import json
import os
import tempfile
import threading
import weakref
from bisect import bisect_right
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, overload

from hallujudge.metrics import Evidence, Item, ItemResult, Outcome, Report
from hallujudge.metrics.framework.file_schemas import schema_of

from ..backends import BatchResult, metric_of
from ..errors import InvalidInputError, MissingExtraError, NotFoundError, OutputError
from ..report import render_csv, render_latex, render_markdown, render_table
from ..report.export_formats import frame, plot_report
from ..report.item_views import view_item
from ..report.page.first_screen import render_notebook
from ..trackers import Tracker, log_report
from .folder import RunFolder
from .item_lines import response_of
from .manifest import PAGE, REPORT
from .parts import PartMaker
from .run_inputs import hash_of_items, manifest_of_report
from .saved_items import from_messages, to_messages
from .score_run import SaveOptions

if TYPE_CHECKING:
    from matplotlib.figure import Figure
    from pandas import DataFrame
    from pyarrow import Schema


ItemLine: TypeAlias = "Mapping[str, Any]"
"""An item as ``items.jsonl`` has it."""

_TEXTS = ("id", "group_id", "outcome", "reason", "detail")
# Nested objects whose entries are columns of their own: name -> whether they are numbers.
_NESTED = {"fields": False, "scores": True, "statistics": True}
_ROWS_AT_ONCE = 4096
# Items of a larger run go to a temporary file, so that memory stays bounded.
_IN_MEMORY = 20_000
_SAVED_AT_ONCE = 64


def items_frame(lines: Callable[[], Iterable[ItemLine]]) -> DataFrame:
    """Return items as a DataFrame with a row for each.

    Args:
        lines: Yields the items, each time from the beginning.

    Raises:
        MissingExtraError: pandas is not installed.
    """
    columns = _nested_columns(lines())
    return frame(_table_rows(lines(), columns, lambda value: value), "a DataFrame of items")


def write_parquet(path: Path, lines: Callable[[], Iterable[ItemLine]]) -> None:
    """Write items as a Parquet file, in bounded memory.

    Args:
        path: The file, which is replaced when it is complete.
        lines: Yields the items, each time from the beginning.

    Raises:
        MissingExtraError: pyarrow is not installed.
        OutputError: The file can't be written.
    """
    with MissingExtraError.unless_installed("a Parquet file of items", "tables"):
        from pyarrow import Table
        from pyarrow.parquet import ParquetWriter
    columns = _nested_columns(lines())
    schema, rows = _parquet_schema(columns), _table_rows(lines(), columns, _json_text)
    part = path.with_name(f".{path.name}.part")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        with ParquetWriter(part, schema) as writer:
            while batch := list(islice(rows, _ROWS_AT_ONCE)):
                writer.write_table(Table.from_pylist(batch, schema=schema))
        part.replace(path)
    except OSError as err:
        with suppress(OSError):
            part.unlink()
        raise OutputError.of(path, err, "give another path") from err


def _nested_columns(lines: Iterable[ItemLine]) -> dict[str, tuple[str, ...]]:
    """Return the names in each nested object of any item, in the order of their appearance."""
    found: dict[str, dict[str, None]] = {name: {} for name in _NESTED}
    for line in lines:
        for name, known in found.items():
            known.update(dict.fromkeys(line.get(name) or ()))
    return {name: tuple(known) for name, known in found.items()}


def _parquet_schema(columns: Mapping[str, tuple[str, ...]]) -> Schema:
    import pyarrow

    nested = [
        (f"{name}.{key}", pyarrow.float64() if _NESTED[name] else pyarrow.string())
        for name, keys in columns.items()
        for key in keys
    ]
    texts = [(name, pyarrow.string()) for name in (*_TEXTS, "response")]
    columns_of = [*texts, *nested, ("evidence", pyarrow.string())]
    return pyarrow.schema(columns_of, metadata={"schema": schema_of("item")})


def _table_rows(
    lines: Iterable[ItemLine],
    columns: Mapping[str, tuple[str, ...]],
    shapeless: Callable[[object], object],
) -> Iterator[dict[str, object]]:
    """Yield flat rows; ``shapeless`` makes a cell of a mapping or list."""
    for line in lines:
        row: dict[str, object] = {name: line.get(name, "") for name in _TEXTS}
        row["response"] = _cell(line.get("response"), shapeless)
        for name, keys in columns.items():
            values = line.get(name) or {}
            for key in keys:
                value = values.get(key)
                row[f"{name}.{key}"] = value if value is None or not _NESTED[name] else float(value)
        row["evidence"] = _cell(line.get("evidence"), shapeless)
        yield row


def _cell(value: object, shapeless: Callable[[object], object]) -> object:
    made = value if value is None or isinstance(value, str) else shapeless(value)
    # A response may contain half a surrogate pair, which UTF-8 can't encode.
    return made.encode("utf-8", "replace").decode() if isinstance(made, str) else made


def _json_text(value: object) -> str:
    return json.dumps(value, ensure_ascii=False)


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
        """Add the items of a batch."""
        if not added:
            return
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
        data = to_messages([(entry.item, entry.result) for entry in items])
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
        return [RunItem(item=item, result=result) for item, result in from_messages(data)]


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
        maker = PartMaker(
            metric_of(self.metric, self.variant, self.settings),
            tuple(self.groups),
            SaveOptions(keep_text=keep_text, html=html),
        )
        items = hash_of_items((entry.item, entry.result) for entry in self.items)
        manifest = manifest_of_report(self, self.inputs, items, keep_text=keep_text)
        with RunFolder(Path(folder), inputs=self.inputs, overwrite=overwrite) as written:
            if written.start(manifest).complete:
                return Path(folder)
            for start in range(0, len(self.items), _SAVED_AT_ONCE):
                part = self.items[start : start + _SAVED_AT_ONCE]
                batch = BatchResult(
                    items=[entry.item for entry in part],
                    results=[entry.result for entry in part],
                )
                written.add(maker.make(batch, start))
            written.finish(self, html=html)
        return Path(folder)

    def wrong(self) -> list[RunItem]:
        """Return the scored items with a hallucination or a wrong answer, as the page counts them.

        Raises:
            InvalidInputError: The report does not hold its items.
        """
        self._need_items("list them")
        return [
            entry
            for entry in self.items
            if entry.outcome is Outcome.SCORED and view_item(entry.item, entry.result).wrong
        ]

    def plot(self) -> Figure:
        """Return the scores and the groups with their intervals as a figure of matplotlib.

        Raises:
            MissingExtraError: matplotlib is not installed.
        """
        return plot_report(self)

    def items_to_pandas(self) -> DataFrame:
        """Return the items as a DataFrame: outcome, response, fields, scores and statistics.

        Evidence, and the responses of items with several, are mappings.

        Raises:
            MissingExtraError: pandas is not installed.
        """
        return items_frame(self._lines)

    def items_to_parquet(self, path: str | Path) -> Path:
        """Write the items as a Parquet file and return its path.

        Raises:
            MissingExtraError: pyarrow is not installed.
            OutputError: The file can't be written.
        """
        write_parquet(Path(path), self._lines)
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
        with tempfile.TemporaryDirectory(prefix="hallujudge-") as folder:
            files = [Path(folder, REPORT)]
            if self.items:
                files = [
                    self.save(files[0].parent / "run", html=True) / name for name in (REPORT, PAGE)
                ]
            else:
                files[0].write_text(self.to_text(), encoding="utf-8")
            lines = self._lines if self.items else tuple
            log_report(self, files, to, step=step, model=model, dataset=dataset, lines=lines)

    @property
    def latex(self) -> str:
        """The scores as a LaTeX table with booktabs' rules and the signature as a footnote."""
        return render_latex(self)

    @property
    def markdown(self) -> str:
        """The report as GitHub-flavoured Markdown."""
        return render_markdown(self)

    @property
    def csv(self) -> str:
        """The scores of the run and of its groups as CSV, with all digits."""
        return render_csv(self)

    def _need_items(self, doing: str) -> None:
        if not self.holds_items:
            raise InvalidInputError(
                f"the report holds {len(self.items)} of its {self.coverage.items} items; score "
                f"with keep_items=True to {doing}"
            )

    def _lines(self) -> Iterator[Mapping[str, Any]]:
        """Yield the items as ``items.jsonl`` has them."""
        names = [
            column.name for column in metric_of(self.metric, self.variant, self.settings).columns
        ]
        for entry in self.items:
            statistics = dict(zip(names, entry.result.statistics, strict=False))
            yield {**entry.result.to_json(), "statistics": statistics, "response": entry.response}

    def __str__(self) -> str:
        return render_table(self).rstrip("\n")

    def _repr_html_(self) -> str:
        return render_notebook(self)
