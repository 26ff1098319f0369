"""Runs made from other runs: shards merged into one, and a run rescored by another variant."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, BinaryIO

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.engine.spec import RunHeader
from hallujudge.judge_service.llm.estimate import Estimate
from hallujudge.judge_service.settings.loading import names_of
from hallujudge.metrics import Report, Tally
from hallujudge.metrics.framework.signature import before_items

from .archives.found_files import found_files, is_url
from .archives.inputs import InputOptions
from .archives.joins import IdCheck
from .archives.json_files import amount
from .client import Client
from .errors import ArchiveError, InvalidInputError, UnsupportedError
from .runs.folder import RunFolder
from .runs.item_lines import unsigned_lines
from .runs.manifest import ITEMS, JOURNAL, MANIFEST, MERGED_INPUT, REPORT, VERDICTS, Manifest
from .runs.parts import Part
from .runs.run_inputs import PreparedRun, described_file, is_input_file
from .runs.saved_items import kept_shown
from .runs.score_run import ScoreRun
from .runs.stored_runs import StoredRun, read_run


def merge_runs(
    folders: Sequence[str | Path],
    out: str | Path,
    *,
    html: bool = False,
    overwrite: bool = False,
) -> Report:
    """Merge runs over different items into one, without scoring again.

    The files have the same bytes as those of one run over all items in this order.

    Args:
        folders: Folders of complete runs of one metric with the same settings.
        out: Folder for the merged run; created if it does not exist.
        html: Whether to write ``report.html`` too.
        overwrite: Whether to replace a run of other items in the folder.

    Returns:
        The report over all items.

    Raises:
        ArchiveError: A folder does not hold a complete run.
        InvalidInputError: The runs differ in a setting, or an item is in several of them.
        OutputError: The merged run can't be written.
    """
    runs = [read_run(folder) for folder in folders]
    if not runs:
        raise InvalidInputError("no run is given; give the folders of the runs to merge")
    _refuse_different(runs)
    _refuse_duplicates(runs)
    header, manifest = header_of_run(runs[0]), _manifest(runs)
    total = Tally(header.metric, tuple(manifest.settings.get("group_by", ())))
    # What is merged must not be overwritten by the merged run.
    read = [run.folder / name for run in runs for name in (ITEMS, REPORT, MANIFEST, JOURNAL)]
    with RunFolder(Path(out), inputs=read, overwrite=overwrite) as folder:
        # The same runs were merged into this folder before.
        if folder.start(replace(manifest, signature=header.signature)).complete:
            return read_run(out).report
        for run in runs:
            for part in _parts(run, folder, html=html):
                folder.add(part)
                total.merge_bytes(part.tally)
        report = header.report(total, runs[0].interval)
        folder.finish(report, html=html)
    return report


def header_of_run(run: StoredRun) -> RunHeader:
    """Return what is known of a complete run before its first item."""
    own = run.tally_of_journal().finish(run.interval, version=run.release).notes
    # Notes on small samples come last; those of the merged run may differ.
    notes = run.report.notes[: len(run.report.notes) - len(own)]
    return RunHeader(
        metric=run.metric,
        signature=before_items(run.signature),
        settings=run.report.settings,
        notes=notes,
        release=run.release,
    )


def _parts(run: StoredRun, merged: RunFolder, *, html: bool) -> Iterator[Part]:
    """Yield the parts of a run, as parts of the merged one."""
    with closing((run.folder / ITEMS).open("rb")) as file:
        # The journal holds everything but the lines, so that a merge parses no JSON.
        for entry in run.entries():
            lines = b"".join(_lines(file, entry.items, run))
            shown = kept_shown(entry.shown, merged.written, html=html)
            yield Part.of(entry, unsigned_lines(lines, run.signature), shown=shown)


def _lines(file: BinaryIO, count: int, run: StoredRun) -> Iterator[bytes]:
    for _ in range(count):
        if not (line := file.readline()):
            raise ArchiveError(
                f"{run.folder / ITEMS}: fewer lines than the journal has items; the file is cut "
                "off: score again"
            )
        yield line


def _manifest(runs: Sequence[StoredRun]) -> Manifest:
    """Return the manifest of the merged run, with the signature of its first part."""
    manifests = [run.manifest for run in runs if run.manifest is not None]
    return replace(
        manifests[0],
        items=sum(map(len, runs)),
        inputs={
            f"{MERGED_INPUT}{number}.{name}": described
            for number, manifest in enumerate(manifests, 1)
            for name, described in manifest.inputs.items()
        },
        run={},
    )


def _refuse_different(runs: Sequence[StoredRun]) -> None:
    for run in runs:
        if run.manifest is None or not (run.folder / JOURNAL).exists():
            raise ArchiveError(
                f"{run.folder} has no {MANIFEST} or no {JOURNAL}; score it again to merge it"
            )
        differences = runs[0].manifest.other_settings(run.manifest) if runs[0].manifest else []
        if differences:
            raise InvalidInputError(
                f"{runs[0].folder} and {run.folder} can't be merged; they differ in "
                f"{'; '.join(differences)}. Give the parts of one run"
            )


def _refuse_duplicates(runs: Sequence[StoredRun]) -> None:
    ids = IdCheck()

    # The ids are read twice only if a hash of one is there twice.
    def identifiers() -> Iterator[str]:
        return (str(line["id"]) for run in runs for line in run.lines())

    for identifier in identifiers():
        ids.add(identifier)
    if duplicates := ids.duplicates(identifiers):
        raise InvalidInputError(
            f"{amount(len(duplicates), 'item is', 'items are')} in several of the runs, such as "
            f"{duplicates[0]!r:.60}; "
            "merge runs over different items"
        )


def rescore_run(
    folder: str | Path,
    out: str | Path,
    *,
    variant: str,
    html: bool = False,
    overwrite: bool = False,
) -> Report:
    """Score the items of a run by another variant, without calling a language model.

    Claims and verdicts come from the run's verdict cache. Everything else is computed again from
    the inputs, which must not have changed.

    Args:
        folder: Folder of a complete run.
        out: Folder for the new run; created if it does not exist.
        variant: The variant.
        html: Whether to write ``report.html`` too.
        overwrite: Whether to replace another run in the folder.

    Returns:
        The report.

    Raises:
        ArchiveError: The folder does not hold a complete run, or an input has changed.
        InvalidInputError: The run was merged, or scored from values in memory.
        UnsupportedError: A language model would have to be called; the message says how often.
        OutputError: The new run can't be written.
    """
    run = read_run(folder)
    scoring = replace(scoring_of(run), variant=variant, folder=out, html=html, overwrite=overwrite)
    if os.path.realpath(out) == os.path.realpath(run.folder):
        raise InvalidInputError(f"{out} holds the run itself; give another folder for the results")
    with Client.embedded(judges_of(run)) as client:
        # Before anything is written: a missing verdict would end the run on its way.
        if metric_entry(scoring.metric).calls_models(scoring.spec()):
            _refuse_calls(client, scoring, run)
        return client.score(
            **{entry.name: getattr(scoring, entry.name) for entry in fields(scoring)}
        )


def scoring_of(run: StoredRun) -> ScoreRun:
    """Return what a run scored and how, with inputs that are known to be the same.

    Raises:
        ArchiveError: An input is gone or has changed.
        InvalidInputError: The run was merged, or scored from values in memory.
    """
    _refuse_merged(run)
    repeat = dict(run.manifest.run) if run.manifest is not None else {}
    if not repeat or run.manifest is None:
        raise InvalidInputError(
            f"{run.folder}: its items can't be read again, since they were standard input or "
            "values in memory, or are behind a URL with a password or a query; score the items "
            "with the other variant"
        )
    inputs = run.manifest.inputs.items()
    # Inputs are compared by hash: other inputs would be another run under the same name.
    again = {str(given.get("path", "")): _same(name, given) for name, given in inputs}
    return ScoreRun(
        repeat["metric"],
        responses=_archive(again, repeat["responses"]) or "",
        references=_archive(again, repeat["references"]),
        variant=repeat["variant"],
        graph=repeat["graph"].get("") or repeat["graph"] or None,
        options=repeat["options"],
        group_by=tuple(repeat["group_by"]),
        confidence=repeat["confidence"],
        inputs=_inputs(repeat["inputs"]),
        keep_text=bool(run.manifest.settings["keep_text"]),
    )


def _refuse_merged(run: StoredRun) -> None:
    """Refuse a merged run: inputs and verdicts are known of each run that it was merged from."""
    merged = 0 if run.manifest is None else run.manifest.merged_runs
    if merged:
        raise InvalidInputError(
            f"{run.folder} was merged from {merged} runs; rescore each of them with `hallujudge "
            "rescore RUN --variant VARIANT --out DIR`, and merge the results with `hallujudge "
            "merge`"
        )


def judges_of(run: StoredRun) -> dict[str, object]:
    """Return the settings of a run's judges, with its verdict cache and no call allowed."""
    repeat = run.manifest.run if run.manifest is not None else {}
    settings = names_of(repeat.get("judges", {}))
    if (run.folder / VERDICTS).exists():
        settings["verdict_cache"] = str(run.folder / VERDICTS)
    # A budget of no calls: a missing verdict ends the rescoring instead of being paid for.
    return settings | {"max_calls": 0}


