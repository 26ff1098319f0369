"""What judges are asked, and what they give back."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol, runtime_checkable

from hallujudge.metrics.framework.claims import ClaimVerdict, Verdict
from hallujudge.metrics.framework.result import JsonValue
from hallujudge.metrics.framework.triplets import ClaimParts, Triplet

from ..llm.usage import Usage

__all__ = [
    "Asked",
    "Declined",
    "Judge",
    "JudgeIdentity",
    "JudgeRequestItem",
    "JudgedItem",
    "Recalled",
    "RecallingJudge",
    "unscored_claim",
]


class Declined(NamedTuple):
    """A judge that gave no verdict on a claim, and why."""

    judge: str
    """Its name."""
    reason: str
    """Why, such as ``JUDGE_TIMEOUT``."""
    detail: str = ""
    """The reason in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeRequestItem:
    """A response's claims and what its image shows."""

    id: str
    """The item's id, for messages only; no judge is told."""
    claims: tuple[ClaimParts, ...]
    """What is to be judged."""
    reference_triplets: tuple[Triplet, ...]
    """The image's scene graph."""
    reference_objects: tuple[str, ...] = ()
    """Objects of the image beside those that the triplets name."""
    fallback_history: tuple[tuple[Declined, ...], ...] = ()
    """Why earlier judges gave no verdict, one entry for each claim; empty: none was asked."""

    def picked(
        self, indices: Sequence[int], history: Sequence[tuple[Declined, ...]]
    ) -> JudgeRequestItem:
        """The same item with some of its claims only."""
        return JudgeRequestItem(
            id=self.id,
            claims=tuple(self.claims[index] for index in indices),
            reference_triplets=self.reference_triplets,
            reference_objects=self.reference_objects,
            fallback_history=tuple(history),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """A judge's part in an item."""

    judge: str
    """Its name."""
    answered: int = 0
    """Claims that it gave a verdict on."""
    declined: tuple[Declined, ...] = ()
    """Claims that it gave none on: why, one entry for each claim."""
    usage: Usage = field(default_factory=Usage)
    """What its answers took."""

    def to_json(self) -> dict[str, JsonValue]:
        """The entry of ``evidence.judging``."""
        details = {reason: detail for _, reason, detail in reversed(self.declined)}
        counts = Counter(reason for _, reason, _ in self.declined)
        reasons: dict[str, JsonValue] = {
            reason: {"claims": count, "detail": details[reason]}
            for reason, count in sorted(counts.items())
        }
        return {
            "judge": self.judge,
            "answered": self.answered,
            "declined": reasons,
            **self.usage.to_json(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedItem:
    """Verdicts on an item's claims, and who had a part in them."""

    verdicts: tuple[ClaimVerdict, ...]
    """One for each claim, in order; unscored where no judge could answer."""
    asked: tuple[Asked, ...] = ()
    """The judges that were asked, in order."""

    def judging(self) -> tuple[dict[str, JsonValue], ...]:
        """What the item's evidence keeps of the judges."""
        return tuple(asked.to_json() for asked in self.asked)


@dataclass(frozen=True, slots=True, kw_only=True)
class Recalled:
    """What a judge remembers of an item."""

    verdicts: tuple[ClaimVerdict | None, ...]
    """One for each claim; None where it remembers nothing."""
    fallback_history: tuple[tuple[Declined, ...], ...]
    """Why earlier judges gave no verdict when this one did, one entry for each claim."""
    usage: Usage
    """What the answers took at the time."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgeIdentity:
    """What verdicts depend on beside the inputs: two equal identities judge alike."""

    kind: str
    """``llm``, ``matcher`` or another family."""
    model: str
    """The model's id or folder name."""
    revision: str = ""
    """The weights' revision or digest; empty: not known."""
    server: str = ""
    """What serves it and in which version, such as ``vllm 0.32.0``; empty: not known."""
    template: str = ""
    """Name, version and hash of the prompt template."""
    parameters: tuple[tuple[str, str], ...] = ()
    """Every parameter that is sent or applied, by name."""

    def __str__(self) -> str:
        revision = f"@{self.revision}" if self.revision else ""
        server = f" ({self.server})" if self.server else ""
        return f"{self.model}{revision}{server}"

    def signature_fields(self) -> tuple[tuple[str, str], ...]:
        """What a metric's signature shows of the judge."""
        parameters = ",".join(f"{name}={value}" for name, value in self.parameters)
        fields = (("judge", str(self)), ("prompt", self.template), ("params", parameters))
        return tuple((name, value) for name, value in fields if value)


@runtime_checkable
class Judge(Protocol):
    """Whoever gives verdicts."""

    @property
    def name(self) -> str:
        """Its name in evidence and settings, such as ``llm`` or ``fallback``."""
        ...

    @property
    def identity(self) -> JudgeIdentity:
        """What its verdicts depend on, as far as known; the first question may fill it in."""
        ...

    async def judge(
        self, items: Sequence[JudgeRequestItem], *, has_fallback: bool = False
    ) -> list[JudgedItem]:
        """Return verdicts on every claim of every item, in order.

        A claim without verdict is unscored with a reason. Only what makes every further call
        pointless, such as a rejected key, is raised.

        Args:
            items: Claims and references.
            has_fallback: Whether another judge is asked about claims without verdict.
        """
        ...


@runtime_checkable
class RecallingJudge(Judge, Protocol):
    """A judge that remembers verdicts."""

    async def recall(self, items: Sequence[JudgeRequestItem]) -> list[Recalled]:
        """What it knows without asking anybody."""
        ...


def unscored_claim(claim: ClaimParts, reason: str, detail: str, judge: str = "") -> ClaimVerdict:
    """A claim without verdict, and why."""
    return ClaimVerdict(
        triplet=claim, verdict=Verdict.UNSCORED, judge=judge, reason=reason, detail=detail
    )
