"""A matcher as a judge, so that a router can have it in its list."""

from __future__ import annotations

from collections.abc import Sequence

from hallujudge.metrics.framework.claims import Verdict

from ..llm.usage import Usage
from ..matchers import ClaimMatcher, ClaimQuery
from .values import Asked, Declined, JudgedItem, JudgeIdentity, JudgeRequestItem

__all__ = ["MatcherJudge"]


class MatcherJudge:
    """Hands all claims of all items to a matcher in one piece, so that it can batch them.

    Args:
        matcher: The matcher.
        name: Its name in evidence.
    """

    def __init__(self, matcher: ClaimMatcher, name: str = "matcher") -> None:
        self.name = name
        self.matcher = matcher

    @property
    def identity(self) -> JudgeIdentity:
        """The matcher's label and settings."""
        return JudgeIdentity(
            kind="matcher",
            model=self.matcher.label,
            parameters=tuple(sorted(self.matcher.settings.items())),
        )

    async def judge(
        self,
        items: Sequence[JudgeRequestItem],
        *,
        has_fallback: bool = False,  # noqa: ARG002  # a matcher does not fail for a while
    ) -> list[JudgedItem]:
        """Return verdicts on every claim of every item, in order."""
        queries = [
            ClaimQuery(
                claim=claim, references=item.reference_triplets, objects=item.reference_objects
            )
            for item in items
            for claim in item.claims
        ]
        verdicts = iter(await self.matcher.judge(queries) if queries else [])
        judged = []
        for item in items:
            mine = tuple(next(verdicts) for _ in item.claims)
            declined = tuple(
                Declined(self.name, one.reason, one.detail)
                for one in mine
                if one.verdict is Verdict.UNSCORED
            )
            asked = Asked(
                judge=self.name,
                answered=len(mine) - len(declined),
                declined=declined,
                usage=Usage(),
            )
            judged.append(JudgedItem(verdicts=mine, asked=(asked,)))
        return judged
