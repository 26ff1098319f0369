"""The inputs of a run: reading them, and recording their hashes and the settings in a manifest."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import structs

from hallujudge.judge_service import __version__, is_whole
from hallujudge.judge_service.engine.spec import InlineGraph, ScoreSpec, header_of, known_metric
from hallujudge.metrics import Report
from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.families import benchmark_named
from hallujudge.metrics.framework.results import JsonValue

from .. import runs
from ..archives.found_files import copy_of, found_files, is_pattern, is_url, origin_of, public_url
from ..archives.inputs import (
    CheckedArchive,
    InputOptions,
    are_paths,
    declared_inputs,
    own_paths,
)
from ..archives.json_lines import Marks
from ..archives.local_files import reading
from ..archives.plain_values import with_positions
from ..archives.readers import read_items
from ..errors import ArchiveError, HallujudgeError
from .manifest import MANIFEST, Manifest, partial
from .score_run import group_keys

if TYPE_CHECKING:
    from hallujudge.judge_service.engine.spec import RunHeader

    from ..archives import ItemSource
    from .parts import EarlyWorkers
    from .score_run import ScoreRun


_LONGEST_PATH = 4096  # PATH_MAX of Linux
_ENDS_OF_SENTENCES = (".", "!", "?")
_PATH_LIKE = re.compile(r"[^\n]*(?:[/\\][^\n]*|\.[A-Za-z][A-Za-z0-9]{0,7})")
# Claims of a response, where they are extracted later; too few cost some more calls.
_USUAL_CLAIMS = 5


@dataclass(frozen=True, slots=True, kw_only=True)
class PreparedRun:
    """A run whose inputs were read and checked."""

    run: ScoreRun
    """What is scored and how, as the caller described it."""
    spec: ScoreSpec
    """How items are scored, with defaults and the contents of graph files."""
    items: ItemSource
    """What the archive holds; they are read again each time."""
    workers: EarlyWorkers | None = None
    """Workers that were started while the items were read; None without."""

    @classmethod
    def of(
        cls, run: ScoreRun, spec: ScoreSpec | None = None, workers: EarlyWorkers | None = None
    ) -> PreparedRun:
        """Read a run's inputs. The archive of a resumed run is not checked a second time.

        Args:
            run: The run.
            spec: How its items are scored, if that is known already.
            workers: Workers that were started before; they check slices of the archive.

        Raises:
            ArchiveError: A file can't be used, or ids don't join.
            InvalidInputError: The variant, the graph or an option is invalid.
            NotFoundError: The metric or graph is unknown.
        """
        typed, spec = spec is not None, spec or run.spec()
        if run.ids:
            given, known = with_positions(run.ids, run.responses, run.references)
            run = replace(run, responses=given, references=known, ids="")
        resumed = run.resume and run.folder is not None
        checked = checked_archive(run, Path(run.folder or "")) if resumed else None
        try:
            items = read_items(
                run.metric,
                run.responses,
                run.references,
                options=_read_options(run.inputs, spec),
                group_by=tuple(run.group_by),
                metric_groups=group_keys(run.metric, ()),
                check=checked or workers,
            )
        except (ArchiveError, TypeError) as err:
            # A command line holds names of files alone; a program may hold the texts themselves.
            if not typed and (mistake := _texts_in_place_of_files(run)):
                raise ArchiveError(mistake) from err
            raise
        options = {**items.asked, **spec.options}
        spec = structs.replace(spec, options=options, claims=_expected_claims(spec, items))
        return cls(run=run, spec=spec, items=items, workers=workers)


def _texts_in_place_of_files(run: ScoreRun) -> str:
    """Return which texts were taken for names of files, as a caption may be; empty if none was."""
    if run.responses is None:
        return "responses: None; give a file, a mapping from id to text, or records"
    for name, source in (("responses", run.responses), ("references", run.references)):
        given: Sequence[object] = source if isinstance(source, (list, tuple)) else [source]
        texts = [text for text in given if isinstance(text, str)]
        are_texts = texts and len(texts) == len(given)
        if are_texts and not any(is_url(text) or _may_be_path(text) for text in texts):
            return (
                f"{name}: {texts[0][:80]!r} is no file; give texts in a mapping from id to text, "
                "such as dict(zip(ids, texts)), or with ids='position', and files by their paths"
            )
    return ""


def _may_be_path(text: str) -> bool:
    """Return whether a text is a path, a pattern, or looks like one that is missing."""
    if len(text) > _LONGEST_PATH or text.endswith(_ENDS_OF_SENTENCES):
        return False
    if text == "-" or is_pattern(Path(text)) or os.path.lexists(text):
        return True
    # Names of missing files end in a suffix or hold a separator; words and sentences have neither.
    return _PATH_LIKE.fullmatch(text) is not None


def _expected_claims(spec: ScoreSpec, items: ItemSource) -> int:
    """Return about how many claims a language model judges; 0 if it judges none."""
    if not known_metric(spec.metric).asks_llm(spec.options) or not _measures_shares(spec):
        return 0
    if not hasattr(next(iter(items), None), "claims"):
        return len(items)
    return sum(
        _USUAL_CLAIMS if (given := getattr(item, "claims", None)) is None else len(given)
        for item in items
    )


def _measures_shares(spec: ScoreSpec) -> bool:
    """Return whether the number of claims decides of how many the share of the choices is measured.

    A client alone does not know, and a metric that measures none does not read the number.
    """
    if not is_whole():
        return True
    return runs.metric_entry(spec.metric).measures_shares


def _read_options(given: InputOptions | None, spec: ScoreSpec) -> InputOptions | None:
    """Return the options for reading a run's archive, with what the spec says of them."""
    declared = benchmark_named(spec.metric)
    if declared is None:
        # Such as the frames of videos, which are read here and named by the metric's signature.
        known = (each.name for each in declared_inputs(spec.metric).own if each.kind == "set")
        if taken := {name: spec.options[name] for name in known if name in spec.options}:
            given = given or InputOptions()
            return replace(given, own={**given.own, **taken})
    if declared is not None and spec.variant in metric_of(declared).drops_unknown:
        return replace(given or InputOptions(), drop_unknown=True)
    return given


