"""Judges that state a probability of support, which ``soft`` scores need."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..errors import InvalidInputError
from .judge_order import judges_of
from .small_judges import ALL_SMALL_JUDGES

if TYPE_CHECKING:
    from .judge_factory import JudgeFactory

__all__ = ["check_probabilities"]


def check_probabilities(
    factory: JudgeFactory, name: str, others: str = "a small judge, or "
) -> None:
    """Refuse a judge that states no probabilities; no model is loaded for it.

    Args:
        factory: Knows the judges.
        name: The judge's name; of ``router``, one judge that states some is enough.
        others: Judges of the family that are no language models and state some, for the message.

    Raises:
        InvalidInputError: It states none, is unknown or is not configured.
    """
    if not any(_states_probabilities(factory, part) for part in judges_of(factory.settings, name)):
        raise InvalidInputError(
            f"the option soft needs probabilities, and the judge {name!r} gives none; use "
            f"{others}a language model whose server reports log-probabilities"
        )


def _states_probabilities(factory: JudgeFactory, part: str) -> bool:
    if part in ("llm", "fallback"):
        return factory.llm(part).reports_probabilities
    return part in ALL_SMALL_JUDGES
