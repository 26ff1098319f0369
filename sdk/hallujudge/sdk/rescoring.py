"""Scoring of a run by another variant, with the claims and verdicts that the run has."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.llm.estimate import Estimate
from hallujudge.metrics import Report

from .archives.found_files import found_files, is_url
from .archives.inputs import InputOptions
from .errors import ArchiveError, InvalidInputError, UnsupportedError
from .runs.manifest import VERDICTS
from .runs.run_inputs import PreparedRun, described_file, is_input_file
from .runs.stored_runs import StoredRun, read_run
from .score_run import ScoreRun

if TYPE_CHECKING:
    from .client import Client

__all__ = ["rescore_run"]


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
    from .client import Client

    run = read_run(folder)
    scoring = replace(scoring_of(run), variant=variant, folder=out, html=html, overwrite=overwrite)
    _refuse_same_folder(run.folder, Path(out))
    with Client.embedded(judges_of(run)) as client:
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
    again = {str(given.get("path", "")): _same(name, given) for name, given in inputs}
    return ScoreRun(
        repeat["metric"],
        responses=again.get(repeat["responses"], repeat["responses"]),
        references=_references([str(again.get(path, path)) for path in repeat["references"]]),
        variant=repeat["variant"],
        graph=_graph(repeat["graph"]),
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
    settings = dict(repeat.get("judges", {}))
    if (run.folder / VERDICTS).exists():
        settings["verdict_cache"] = str(run.folder / VERDICTS)
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
    path = _fetched(given) if is_url(given) else Path(given)
    if not given or not is_input_file(path):
        raise ArchiveError(f"{path}: the {name} of the run are gone; put the file back")
    now = described_file(path)
    if now["sha256"] != before.get("sha256"):
        raise ArchiveError(
            f"{given}: the {name} have changed since the run (sha256 {before.get('sha256')!s:.12} "
            f"→ {now['sha256']!s:.12}); score again"
        )
    return path


def _fetched(url: str) -> Path:
    [*_, last] = found_files(url)
    return last.root or last.path


def _refuse_same_folder(folder: Path, out: Path) -> None:
    if os.path.realpath(out) == os.path.realpath(folder):
        raise InvalidInputError(f"{out} holds the run itself; give another folder for the results")


def _references(paths: Sequence[str]) -> str | list[str] | None:
    return None if not paths else paths[0] if len(paths) == 1 else list(paths)


def _graph(graphs: Mapping[str, str]) -> str | Mapping[str, str] | None:
    return graphs.get("") or graphs or None


def _inputs(values: Mapping[str, Any]) -> InputOptions:
    lists = {name: tuple(value) for name, value in values.items() if isinstance(value, list)}
    given = {**values, **lists}
    shared = {name: given.pop(name) for name in InputOptions.__slots__ if name in given}
    return InputOptions(**shared, own=given)
