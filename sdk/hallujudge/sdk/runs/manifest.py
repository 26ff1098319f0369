"""The manifest of a run: what was scored, and how; and the names of the files in its folder."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import dataclass, field, fields
from hashlib import sha256
from pathlib import Path
from typing import Any, NotRequired, TypedDict

from hallujudge.judge_service.errors import fault_of
from hallujudge.metrics.framework.signature import same_but_versions, shown_apart

from ..archives.stored_files import stored_value
from ..errors import ArchiveError, InvalidInputError, VersionMismatchError

FORMAT = 1
"""Incremented when older releases could misread a run's folder."""

MERGED_INPUT = "run."
"""Prefix of the names of a merged run's inputs, before the number of the run they come from."""

_ABSENT = "absent"
# Limits of what an error shows of two manifests that differ.
_SHOWN_CHARS = 80
_SHOWN_DIGITS = 12
_SHOWN_DIFFERENCES = 5
# They name the version of a judge's server, which may become known between two runs.
_JUDGED = ("judge_model", "signature")
# A damaged or unrelated file must not fill the memory.
_MAX_BYTES = 1 << 26
_SHA256 = re.compile(r"[0-9a-f]{64}")

ITEMS, REPORT, PAGE, PARQUET = "items.jsonl", "report.json", "report.html", "items.parquet"
MANIFEST, JOURNAL = "manifest.json", "journal.bin"
MARKS = "marks.bin"
"""Places in the archive where a resumed run can begin to read; removed with the last item."""

CALIBRATION = "calibration.json"
"""The scores corrected by human labels, which ``calibrate`` writes."""

ANALYSIS = "analysis.json"
"""The papers' analyses of the run, which ``analyze`` writes."""

CASCADE = "cascade.json"
"""The margin above which verdicts are kept, which ``calibrate --agreement`` writes."""

OVERVIEW = "overview.json"
"""The scores of a folder of runs, which ``score all`` writes there."""

PARSERS = "parsers.json"
"""The comparison of answer parsers, which ``score pope --all-parsers`` writes."""

LABELS = "labels.json"
"""The scores by several sets of labels, which ``score pope`` writes if it has several."""

VERDICTS = "verdicts.sqlite"
"""The verdict cache of a run whose settings name none."""

RUN_FILES = frozenset({ITEMS, REPORT, MANIFEST, JOURNAL, MARKS, VERDICTS})
"""Files that nothing but a run writes."""

STALE = (REPORT, PAGE, PARQUET, ANALYSIS, PARSERS, LABELS, CALIBRATION, CASCADE)
"""Files about the items of an earlier run, removed when new results replace them."""


class _InputFile(TypedDict, total=False):
    """What a manifest has of a file that was read."""

    path: str
    bytes: int
    sha256: str


# Settings that other modules read; more may follow.
_Settings = TypedDict(
    "_Settings",
    {"group_by": list[str], "interval": str, "keep_text": bool, "option.card": str},
    total=False,
)


class _Repetition(TypedDict):
    """The arguments with which a run can be repeated."""

    metric: str
    responses: list[str]
    references: list[str]
    variant: str
    graph: dict[str, str]
    options: dict[str, str]
    group_by: list[str]
    confidence: float
    inputs: dict[str, Any]
    judges: NotRequired[dict[str, Any]]
    server: NotRequired[bool]


