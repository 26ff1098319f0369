"""The judges that are asked under a name, in order."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import InvalidInputError
from ..judges.served import SERVED_JUDGES
from ..matchers.presets import SMALL_JUDGES
from .small_judges import ALL_SMALL_JUDGES

if TYPE_CHECKING:
    from ..settings.judges import JudgeSettings

__all__ = ["JUDGE_NAMES", "LOCAL_JUDGES", "judges_of"]

LOCAL_JUDGES = ("matcher", *SMALL_JUDGES)
"""The names of judges that run in this process."""
JUDGE_NAMES = ("matcher", "llm", "router", *ALL_SMALL_JUDGES)
"""The names of judges; the router calls the judges of ``judge_order``."""


def judges_of(settings: JudgeSettings, name: str) -> list[str]:
    """Return the judges that are asked under a name, in order.

    Args:
        settings: Have the router's order, and whether there is a fallback.
        name: One of :data:`JUDGE_NAMES`.

    Raises:
        InvalidInputError: The name or the setting ``judge_order`` cannot be used.
    """
    if name not in JUDGE_NAMES:
        raise InvalidInputError(
            f"judge {name!r} does not exist; choose one of {', '.join(JUDGE_NAMES)}"
        )
    if name != "router":
        return [name]
    order = [part.strip() for part in settings.judge_order.split(",") if part.strip()]
    known = (*LOCAL_JUDGES, *SERVED_JUDGES, "llm", "fallback")
    if unknown := [part for part in order if part not in known]:
        raise InvalidInputError(
            f"judge_order names {', '.join(unknown)}; choose from {', '.join(known)}"
        )
    # The fallback is optional, and skipped unless it is configured.
    chosen = [part for part in order if part != "fallback" or settings.fallback_model]
    if not chosen:
        raise InvalidInputError(
            f"judge_order is {settings.judge_order!r}, but none of these judges is "
            f"configured; name some of {', '.join(known)}; the fallback needs fallback_model"
        )
    return chosen
