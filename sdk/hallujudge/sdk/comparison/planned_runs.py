"""The runs that an overview may have: an archive with its metric, or why it is left out."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from ..archives.inputs import References

# Names of models come from logs and become folders: slashes and other marks are replaced.
_UNSAFE = re.compile(r"[^\w.+-]+")
# File systems allow 255 bytes for a name, and a character may take several of them.
_MAX_NAME_CHARS = 100


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """An archive that was not scored."""

    archive: str
    """The archive."""
    reason: str
    """Why it was not scored, and what to do."""
    command: str = ""
    """Command that scores it alone, if there is one."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedRun:
    """A run: one metric over one archive."""

    model: str
    """Name of the model."""
    metric: str
    """The metric."""
    name: str
    """Name of the run among the model's: the metric, and the task or file if there are several."""
    archive: Path
    """The file, or a folder that the metric's own reader reads; of a URL, the copy."""
    source: str
    """The same for messages: a path or a URL."""
    layout: str
    """Name of the archive's layout; empty for plain records."""
    command: str
    """Command that scores it alone."""
    variant: str = ""
    """The metric's variant; empty for the default."""
    allow_missing: bool = False
    """Whether questions without an answer are unscored instead of an error."""
    references: References | None = None
    """References of the metric; None where the archive has its own."""
    own: Mapping[str, object] = field(default_factory=dict)
    """Options of the metric's archives by name."""
    copies: Mapping[str, str] = field(default_factory=dict)
    """Files of a URL -> their names for messages."""
    task: str = ""
    """The tool's task; empty if it does not say."""
    file_task: str = ""
    """What the file's name says of the task, without its time and model."""
    records: int = 0
    """How many records the archive has; 0 if they were not counted."""
    first_id: str = ""
    """The first id; empty if it is not known."""

    @property
    def folder(self) -> Path:
        """Folder of the run below the output folder."""
        return Path(_safe(self.model), _safe(self.name))


def _safe(name: str) -> str:
    """Return a name of a folder: letters, digits, dots and dashes."""
    return _UNSAFE.sub("_", name).strip("._")[:_MAX_NAME_CHARS] or "model"