@dataclass(frozen=True, slots=True, kw_only=True)
class Manifest:
    """What a run's results depend on. Runs with equal manifests write equal files."""

    release: str
    """Release of Hallujudge that scores."""
    metric: str
    """The name of what the run measures."""
    variant: str
    """The named version of the metric."""
    signature: str
    """The signature up to what depends on the items."""
    items: int
    """Number of items."""
    inputs: Mapping[str, Mapping[str, Any]]
    """What is read: name -> path, bytes and sha256, or the sha256 of the items."""
    settings: Mapping[str, Any]
    """Everything else that results depend on, by name."""
    run: Mapping[str, Any] = field(default_factory=dict)
    """Arguments with which the run can be repeated; empty if some are not files or texts."""

    @property
    def merged_runs(self) -> int:
        """Number of runs that were merged into this one; 0 for a run that was scored."""
        return len({name.split(".")[1] for name in self.inputs if name.startswith(MERGED_INPUT)})

    def to_text(self) -> str:
        """Return the content of ``manifest.json``."""
        fields_of = {entry.name: getattr(self, entry.name) for entry in fields(self)}
        values = {"format": FORMAT, **fields_of}
        # JSON has no NaN: other programs could not read what Python writes for it.
        return json.dumps(values, indent=1, ensure_ascii=False, allow_nan=False) + "\n"

    @classmethod
    def read(cls, path: Path) -> Manifest:
        """Return the manifest of a file.

        Raises:
            ArchiveError: The file can't be read, or is not a manifest.
            VersionMismatchError: A newer release wrote it.
        """
        try:
            if path.stat().st_size > _MAX_BYTES:
                raise ArchiveError(f"{path}: more than {_MAX_BYTES:,} bytes; not a manifest")
            content = path.read_bytes()
        except OSError as err:
            raise ArchiveError(f"{path}: {err.strerror or err}; give the folder of a run") from err
        return cls.of_text(content, str(path))

    @classmethod
    def of_text(cls, text: str | bytes, place: str) -> Manifest:
        """Return the manifest of the content of a file.

        Args:
            text: The content; bytes are UTF-8.
            place: Where it is from, for errors.

        Raises:
            ArchiveError: The text is not a manifest.
            VersionMismatchError: A newer release wrote it.
        """
        try:
            values = json.loads(text if isinstance(text, str) else text.decode())
        # json recurses: a damaged file of many brackets ends with RecursionError.
        except (ValueError, RecursionError) as err:
            raise ArchiveError(f"{place}: not a manifest of hallujudge: {fault_of(err)}") from err
        return cls._of(values, place)

    @classmethod
    def _of(cls, values: Any, path: str) -> Manifest:
        number = values.get("format") if isinstance(values, dict) else None
        if not isinstance(number, int):
            raise ArchiveError(f"{path}: not a manifest of hallujudge: it has no format number")
        if number > FORMAT:
            raise VersionMismatchError(
                f"{path} was written by hallujudge {values.get('release', 'of a newer release')} "
                f"in format {number}; this release reads formats up to {FORMAT}. Update hallujudge"
            )
        try:
            made = stored_value(values, cls)
            stored_value(made.inputs, dict[str, _InputFile])
            stored_value(made.settings, _Settings)
            if made.run:
                stored_value(made.run, _Repetition)
            if made.items < 0:
                raise ValueError(f"$.items is {made.items}")
        except ValueError as err:
            raise ArchiveError(f"{path}: not a manifest of hallujudge: {err}; score again") from err
        return made

    def refuse_other(self, now: Manifest, folder: Path) -> None:
        """Refuse to go on with another input or setting.

        Args:
            now: What would be scored now.
            folder: The run's folder.

        Raises:
            InvalidInputError: Something differs; the message says what.
        """
        shown = self.differences(now)
        if not shown:
            return
        raise InvalidInputError(
            f"{folder} holds a run of other inputs or settings ({shown}). Give another folder, "
            "ScoreRun(overwrite=True) to replace the run, or what it was started with and "
            "ScoreRun(resume=True) to go on with it",
            reason="RUN_DIFFERS",
            metadata={"folder": str(folder)},
        )

    def differences(self, now: Manifest) -> str:
        """Return how the inputs and settings of another run differ; empty if they do not."""
        differences = _differences(self._compared(), now._compared())
        shown = "; ".join(differences[:_SHOWN_DIFFERENCES])
        more = len(differences) - _SHOWN_DIFFERENCES
        return f"{shown}; and {more} more" if more > 0 else shown

    def other_settings(self, other: Manifest) -> list[str]:
        """Return the settings in which another run differs, ignoring its items."""
        return _differences(self._scoring(), other._scoring())

    def _scoring(self) -> dict[str, object]:
        return {
            "metric": self.metric,
            "variant": self.variant,
            "release": self.release,
            **self.settings,
            "signature": self.signature,
        }

    def _compared(self) -> dict[str, object]:
        """Return what decides whether two runs are the same. Paths don't: a file may be moved."""
        inputs = {
            f"{name}.{key}": value
            for name, values in self.inputs.items()
            for key, value in values.items()
            if key != "path"
        }
        return {**self._scoring(), **inputs, "items": self.items}


def _differences(before: Mapping[str, object], after: Mapping[str, object]) -> list[str]:
    names = [*before, *(name for name in after if name not in before)]
    differ = [name for name in names if _differs(name, before, after)]
    if "metric" in differ:
        # Every other setting differs with the metric.
        differ = ["metric"]
    if len(differ) > 1 and "signature" in differ:
        # The signature is made of the settings, which are easier to read.
        differ.remove("signature")
    return [_in_words(name, before, after) for name in differ]


def _in_words(name: str, before: Mapping[str, object], after: Mapping[str, object]) -> str:
    one, other = (_text(values.get(name, _ABSENT)) for values in (before, after))
    return f"{name}: {' → '.join(shown_apart(one, other, _SHOWN_CHARS))}"


def _differs(name: str, before: Mapping[str, object], after: Mapping[str, object]) -> bool:
    one, other = before.get(name, _ABSENT), after.get(name, _ABSENT)
    if name in _JUDGED and isinstance(one, str) and isinstance(other, str):
        return not same_but_versions(one, other)
    return one != other


def _text(value: object) -> str:
    """Return a setting for a message; a hash for what was in a file, such as a judge's card."""
    text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
    if isinstance(value, str) and len(text) > _SHOWN_CHARS and text[0] in "{[":
        text = sha256(text.encode()).hexdigest()
    return text[:_SHOWN_DIGITS] if _SHA256.fullmatch(text) else text


def partial(folder: Path, name: str) -> Path:
    """Return where a file is written until the run is complete."""
    stem, _, suffix = name.partition(".")
    return folder / f"{stem}.partial.{suffix}"


def staged(folder: Path, name: str) -> Path:
    """Return where a complete file waits to be swapped in."""
    return folder / f".{name}.part"