def checked_archive(run: ScoreRun, folder: Path) -> CheckedArchive | None:
    """Return what a stopped run knew of its archive, or None if it must be checked again.

    A run writes its manifest after the whole archive was checked. Files with the same bytes, read
    by the same release with the same options, need no second check.

    Args:
        run: The run to resume.
        folder: Its folder.
    """
    try:
        manifest = Manifest.read(partial(folder, MANIFEST))
        marks = Marks.of(runs.read_marks(folder, manifest))
        same = manifest.release == __version__ and _reads_the_same(run, manifest)
    except (HallujudgeError, OSError, ValueError):
        # Starting the run reports what is wrong with its folder.
        return None
    return CheckedArchive(count=manifest.items, marks=marks) if same and marks.marks else None


def _reads_the_same(run: ScoreRun, manifest: Manifest) -> bool:
    files = files_of(run)
    if files is None or files.keys() != manifest.inputs.keys() or run.metric != manifest.metric:
        return False
    before = {key: value for key, value in manifest.settings.items() if key.startswith("input.")}
    now = {f"input.{name}": value for name, value in input_options(run).items()}
    groups = list(group_keys(run.metric, run.group_by))
    return (
        before == now
        and manifest.settings.get("group_by") == groups
        and all(is_unchanged(path, manifest.inputs[name]) for name, path in files.items())
    )


def manifest_of(
    prepared: PreparedRun, header: RunHeader, repeat: Mapping[str, Any] | None = None
) -> Manifest:
    """Return the manifest of a run. Every file is read once more for its hash.

    Args:
        prepared: The run.
        header: What is known of the run before its first item.
        repeat: What else is needed to repeat the run, such as the settings of its judges.

    Raises:
        ArchiveError: A file can't be read.
    """
    run, items = prepared.run, prepared.items
    given = _run_inputs(run)
    files = _readable(given)
    inputs: dict[str, dict[str, JsonValue]] = {
        name: described_file(path, items.files) for name, path in files.items()
    }
    # Values in memory have no file to hash, and neither has a URL whose copy is gone.
    if len(files) != len(given):
        inputs["items"] = {"sha256": hash_of_items(items)}
    if items.shown_sha256:
        inputs["pictures"] = {"sha256": items.shown_sha256}
    return Manifest(
        release=header.release,
        metric=run.metric,
        variant=header.metric.variant,
        signature=header.signature,
        items=len(items),
        inputs=inputs,
        settings=_settings(run, prepared.spec, header),
        run=_repetition(run, repeat or {}) if _is_repeatable(given, files) else {},
    )


