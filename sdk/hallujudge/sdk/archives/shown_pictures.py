"""The error of pictures that a judge can't be shown."""

from __future__ import annotations

from collections.abc import Mapping

from ..errors import ArchiveError
from .joins import refuse


def unshown(problems: Mapping[str, str]) -> ArchiveError:
    """Return an error that names what has no picture, and says why the first one has none.

    Args:
        problems: Id -> why its picture can't be shown.
    """
    return refuse(
        "pictures that can't be shown",
        list(problems),
        f"The first one: {next(iter(problems.values()))}. Give the folder of all pictures, or pass "
        "InputOptions(allow_unknown=True) to leave such responses unscored",
    )
