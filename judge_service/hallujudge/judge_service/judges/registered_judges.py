"""Judges of other packages, which register them by entry points."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

from ..entry_points import loaded, registered
from ..errors import HallujudgeError, InvalidInputError
from . import Judge, JudgedItem, JudgeIdentity, JudgeRequestItem

_ENTRY_POINTS = "hallujudge.judges"


@cache
def registered_judges() -> tuple[str, ...]:
    """Return the names of the judges that other packages register, each once."""
    return tuple(sorted(registered(_ENTRY_POINTS).names))


def registered_judge(name: str) -> GuardedJudge:
    """Return a judge of another package.

    The entry point names a function without parameters, such as a class, that returns the judge.

    Raises:
        InvalidInputError: It can't be loaded, is no judge, or has another name; or two packages
            register the name.
    """
    entry, *others = registered(_ENTRY_POINTS).select(name=name)
    if others:
        packages = sorted(each.dist.name if each.dist else "" for each in (entry, *others))
        raise InvalidInputError(
            f"the judge {name} is registered by {' and '.join(packages)}; uninstall all but one of "
            "them"
        )
    make = loaded(entry, "judge")
    judge = make() if callable(make) else make
    # Evidence and notes name judges, so that another name would be taken for another judge.
    if not isinstance(judge, Judge) or judge.name != name:
        raise InvalidInputError(
            f"the judge {name} ({entry.value}) is {type(judge).__name__}, not a Judge with this "
            "name; correct the entry point, or the judge's name"
        )
    return GuardedJudge(judge)


class GuardedJudge:
    """Names a judge of another package where it fails, and checks that every claim has a verdict.

    Args:
        judge: The judge.
    """

    def __init__(self, judge: Judge) -> None:
        self.name = judge.name
        self._judge = judge

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
        try:
            judged = await self._judge.judge(items, has_fallback=has_fallback)
            whole = [len(one.verdicts) for one in judged] == [len(item.claims) for item in items]
        except HallujudgeError:
            raise
        except Exception as err:
            problem = f"{type(err).__name__}: {err}".rstrip(": ")
            raise InvalidInputError(
                f"the judge {self.name} failed ({problem:.200}); correct it, or uninstall the "
                "package that registers it"
            ) from err
        if not whole:
            raise InvalidInputError(
                f"the judge {self.name} did not return one verdict for each claim; correct it, or "
                "uninstall the package that registers it"
            )
        return judged

    async def close(self) -> None:
        """Close the judge, if it can be closed."""
        if close := getattr(self._judge, "close", None):
            await close()