def manifest_of_report(
    report: Report, paths: Iterable[Path], items: str, *, keep_text: bool
) -> Manifest:
    """Return the manifest of a report that is saved after its run.

    Args:
        report: The report.
        paths: The files that the run read.
        items: The hash of its items and results, which may be of values in memory.
        keep_text: Whether responses are kept.

    Raises:
        ArchiveError: A file can't be read.
    """
    header = header_of(report)
    # A report may be saved long after its run, when an input was moved.
    files = [path for path in paths if path.exists()]
    return Manifest(
        release=header.release,
        metric=report.metric,
        variant=report.variant,
        signature=header.signature,
        items=report.coverage.items,
        inputs={
            **{f"file.{number}": described_file(path) for number, path in enumerate(files, 1)},
            "items": {"sha256": items},
        },
        settings={
            "group_by": list(report.groups),
            "keep_text": keep_text,
            **{f"setting.{name}": value for name, value in report.settings.items()},
        },
    )


def _run_inputs(run: ScoreRun) -> dict[str, object]:
    """Return everything that a run reads, files and values, by name."""
    options = run.inputs or InputOptions()
    given = {
        **_numbered("responses", run.responses),
        **_numbered("references", run.references),
        **own_paths(run.metric, options, "file"),
    }
    return {name: value for name, value in given.items() if value is not None}


def _numbered(name: str, source: object) -> dict[str, object]:
    """Return the files of an archive by name; those after the first are numbered from 2."""
    if not are_paths(source):
        return {name: source}
    return {name if n == 1 else f"{name}.{n}": path for n, path in enumerate(source, 1)}


def _readable(given: Mapping[str, object]) -> dict[str, Path]:
    """Return the files that a run reads; for a URL, the copy that was downloaded."""
    copies = {name: copy_of(value) for name, value in given.items() if is_url(value)}
    files = {name: Path(str(value)) for name, value in given.items() if _is_file(value)}
    return files | {name: copy for name, copy in copies.items() if copy is not None}


def _is_repeatable(given: Mapping[str, object], files: Mapping[str, Path]) -> bool:
    """Return whether everything can be read again. The manifest omits the secrets of URLs."""
    urls = filter(None, map(origin_of, files.values()))
    # A URL whose secret is left out can't be fetched again.
    return len(files) == len(given) and all(url == public_url(url) for url in urls)


def _is_file(value: object) -> bool:
    """Return whether a value is a file, a folder or a pattern, which are read alike."""
    return isinstance(value, (str, Path)) and is_input_file(Path(value))


def is_input_file(path: Path) -> bool:
    """Return whether a file or folder exists, or a pattern that may match files is given."""
    return path.exists() or is_pattern(path)


def files_of(run: ScoreRun) -> dict[str, Path] | None:
    """Return the files that a run reads, by name; None if it reads anything else."""
    given = _run_inputs(run)
    files = {name: Path(str(value)) for name, value in given.items() if _is_file(value)}
    return files if len(files) == len(given) else None


def is_unchanged(path: Path, before: Mapping[str, Any]) -> bool:
    """Return whether a file has the size and hash that it had before.

    Args:
        path: The file.
        before: What :func:`described_file` returned.

    Raises:
        ArchiveError: The file can't be read.
    """
    # A look at the size spares reading a file that has surely changed.
    if path.is_file() and path.stat().st_size != before.get("bytes"):
        return False
    # A time stamp says nothing of the bytes, and a hash costs 0.3 µs a caption.
    return described_file(path)["sha256"] == before.get("sha256")


def described_file(path: Path, opened: Iterable[Path] = ()) -> dict[str, JsonValue]:
    """Return path, size and hash of a file, or of all files of a folder or pattern.

    Args:
        path: The path.
        opened: Files that are open, and are not opened again.

    Raises:
        ArchiveError: A file can't be read.
    """
    size, digest = 0, hashlib.sha256()
    known = {file: file for file in opened}
    for file, name in _files(path):
        size += file.stat().st_size
        # With the names, moving lines from one file to another is a change.
        if name:
            # Names of files may hold bytes that are not UTF-8.
            digest.update(f"{name}\0".encode(errors="replace"))
        read = known.get(file, file)
        with reading(read), read.open("rb") as stream:
            hashlib.file_digest(stream, lambda: digest)
    shown = public_url(origin_of(path)) if origin_of(path) else str(path.resolve())
    # The manifest is UTF-8, which the bytes of a file's name need not be.
    shown = shown.encode(errors="replace").decode()
    return {"path": shown, "bytes": size, "sha256": digest.hexdigest()}


