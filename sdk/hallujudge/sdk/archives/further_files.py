"""The further files with which an archive is scored: references and tables of its metric.

They are given by the user, or found in the archive's folder by their keys and usual names.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from shlex import quote, split

from hallujudge.metrics.answers.declared_metrics import metric_of
from hallujudge.metrics.families import benchmark_named

from ..errors import ArchiveError, HallujudgeError, InvalidInputError
from .example_files import REFERENCES, usual_files
from .found_files import is_pattern, is_url
from .inputs import InputOptions, References, declared_inputs
from .inspection import ArchiveSummary
from .readers import read_items
from .set_files import split_of_file

# File names of one run differ in these words.
_WHAT_IT_HOLDS = re.compile(
    r"[._-]?(answer|response|prediction|review|noun|question)s?", re.IGNORECASE
)
_PACKED = (".gz", ".zst")
_REFERENCES_FLAG = "-R"
_COMMAND = "command"


@dataclass(frozen=True, slots=True, kw_only=True)
class GivenFiles:
    """Further files that the user gave."""

    references: Mapping[str, References] = field(default_factory=dict)
    """Metric -> its references."""
    inputs: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """Metric -> options of its archives by name."""

    def __post_init__(self) -> None:
        for metric, own in self.inputs.items():
            declared_inputs(metric).refuse_unused(metric, InputOptions(own=own))

    def refuse_missing(self) -> None:
        """Refuse files that are not there, before anything is scored.

        Raises:
            InvalidInputError: A file is missing.
        """
        more = {f"{m}.{name}": file for m, own in self.inputs.items() for name, file in own.items()}
        for name, held in {**self.references, **more}.items():
            for each in held if isinstance(held, list) else [held]:
                # Whether an address exists is known only when it is called.
                if not isinstance(each, (str, Path)) or is_url(each):
                    continue
                if not Path(each).exists() and not is_pattern(Path(each)):
                    raise InvalidInputError(f"{name}={each}: no such file; give a file that exists")

    def paths(self) -> set[Path]:
        """Return the files."""
        more = (each for own in self.inputs.values() for each in own.values())
        return {*_paths(self.references.values()), *_paths(more)}

    def near(self, folder: Path) -> list[str]:
        """Return the metrics whose references are in a folder."""
        known = self.references.items()
        return [metric for metric, held in known if folder in {p.parent for p in _paths([held])}]


def _paths(values: Iterable[object]) -> Iterator[Path]:
    for value in values:
        for each in value if isinstance(value, list) else [value]:
            if isinstance(each, (str, Path)):
                yield Path(each).resolve()


@dataclass(frozen=True, slots=True, kw_only=True)
class JoinedArchive:
    """An archive, the metric that scores it, and the further files for that."""

    summary: ArchiveSummary
    """The archive."""
    metric: str
    """The name of what scores it."""
    references: References | None = None
    """Its references; None if the archive needs none."""
    own: Mapping[str, object] = field(default_factory=dict)
    """Options of the metric's archives by name."""
    found: Mapping[str, Sequence[ArchiveSummary]] = field(default_factory=dict)
    """Those of the files that were found, by option; references are under that name."""

    @property
    def command(self) -> str:
        """The command that scores it with these files."""
        return _command(self.summary, self.metric, _shown(self))