def _refuse_calls(client: Client, scoring: ScoreRun, run: StoredRun) -> None:
    if run.manifest is not None and run.manifest.run.get("server"):
        raise UnsupportedError(
            f"{run.folder} was scored at a server, which has its verdicts; score there again with "
            f"ScoreRun(variant={scoring.variant}): what was judged before costs nothing"
        )
    rows = client.estimate_prepared(PreparedRun.of(scoring))
    if missing := [_missing_calls(row) for row in rows if row.calls or row.unknown_texts]:
        raise UnsupportedError(
            f"{run.folder} does not have all verdicts that variant {scoring.variant} needs: "
            f"{'; '.join(missing)}. Score again with hallujudge score"
        )


def _missing_calls(row: Estimate) -> str:
    texts = f" and the claims of {row.unknown_texts} texts" if row.unknown_texts else ""
    return f"{row.judge} would be called {row.calls} times{texts}"


def _same(name: str, before: Mapping[str, Any]) -> Path:
    """Return a file that is as it was; of a URL, a new copy."""
    given = str(before.get("path", ""))
    path = Path(given)
    if is_url(given):
        [*_, last] = found_files(given)
        path = last.root or last.path
    if not given or not is_input_file(path):
        raise ArchiveError(f"{path}: the {name} of the run are gone; put the file back")
    now = described_file(path)
    if now["sha256"] != before.get("sha256"):
        raise ArchiveError(
            f"{given}: the {name} have changed since the run (sha256 {before.get('sha256')!s:.12} "
            f"→ {now['sha256']!s:.12}); score again"
        )
    return path


def _archive(again: Mapping[str, object], paths: Sequence[str]) -> str | list[str] | None:
    """Return the files of an archive, which were checked to be the same; None without any."""
    known = [str(again.get(path, path)) for path in paths]
    return known if len(known) > 1 else next(iter(known), None)


def _inputs(values: Mapping[str, Any]) -> InputOptions:
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    given = {**values, **lists}
    shared = {name: given.pop(name) for name in InputOptions.__slots__ if name in given}
    return InputOptions(**shared, own=given)
