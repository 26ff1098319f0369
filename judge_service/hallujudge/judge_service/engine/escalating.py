"""Options of metrics whose judge may leave verdicts with small margins to the next judge."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework.metric import OptionDefinition

if TYPE_CHECKING:
    from ..judges.escalation import Escalation
    from .spec import ScoreSpec

__all__ = ["ESCALATION_OPTIONS", "escalation_of"]

ESCALATION_OPTIONS = (
    OptionDefinition(
        name="escalate_below",
        default="",
        meaning="Margin below which the next judge is asked.",
        details="Without a next judge, such a verdict is unscored.",
        purpose="judge",
        number=True,
    ),
    OptionDefinition(
        name="cascade",
        default="",
        meaning="cascade.json with such a margin, learnt from labels.",
        purpose="judge",
        file=True,
    ),
    OptionDefinition(
        name="abstain",
        default="no",
        choices=("no", "yes"),
        meaning="Whether small margins are left unscored.",
        details="yes asks no other judge about them.",
        purpose="judge",
    ),
)
"""How the first judge's margins are used."""


def escalation_of(spec: ScoreSpec) -> Escalation | None:
    """Return which verdicts of the first judge are not kept; None: all are.

    Raises:
        InvalidInputError: An option can't be used.
    """
    from ..judges.escalation import Escalation

    options = {option.name: spec.options.get(option.name, "") for option in ESCALATION_OPTIONS}
    return Escalation.of(
        below=options["escalate_below"], cascade=options["cascade"], abstain=options["abstain"]
    )
