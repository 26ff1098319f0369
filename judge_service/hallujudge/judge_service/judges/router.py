"""The router: judges in order, each asked about the claims that those before left open."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from hallujudge.metrics.framework.claims import ClaimVerdict, Verdict

from ..errors import InvalidInputError
from ..llm.usage import Usage
from ..observe.recorder import recorder
from .values import (
    Asked,
    Declined,
    Judge,
    JudgedItem,
    JudgeIdentity,
    JudgeRequestItem,
    RecallingJudge,
    joined_identity,
    unscored_claim,
)

__all__ = ["Router"]


@dataclass(slots=True)
class _Progress:
    """What is known of an item so far."""

    item: JudgeRequestItem
    verdicts: list[ClaimVerdict | None]
    fallback_history: list[tuple[Declined, ...]]
    usage: dict[str, Usage] = field(default_factory=dict)

    @property
    def pending(self) -> list[int]:
        """Claims without verdict."""
        return [index for index, verdict in enumerate(self.verdicts) if verdict is None]

    def rest(self) -> JudgeRequestItem:
        """Return the item with the claims that have no verdict yet."""
        pending = self.pending
        return self.item.picked(pending, [self.fallback_history[index] for index in pending])

    def add_usage(self, judge: str, usage: Usage) -> None:
        """Add what a judge's replies took."""
        self.usage[judge] = self.usage.get(judge, Usage()) + usage


class Router:
    """Judges in order, the preferred one first.

    A claim goes to the next judge if one gives no verdict on it: because it cannot be reached,
    refuses, replies outside the choices, or has no budget left. Every verdict names its judge, and
    every item keeps why the earlier judges gave none.

    Before any judge is called, the verdicts that the judges know are looked up in the same order.
    So a verdict of the fallback is found again instead of asking the first judge anew: a second
    run costs nothing and writes the same bytes.

    Args:
        judges: The judges; their names differ.
    """

    def __init__(self, judges: Sequence[Judge]) -> None:
        names = [judge.name for judge in judges]
        if not names or len(set(names)) < len(names):
            raise InvalidInputError(
                f"a router needs judges of different names; got {', '.join(names) or 'none'}"
            )
        self.judges = tuple(judges)

    @property
    def name(self) -> str:
        """The judges' names in order, such as ``llm>fallback``."""
        return ">".join(judge.name for judge in self.judges)

    @property
    def identity(self) -> JudgeIdentity:
        """The judges' identities, joined in order."""
        return joined_identity([(judge.name, judge.identity) for judge in self.judges])

    async def judge(self, items: Sequence[JudgeRequestItem]) -> list[JudgedItem]:
        """Return verdicts on every claim of every item, in order."""
        progress = [
            _Progress(item, [None] * len(item.claims), [()] * len(item.claims)) for item in items
        ]
        for judge in self.judges:
            if isinstance(judge, RecallingJudge):
                await self._recall(judge, progress)
        for judge in self.judges:
            await self._ask(judge, progress)
        return [self._judged(one) for one in progress]

    async def close(self) -> None:
        """Close the judges."""
        for judge in self.judges:
            if close := getattr(judge, "close", None):
                await close()

    async def _recall(self, judge: RecallingJudge, progress: Sequence[_Progress]) -> None:
        left = [one for one in progress if one.pending]
        for one, recalled in zip(left, await judge.recall([o.rest() for o in left]), strict=True):
            known = zip(one.pending, recalled.verdicts, recalled.fallback_history, strict=True)
            found = [(index, verdict, history) for index, verdict, history in known if verdict]
            for index, verdict, history in found:
                one.verdicts[index], one.fallback_history[index] = (
                    verdict,
                    self._before(judge, history),
                )
            if found:
                one.add_usage(judge.name, recalled.usage)

    async def _ask(self, judge: Judge, progress: Sequence[_Progress]) -> None:
        left = [one for one in progress if one.pending]
        if not left:
            return
        asked = [one.rest() for one in left]
        has_fallback = judge is not self.judges[-1]
        answers = await judge.judge(asked, has_fallback=has_fallback)
        for one, judged in zip(left, answers, strict=True):
            for index, verdict in zip(one.pending, judged.verdicts, strict=True):
                if verdict.verdict is Verdict.UNSCORED:
                    declined = Declined(judge.name, verdict.reason, verdict.detail)
                    one.fallback_history[index] = (*one.fallback_history[index], declined)
                    if has_fallback:
                        recorder().fell_back(judge.name, verdict.reason)
                else:
                    one.verdicts[index] = replace(verdict, judge=judge.name)
            for part in judged.asked:
                one.add_usage(judge.name, part.usage)

    def _before(self, judge: Judge, history: Sequence[Declined]) -> tuple[Declined, ...]:
        """The part of a kept history that concerns judges before this one."""
        names = [other.name for other in self.judges]
        return tuple(d for d in history if d.judge in names[: names.index(judge.name)])

    def _judged(self, one: _Progress) -> JudgedItem:
        verdicts = tuple(
            verdict or _unanswered(claim, history)
            for claim, verdict, history in zip(
                one.item.claims, one.verdicts, one.fallback_history, strict=True
            )
        )
        return JudgedItem(verdicts=verdicts, asked=tuple(self._asked(one)))

    def _asked(self, one: _Progress) -> Iterator[Asked]:
        for judge in self.judges:
            answered = sum(v is not None and v.judge == judge.name for v in one.verdicts)
            declined = tuple(
                d for history in one.fallback_history for d in history if d.judge == judge.name
            )
            if answered or declined:
                usage = one.usage.get(judge.name, Usage())
                yield Asked(judge=judge.name, answered=answered, declined=declined, usage=usage)


def _unanswered(claim: object, history: Sequence[Declined]) -> ClaimVerdict:
    """A claim without a verdict of any judge: the last judge's reason, and all details."""
    detail = "; ".join(f"{d.judge}: {d.reason}: {d.detail}" for d in history)
    return unscored_claim(claim, history[-1].reason, detail)  # type: ignore[arg-type]  # its parts