def _files(path: Path) -> Iterator[tuple[Path, str]]:
    """Yield the files of a path; with their names if there may be several."""
    if path.is_dir():
        inside = sorted(file for file in path.rglob("*") if file.is_file())
        yield from ((file, file.relative_to(path).as_posix()) for file in inside)
    elif is_pattern(path):
        found = [(file.path, file.root or Path()) for file in found_files(path)]
        yield from ((file, file.relative_to(root).as_posix()) for file, root in found)
    else:
        yield path, ""


def hash_of_items(items: Iterable[object]) -> str:
    """Return a hash of the items of a run, for inputs that are not all files."""
    digest = hashlib.sha256()
    # Responses may contain halves of surrogate pairs, which plain UTF-8 can't encode.
    for item in items:
        digest.update(repr(item).encode("utf-8", "surrogatepass"))
    return digest.hexdigest()


def _settings(run: ScoreRun, spec: ScoreSpec, header: RunHeader) -> dict[str, JsonValue]:
    graphs = {
        # A graph of words may hold half of a surrogate pair, as JSON can write one.
        f"graph.{role}": hashlib.sha256(source.text.encode("utf-8", "surrogatepass")).hexdigest()
        if isinstance(source, InlineGraph)
        else source.name
        for role, source in sorted(spec.graphs.items())
    }
    options = _with_defaults(spec)
    return {
        **{f"option.{name}": value for name, value in sorted(options.items())},
        **graphs,
        **{f"input.{name}": value for name, value in input_options(run).items()},
        "group_by": list(spec.group_by),
        "interval": spec.interval.text,
        "keep_text": run.keep_text,
        **{f"setting.{name}": value for name, value in header.settings.items()},
    }


def _with_defaults(spec: ScoreSpec) -> dict[str, str]:
    """Return the options of a run: an explicit default is the same as no option.

    A client alone knows the metric's own options, and not those of extractors and judges.
    """
    options = known_metric(spec.metric).options
    if is_whole():
        options = runs.metric_entry(spec.metric).options
    return {**{option.name: option.default for option in options}, **spec.options}


def input_options(run: ScoreRun) -> dict[str, JsonValue]:
    """Return the input options that are not files and not at their defaults."""
    options, default = run.inputs or InputOptions(), InputOptions()
    changed = {
        entry.name: getattr(options, entry.name)
        for entry in fields(options)
        if entry.name != "own" and getattr(options, entry.name) != getattr(default, entry.name)
    }
    # What folders hold is known by its hash, wherever they lie.
    paths = own_paths(run.metric, options, "file", "folder")
    changed |= {name: value for name, value in options.own.items() if name not in paths}
    return {
        name: list(value) if isinstance(value, tuple) else value for name, value in changed.items()
    }


def _repetition(run: ScoreRun, more: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments of a run of files and URLs, with absolute paths."""
    paths = own_paths(run.metric, run.inputs or InputOptions(), "file", "folder")
    given = run.graph or {}
    graphs = dict(given) if isinstance(given, Mapping) else {"": str(given)}
    return {
        "metric": run.metric,
        "responses": _all_absolute(run.responses),
        "references": _all_absolute(run.references),
        "variant": run.variant,
        "graph": {role: _absolute(name) for role, name in graphs.items()},
        "options": {name: str(value) for name, value in (run.options or {}).items()},
        "group_by": list(run.group_by),
        "confidence": run.confidence,
        "inputs": input_options(run) | {name: _absolute(path) for name, path in paths.items()},
        **more,
    }


def _all_absolute(source: object) -> list[str]:
    given = source if isinstance(source, list) else [source]
    return [_absolute(path) for path in given if path is not None]


def _absolute(value: object) -> str:
    path = Path(str(value))
    text = origin_of(path) or (str(path.resolve()) if is_input_file(path) else str(value))
    return text.encode(errors="replace").decode()