class ArchiveFolders:
    """Finds the metrics of archives and their further files.

    Args:
        summaries: All files of the tree.
        paths: Name of a file -> where it is.
        given: What the user gave.
    """

    def __init__(
        self, summaries: Sequence[ArchiveSummary], paths: Mapping[str, Path], given: GivenFiles
    ) -> None:
        self._paths = paths
        self._given = given
        self._files: dict[Path, list[ArchiveSummary]] = {}
        for summary in summaries:
            self._files.setdefault(paths[summary.path].parent, []).append(summary)

    def metrics_of(self, summary: ArchiveSummary) -> tuple[str, ...]:
        """Return the metrics that score an archive.

        Where its keys fit any, references decide: those of its folder, or those that were given.

        Raises:
            ArchiveError: It may be of several; the message names them.
        """
        if not summary.any_metric:
            return summary.metrics
        # References next to the archive come first: those that were given are for the whole tree.
        near = [s.metrics for s in self._others(summary) if s.role == REFERENCES and s.metrics]
        given = self._given.near(self._paths[summary.path].parent)
        known = {*given, *self._given.references, *(each for found in near for each in found)}
        if fitting := tuple(metric for metric in summary.metrics if metric in known):
            return fitting
        nearest = dict.fromkeys((*given, *(found[0] for found in near)))
        candidates = list(nearest) or list(self._given.references)
        if len(candidates) == 1 and (nearest or not summary.metrics):
            return tuple(candidates)
        readable = [metric for metric in candidates if self._reads(summary, metric)]
        if len(readable) > 1:
            fit = f"it may be of {' or '.join(readable)}, whose references all fit"
            raise ArchiveError(
                f"{fit}; score it with the metric that is meant",
                metadata={_COMMAND: _command(summary, readable[0], {})},
            )
        return tuple(readable) or summary.metrics

    def joined(self, summary: ArchiveSummary, metric: str) -> JoinedArchive:
        """Return an archive with the further files of a metric.

        Raises:
            ArchiveError: Several files of its folder may be one of them, or one is missing.
        """
        # An archive with labels of its own is scored with those; one that leaves out a part of its
        # benchmark may leave out what the references say of the rest.
        takes = summary.needs_references or not summary.metrics
        is_completed = takes or summary.allow_missing
        references = self._given.references.get(metric) if is_completed else None
        own = dict(self._given.inputs.get(metric, {}))
        found: dict[str, Sequence[ArchiveSummary]] = {}
        errors: list[ArchiveError] = []
        if takes:
            tables = [t.name for t in declared_inputs(metric).own if t.kind == "file"]
            sought = [name for name in tables if name not in own]
            sought += [REFERENCES] if references is None and _takes_references(metric) else []
            for name in sought:
                try:
                    found |= self._found(summary, metric, name)
                except ArchiveError as err:
                    errors.append(err)
        if files := found.get(REFERENCES, ()):
            places = [f.path if is_url(f.path) else self._paths[f.path] for f in files]
            references = places if len(places) > 1 else places[0]
        own |= {name: self._paths[f[0].path] for name, f in found.items() if name != REFERENCES}
        joined = JoinedArchive(
            summary=summary, metric=metric, references=references, own=own, found=found
        )
        for why in (*map(str, errors), *_what_lacks(joined)):
            raise ArchiveError(why, metadata={_COMMAND: joined.command})
        return joined

    def unshared(
        self, joined: Sequence[JoinedArchive]
    ) -> Iterator[tuple[JoinedArchive, ArchiveError | None]]:
        """Yield archives, with an error for each whose reviews, or the like, may be of another."""
        users: dict[str, list[JoinedArchive]] = {}
        for each in joined:
            for file in self._of_answers(each):
                users.setdefault(file.path, []).append(each)
        for each in joined:
            shared = [f for f in self._of_answers(each) if len(users[f.path]) > 1]
            others = [f for f in shared if not _is_named_after(f, each.summary)]
            error = None
            if others:
                names = [_name(user.summary) for user in users[others[0].path]]
                error = ArchiveError(
                    f"{_name(others[0])} may be of {' or '.join(names)}; score the one that it is "
                    "of with its command",
                    metadata={_COMMAND: each.command},
                )
            yield each, error

    def _of_answers(self, joined: JoinedArchive) -> list[ArchiveSummary]:
        """Return the files that were found which hold something of one model's answers."""
        if (declared := benchmark_named(joined.metric)) is None:
            return []
        names = [t.name for t in declared.tables if t.form in ("in order", "answers")]
        return [file for name in names for file in joined.found.get(name, ())]

    def _found(
        self, summary: ArchiveSummary, metric: str, name: str
    ) -> dict[str, Sequence[ArchiveSummary]]:
        """Return the file of a folder that is a further file of an archive, under its name.

        References of a benchmark in splits may be several files.
        """
        needed = summary.needs.get(_flag(metric, name), "")
        usual = {*usual_files(metric).get(name, ()), needed}
        suited = [s for s in self._others(summary) if _suits(s, metric, name, usual)]
        if name == REFERENCES and not suited:
            suited = self._beside_folder(summary, metric)
        # In a folder with files of several models, only names tell whose they are.
        suited = [s for s in suited if _is_named_after(s, summary)] or suited
        if name == REFERENCES and _are_of_all_splits(metric, suited):
            return {name: suited}
        if len(suited) > 1:
            either = f"its {_noun(name)} may be {' or '.join(map(_name, suited))}"
            remedy = f"give the right file with {_option(metric, name)}"
            raise ArchiveError(f"{either}; {remedy}")
        return {name: suited} if suited else {}

    def _beside_folder(self, summary: ArchiveSummary, metric: str) -> list[ArchiveSummary]:
        """Return the questions in the parent of an archive's folder, with labels from below it.

        LLaVA's folder of POPE has its questions there, and its answers and labels in folders.
        """
        parent = self._paths[summary.path].parent.parent
        near = [s for s in self._files.get(parent, ()) if _is_references(s, metric)]
        if not near or not all(map(_lacks_labels, near)):
            return []
        below = [files for place, files in self._files.items() if parent in place.parents]
        return near + [s for files in below for s in files if _is_references(s, metric)]

    def _reads(self, summary: ArchiveSummary, metric: str) -> bool:
        """Return whether a metric's reader joins an archive with its references."""
        try:
            known = self.joined(summary, metric)
            read_items(
                metric,
                self._paths[summary.path],
                known.references,
                options=InputOptions(own=known.own),
            )
        # Whatever is wrong, these references are not the ones of this archive.
        except HallujudgeError:
            return False
        return True

    def _others(self, summary: ArchiveSummary) -> Iterator[ArchiveSummary]:
        files = self._files[self._paths[summary.path].parent]
        return (each for each in files if each is not summary)


