"""How likely a judge would choose by itself, in reports."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

LEAST_SHARE = 0.5
"""The choice share below which a judge would write something else more often than a choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceShare:
    """How likely a judge would write one of the choices if nothing kept it from other words."""

    mean: float
    """Mean over claims."""
    n: int
    """Claims for which it was measured."""


def choice_share_notes(shares: Iterable[tuple[str, ChoiceShare | None]]) -> tuple[str, ...]:
    """Return a warning for each judge that would rather write something else than a choice.

    Args:
        shares: Judges with their shares; None where it was not measured.
    """
    return tuple(
        f"If nothing kept {judge} from other words, it would write one of the choices with a "
        f"probability of {known.mean:.3g} only (choice_share, {known.n:,} claims). Its margins and "
        "probabilities are among the choices and do not show this; check its verdicts by labels, "
        "or choose another judge."
        for judge, known in shares
        if known is not None and known.mean < LEAST_SHARE
    )
