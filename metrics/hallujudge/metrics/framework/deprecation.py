"""Announcements of what a later release removes."""

from __future__ import annotations

import warnings

# Python hides DeprecationWarning outside of __main__; users of a library must see theirs.


class HallujudgeDeprecationWarning(FutureWarning):
    """Something is used that a later release of Hallujudge removes."""


def warn_deprecated(what: str, *, removed_in: str, instead: str) -> None:
    """Announce that something which the caller's caller used will be removed.

    A test fails once the project reaches ``removed_in``, so that the removal is not forgotten.

    Args:
        what: What is deprecated, such as ``the option --reader``.
        removed_in: The release that removes it, such as ``2.0``.
        instead: What to use instead.
    """
    warnings.warn(
        f"{what} is deprecated, and hallujudge {removed_in} removes it; use {instead}",
        HallujudgeDeprecationWarning,
        stacklevel=3,
    )
