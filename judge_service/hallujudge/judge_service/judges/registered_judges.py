"""Judges of other packages, which register them by entry points."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from hallujudge.metrics.framework.claims import Sentence, Triplet

from ..entry_points import guarded, loaded, names_beside, registered_once
from ..errors import InvalidInputError
from . import Judge, JudgedItem, JudgeIdentity, JudgeRequestItem

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

_ENTRY_POINTS = "hallujudge.judges"


def registered_judges(ours: frozenset[str]) -> tuple[str, ...]:
    """Return the names of the judges that other packages register, each once, without ours."""
    return names_beside(_ENTRY_POINTS, ours, "judge")


def registered_judge(name: str) -> GuardedJudge:
    """Return a judge of another package.

    The entry point names a function without parameters, such as a class, that returns the judge.

    Raises:
        InvalidInputError: It can't be loaded, is not a judge, or has another name; or two packages
            register the name.
    """
    entry = registered_once(_ENTRY_POINTS, name, "judge")
    make = loaded(entry, "judge")
    with guarded(entry, "judge"):
        judge: Any = make() if callable(make) else make
        # Evidence and notes name judges, so that another name would be taken for another judge.
        valid = isinstance(judge, Judge) and judge.name == name
        valid = valid and isinstance(judge.identity, JudgeIdentity)
    if not valid:
        raise InvalidInputError(
            f"the judge {name} ({entry.value}) is {type(judge).__name__}, not a Judge with this "
            "name and an identity; correct the entry point, or the judge"
        )
    return GuardedJudge(judge, entry)


def _claims_of(judged: JudgedItem) -> list[object]:
    """Return the claims of verdicts; a tuple that is not a claim is none of an item's."""
    kinds = (Triplet, Sentence)
    return [v.triplet if isinstance(v.triplet, kinds) else None for v in judged.verdicts]


class GuardedJudge:
    """Names a judge of another package where it fails, and checks that every claim has a verdict.

    Args:
        judge: The judge.
        entry: The entry point that registers it.
    """

    def __init__(self, judge: Judge, entry: EntryPoint) -> None:
        self.name = judge.name
        self._judge = judge
        self._entry = entry

    @property
    def identity(self) -> JudgeIdentity:
        """What its verdicts depend on."""
        return self._judge.identity

    async def judge(
        self, items: Sequence[JudgeRequestItem], *, has_fallback: bool = False
    ) -> list[JudgedItem]:
        """Return verdicts on every claim of every item, in order.

        Raises:
            InvalidInputError: The judge fails, or leaves out claims.
        """
        with guarded(self._entry, "judge"):
            judged = await self._judge.judge(items, has_fallback=has_fallback)
            # A missing or swapped claim would give a verdict to another one.
            whole = [_claims_of(one) for one in judged] == [list(item.claims) for item in items]
            named = {each.judge for one in judged for each in one.verdicts} <= {self.name, ""}
        if named and whole:
            return judged
        fault = "returned verdicts of another name"
        if named:
            fault = "did not return one verdict for each claim"
        raise InvalidInputError(
            f"the judge {self.name} {fault}; correct it, or uninstall the package that registers it"
        )

    async def close(self) -> None:
        """Close the judge, if it can be closed."""
        # The interface has no `close`, which most judges don't need.
        if close := getattr(self._judge, "close", None):
            await close()
