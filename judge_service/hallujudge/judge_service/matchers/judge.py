"""A matcher as one of the judges that a router asks."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import islice

from hallujudge.metrics.framework.claims import Verdict

from ..judges.values import Asked, Declined, JudgedItem, JudgeIdentity, JudgeRequestItem
from .values import ClaimMatcher, ClaimQuery

__all__ = ["MatcherJudge"]


class MatcherJudge:
    """Gives all claims of all items to the matcher at once, so that they are embedded together.

    Args:
        matcher: The matcher.
        name: Its name in evidence and settings.
    """

    def __init__(self, matcher: ClaimMatcher, name: str = "matcher") -> None:
        self.name = name
        self._matcher = matcher

    @property
    def identity(self) -> JudgeIdentity:
        """Model, weights, what runs it, and the thresholds."""
        told = {
            key.removeprefix("matcher_"): value for key, value in self._matcher.settings.items()
        }
        model = told.pop("nli_model", "") or told.pop("model")
        name, _, rest = model.partition("@")
        revision, _, server = rest.partition("/")
        return JudgeIdentity(
            kind="matcher",
            model=name,
            revision=revision,
            server=server,
            parameters=tuple(told.items()),
        )

    async def judge(self, items: Sequence[JudgeRequestItem]) -> list[JudgedItem]:
        """Verdicts on every claim of every item, in order."""
        verdicts = iter(
            await self._matcher.judge(
                [
                    ClaimQuery(
                        claim=claim,
                        references=item.reference_triplets,
                        objects=item.reference_objects,
                    )
                    for item in items
                    for claim in item.claims
                ]
            )
        )
        judged = []
        for item in items:
            found = tuple(islice(verdicts, len(item.claims)))
            declined = tuple(
                Declined(self.name, verdict.reason, verdict.detail)
                for verdict in found
                if verdict.verdict is Verdict.UNSCORED
            )
            asked = Asked(judge=self.name, answered=len(found) - len(declined), declined=declined)
            judged.append(JudgedItem(verdicts=found, asked=(asked,)))
        return judged
