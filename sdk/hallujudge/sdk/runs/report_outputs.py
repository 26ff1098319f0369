"""What a report with its items becomes: a folder, tables, pictures, lines of a tracker."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from hallujudge.judge_service.engine.spec import metric_of
from hallujudge.metrics import Outcome, Report
from hallujudge.metrics.framework.json_values import schema_of

from ..backends import BatchResult
from ..errors import MissingExtraError, OutputError
from ..report.export_formats import frame
from ..report.item_views import view_item
from ..trackers import Tracker, log_report
from .folder import RunFolder
from .folder_guards import completed
from .manifest import PAGE, REPORT
from .parts import BATCH_ITEMS, PartMaker
from .run_inputs import hash_of_items, manifest_of_report
from .score_run import SaveOptions

if TYPE_CHECKING:
    from pandas import DataFrame
    from pyarrow import Schema

    from .run_report import RunItem

ItemLine: TypeAlias = "Mapping[str, Any]"
"""An item as ``items.jsonl`` has it."""

_TEXTS = ("id", "group_id", "outcome", "reason", "detail")
# Nested objects whose entries are columns of their own: name -> whether they are numbers.
_NESTED = {"fields": False, "scores": True, "statistics": True}
# A row group of Parquet: the rows of a long run are never in memory as a whole.
_ROWS_AT_ONCE = 4096


def save_report(
    report: Report,
    entries: Sequence[RunItem],
    inputs: tuple[Path, ...],
    folder: Path,
    *,
    html: bool,
    keep_text: bool,
    overwrite: bool,
) -> None:
    """Write a report and its items into a folder.

    Args:
        report: The report.
        entries: Its items.
        inputs: The files that its run read, which are never overwritten.
        folder: The folder.
        html: Whether to write ``report.html`` too.
        keep_text: Whether responses are written; otherwise their SHA-256 is.
        overwrite: Whether to replace another run in the folder.
    """
    maker = PartMaker(
        metric_of(report.metric, report.variant, report.settings),
        tuple(report.groups),
        SaveOptions(keep_text=keep_text, html=html),
    )
    items = hash_of_items((entry.item, entry.result) for entry in entries)
    manifest = manifest_of_report(report, inputs, items, keep_text=keep_text)
    with RunFolder(folder, inputs=inputs, overwrite=overwrite) as written:
        # The folder holds this very report already.
        if written.start(manifest).complete:
            return
        for start in range(0, len(entries), BATCH_ITEMS):
            part = entries[start : start + BATCH_ITEMS]
            batch = BatchResult(
                items=[entry.item for entry in part],
                results=[entry.result for entry in part],
            )
            written.add(maker.make(batch, start))
        written.finish(report, html=html)


def wrong_items(entries: Iterable[RunItem]) -> list[RunItem]:
    """Return the scored items with a hallucination or a wrong answer."""
    return [
        entry
        for entry in entries
        if entry.result.outcome is Outcome.SCORED and view_item(entry.item, entry.result).wrong
    ]


def log_run(
    report: Report,
    entries: Sequence[RunItem],
    save: Callable[[Path], Path] | None,
    to: str | Tracker,
    *,
    step: int | None,
    model: str,
    dataset: str,
) -> None:
    """Log a report to an experiment tracker.

    Args:
        report: The report.
        entries: Its items.
        save: Saves it with its items and page in a folder; None if it holds no items.
        to: The tracker.
        step: The step of training.
        model: The evaluated model.
        dataset: The benchmark's dataset.
    """
    with tempfile.TemporaryDirectory(prefix="hallujudge-") as folder:
        files = [Path(folder, REPORT)]
        if save is not None:
            run = save(files[0].parent / "run")
            files = [run / name for name in (REPORT, PAGE)]
        else:
            files[0].write_text(report.to_text(), encoding="utf-8")
        lines = partial(lines_of, report, entries) if entries else tuple
        log_report(report, files, to, step=step, model=model, dataset=dataset, lines=lines)


def lines_of(report: Report, entries: Iterable[RunItem]) -> Iterator[ItemLine]:
    """Yield a report's items as ``items.jsonl`` has them."""
    names = [
        column.name for column in metric_of(report.metric, report.variant, report.settings).columns
    ]
    for entry in entries:
        # Unscored items have no statistics.
        statistics = dict(zip(names, entry.result.statistics, strict=False))
        yield {**entry.result.to_json(), "statistics": statistics, "response": entry.response}


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
    # A pass of its own: a Parquet file needs its columns before its first row.
    columns = _nested_columns(lines())
    schema, rows = _parquet_schema(columns), _table_rows(lines(), columns, _json_text)
    try:
        # Under another name until it is whole: nobody should read half a file.
        with completed(path) as part, ParquetWriter(part, schema) as writer:
            while batch := list(islice(rows, _ROWS_AT_ONCE)):
                writer.write_table(Table.from_pylist(batch, schema=schema))
    except OSError as err:
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
