"""A vision language model as judge: it is shown pictures in place of scene graphs."""

from __future__ import annotations

from collections.abc import Iterator

from hallujudge.metrics.framework.claims import ClaimParts, ClaimVerdict
from hallujudge.metrics.framework.pictures import NOT_VISIBLE
from hallujudge.metrics.framework.results import UnscoredReason

from ..errors import InvalidInputError
from . import JudgeRequestItem, unscored_claim
from .llm_judge import LlmJudge
from .questions import Question, seen_questions
from .replies import ReadAnswer, ReadReply

ALL_CLAIMS = 100
"""Claims in one call where it holds all of a response; of more, in as few calls as hold them."""


class SeeingJudge(LlmJudge):
    """Asks a vision model about claims, one or several per call, and shows it the pictures.

    A claim that it can't check in the picture is unscored; a fallback may be asked about it.
    """

    @classmethod
    def of(cls, judge: LlmJudge, *, claims_per_call: int = 1) -> SeeingJudge:
        """Return the same model behind the same client, which is shown pictures.

        Args:
            judge: The model.
            claims_per_call: Maximum claims in one call.

        Raises:
            InvalidInputError: Its server is asked for probabilities without text, which no
                protocol has for pictures.
        """
        if (api := judge.client.settings.api) != "chat":
            raise InvalidInputError(
                f"{judge.name}_api is {api!r}, which shows no pictures; set it to chat"
            )
        return judge.again(cls, claims_per_call=claims_per_call)

    @property
    def template_names(self) -> tuple[tuple[str, ...], str]:
        """The prompts of calls about one claim, and that of calls about several."""
        return ("judge_seen_claim",), "judge_seen_claims"

    @property
    def measures_shares(self) -> bool:
        """Never: it would take another call with the picture."""
        return False

    def questions(self, item: JudgeRequestItem) -> list[Question]:
        """Return the calls that an item needs."""
        return seen_questions(item, claims_per_call=self.claims_per_call)

    def measured_alone(
        self,
        item: JudgeRequestItem,  # noqa: ARG002 - no claim is measured
        question: Question,  # noqa: ARG002
        reply: ReadReply | None = None,  # noqa: ARG002
    ) -> Iterator[Question]:
        """Yield nothing: no claim's share of the choices is measured."""
        return iter(())

    def verdict_of(self, claim: ClaimParts, answer: ReadAnswer) -> ClaimVerdict:
        """Return the verdict of a reply; the probability of support is among visible claims."""
        if answer.choice == NOT_VISIBLE:
            reason = UnscoredReason.CLAIM_NOT_VISIBLE.value
            return unscored_claim(claim, reason, f"the judge answers {NOT_VISIBLE}", self.name)
        return super().verdict_of(claim, _among_visible(answer))


def _among_visible(answer: ReadAnswer) -> ReadAnswer:
    if not answer.probabilities:
        return answer
    supported, wrong, _ = answer.probabilities
    visible = supported + wrong
    shares = (supported / visible, wrong / visible) if visible else None
    return answer._replace(probabilities=shares)