def command_of(error: ArchiveError) -> str:
    """Return the command that scores what an error leaves out; empty if there is none."""
    return error.metadata.get(_COMMAND, "")


def file_kind(name: str, metric: str) -> str:
    """Return what a further file is, for listings."""
    return f"{_noun(name)} of {metric}"


def _what_lacks(joined: JoinedArchive) -> Iterator[str]:
    """Yield what an archive lacks: references, or each file that it needs if it has none."""
    summary, metric = joined.summary, joined.metric
    if joined.references is not None or (_REFERENCES_FLAG not in summary.needs and joined.own):
        return
    options = {option.flag: option for option in declared_inputs(metric).own}
    for flag in sorted(summary.needs, key=_REFERENCES_FLAG.__ne__):
        option = options.get(flag)
        if option is not None and option.kind != "file":
            why = "needs more than this file; the command says what"
        else:
            name = REFERENCES if option is None else option.name
            why = f"has no {_noun(name)}: give them with {_option(metric, name)}"
        yield f"it is {summary.layout}, which {why}"


def _command(summary: ArchiveSummary, metric: str, files: Mapping[str, Sequence[str]]) -> str:
    """Return the command that scores an archive with some files, by their options."""
    if metric in summary.metrics[:1]:
        words = split(summary.command)
    else:
        words = ["hallujudge", "score", metric, "--responses", summary.path]
        words += [_REFERENCES_FLAG, "FILE", "--out", "results"]
    for flag, given in files.items():
        known = flag in words
        place = words.index(flag if known else "--out")
        # A flag that the command has stands before a placeholder, which files replace.
        words[place : place + 2 * known] = [word for file in given for word in (flag, file)]
    return " ".join(map(quote, words))


def _shown(joined: JoinedArchive) -> dict[str, list[str]]:
    """Return option -> files as messages name it; values that are not files are left out."""
    files = {REFERENCES: joined.references, **joined.own}
    shown = {name: [str(file)] for name, file in files.items() if isinstance(file, (str, Path))}
    shown |= {name: [file.path for file in held] for name, held in joined.found.items()}
    return {_flag(joined.metric, name): held for name, held in shown.items()}


def _flag(metric: str, name: str) -> str:
    """Return the flag of an option of a metric's archives, or that of references."""
    flags = {option.name: option.flag for option in declared_inputs(metric).own}
    return flags.get(name, _REFERENCES_FLAG)


def _takes_references(metric: str) -> bool:
    declared = benchmark_named(metric)
    if declared is None or declared.question_files:
        return True
    return metric_of(declared).overrides("listed")


def _suits(file: ArchiveSummary, metric: str, name: str, usual: set[str]) -> bool:
    """Return whether a file may be a further file of a metric's archives, by its keys or name."""
    is_usual = _name(file) in usual
    # Only its name says what such a file is.
    unknown = not file.layout and not file.metrics
    if name != REFERENCES:
        return file.table == name or (is_usual and unknown)
    if file.role == REFERENCES:
        return metric in file.metrics
    return is_usual and (unknown or (metric in file.metrics and file.also_references))


def _is_references(file: ArchiveSummary, metric: str) -> bool:
    return file.role == REFERENCES and metric in file.metrics


def _lacks_labels(file: ArchiveSummary) -> bool:
    """Return whether a file of questions needs another one with their labels."""
    return file.role == REFERENCES and file.needs_references


def _are_of_all_splits(metric: str, files: Sequence[ArchiveSummary]) -> bool:
    """Return whether files are one benchmark's references: of questions, and of each split one.

    Questions of all splits in one file tell which split an answer is of.
    """
    declared = benchmark_named(metric)
    labelled = [file for file in files if not _lacks_labels(file)]
    if declared is None or declared.split_files is None or len(files) != len(labelled) + 1:
        return False
    splits = [split_of_file(declared.split_files, Path(file.path)) for file in labelled]
    return bool(splits) and "" not in splits and len({*splits}) == len(splits)


def _is_named_after(file: ArchiveSummary, archive: ArchiveSummary) -> bool:
    """Return whether the names of two files differ in what they hold: ``a.reviews, a.answers``."""
    names = [_WHAT_IT_HOLDS.sub("", _name(each)) for each in (file, archive)]
    return names[0] == names[1] and bool(names[0].partition(".")[0])


def _name(file: ArchiveSummary) -> str:
    path = PurePosixPath(file.path.replace("\\", "/"))
    return path.stem if path.suffix in _PACKED else path.name


def _noun(name: str) -> str:
    return name.replace("_", " ")


def _option(metric: str, name: str) -> str:
    """Return the option of ``hallujudge score all`` that gives a file."""
    if name == REFERENCES:
        return f"--references {metric}=FILE"
    return f"--input {metric}.{_flag(metric, name).lstrip('-')}=FILE"
