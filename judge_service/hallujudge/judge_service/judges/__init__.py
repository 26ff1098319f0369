"""Judges: claims in, verdicts out.

This module has the interface of judges: what they receive and return, and how other packages
register theirs. Importing a judge imports no client library and opens no connection.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, runtime_checkable

from msgspec import Struct, structs
from msgspec.structs import replace

from hallujudge.metrics.framework.claims import ClaimParts, ClaimVerdict, Sentence, Triplet, Verdict
from hallujudge.metrics.framework.results import JsonValue, Picture
from hallujudge.metrics.framework.tally import cluster_key

from ..entry_points import guarded, loaded, names_beside, registered_once
from ..errors import InvalidInputError
from ..llm.budget import Usage
from ..tenancy import tenancy, within

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

    from .judge_rules import ShareRule

DIGITS = 6
"""Digits of probabilities in evidence."""


def logistic(log_odds: float) -> float:
    """Return a probability; log odds beyond 700 would overflow."""
    return 1 / (1 + math.exp(-max(-700.0, min(700.0, log_odds))))


def counting_verdicts(given: dict[str, int]) -> AbstractContextManager[None]:
    """Count the verdicts of each judge as it gives them, in the block and in tasks begun there."""
    return within(structs.replace(tenancy(), verdicts=given))


def count_verdicts(judge: str, number: int) -> None:
    """Count verdicts that a judge gave, or, below zero, those of them that are not kept."""
    given = tenancy().verdicts
    if given is not None and number:
        given[judge] = given.get(judge, 0) + number


class Declined(NamedTuple):
    """A judge that returned no verdict on a claim, and why."""

    judge: str
    """Its name."""
    reason: str
    """Why, such as ``JUDGE_TIMEOUT``."""
    detail: str = ""
    """The reason in words."""


class JudgeRequestItem(Struct, frozen=True, kw_only=True):
    """A response's claims and the references of its image."""

    id: str
    """The item's id, for messages only; it is not sent to a judge."""
    payer: str = ""
    """Who pays for a reply that no other item paid for, from :func:`payer_of`."""
    claims: tuple[ClaimParts, ...]
    """The claims to judge."""
    reference_triplets: tuple[Triplet, ...] = ()
    """The image's scene graph; empty for a judge that sees."""
    reference_objects: tuple[str, ...] = ()
    """Objects of the image that no triplet names."""
    pictures: tuple[Picture, ...] = ()
    """What a judge that sees is shown: the picture, or frames of a video in order."""
    shown: tuple[tuple[Picture, ...], ...] = ()
    """What it is shown for each claim, where that differs; empty: the pictures, for all claims."""
    given: tuple[str, ...] = ()
    """The verdict that came with each claim, empty without one; none of extracted claims."""
    fallback_history: tuple[tuple[Declined, ...], ...] = ()
    """Why earlier judges gave no verdict, one entry per claim; empty for the first judge."""
    measuring: ShareRule | None = None
    """Of which claims the share of the choices is measured; None for none."""

    def picked(
        self, indices: Sequence[int], history: Sequence[tuple[Declined, ...]]
    ) -> JudgeRequestItem:
        """Return the item with some of its claims only."""
        return replace(
            self,
            claims=tuple(self.claims[index] for index in indices),
            shown=tuple(self.shown[index] for index in indices) if self.shown else (),
            fallback_history=tuple(history),
        )

    def shown_for(self, index: int) -> tuple[Picture, ...]:
        """Return what a judge that sees is shown for a claim."""
        return self.shown[index] if self.shown else self.pictures


def payer_of(item_id: str, content: object) -> str:
    """Return an item's name among all that may share a reply, the same when it is judged again.

    Args:
        item_id: The item's id, which items of other runs may have too.
        content: What is judged.
    """
    # Keys tell the users of a server apart.
    return f"{cluster_key(repr((tenancy().user.key_id, item_id, content))):016x}"


class Asked(Struct, frozen=True, kw_only=True):
    """A judge's part in an item."""

    judge: str
    """Its name."""
    answered: int = 0
    """Number of claims with a verdict of this judge."""
    declined: tuple[Declined, ...] = ()
    """Why the other claims have none, one entry for each claim."""
    usage: Usage = Usage()
    """What its replies took."""
    votes: tuple[Verdict | None, ...] = ()
    """As a member of a panel: its verdict on each claim, None without one."""
    dissents: int = 0
    """As a member of a panel: its verdicts that differ from the panel's."""
    shares: tuple[float, ...] = ()
    """How likely the choices are without a constraint, for claims for which that was measured."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the entry of ``evidence.judging``."""
        # Reversed, so that the first detail of a reason is the one that stays.
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
            **({"choice_shares": list(self.shares)} if self.shares else {}),
            **(self._votes() if self.votes else {}),
        }

    def _votes(self) -> dict[str, JsonValue]:
        votes: list[JsonValue] = [vote.value if vote else "" for vote in self.votes]
        return {"votes": votes, "dissents": self.dissents}


def judging_of(asked_each: Iterable[Asked]) -> tuple[dict[str, JsonValue], ...]:
    """Return the judges that were asked several questions about an item, each with all of them."""
    parts: dict[str, list[Asked]] = {}
    for each in asked_each:
        parts.setdefault(each.judge, []).append(each)
    return tuple(
        Asked(
            judge=judge,
            answered=sum(part.answered for part in asked),
            declined=tuple(each for part in asked for each in part.declined),
            usage=Usage.total(part.usage for part in asked),
            shares=tuple(share for part in asked for share in part.shares),
        ).to_json()
        for judge, asked in parts.items()
    )


class JudgedItem(Struct, frozen=True, kw_only=True):
    """Verdicts on an item's claims, and the judges that were called."""

    verdicts: tuple[ClaimVerdict, ...]
    """One for each claim, in order; unscored if no judge returned a verdict."""
    asked: tuple[Asked, ...] = ()
    """The judges that were called, in order."""

    @classmethod
    def by(
        cls,
        judge: str,
        verdicts: Sequence[ClaimVerdict],
        usage: Usage,
        shares: tuple[float, ...] = (),
    ) -> JudgedItem:
        """Return the verdicts of one judge, with the reasons of claims without a verdict."""
        declined = tuple(
            Declined(judge, verdict.reason, verdict.detail)
            for verdict in verdicts
            if verdict.verdict is Verdict.UNSCORED
        )
        answered = len(verdicts) - len(declined)
        asked = Asked(judge=judge, answered=answered, declined=declined, usage=usage, shares=shares)
        return cls(verdicts=tuple(verdicts), asked=(asked,))

    def judging(self) -> tuple[dict[str, JsonValue], ...]:
        """Return the entries of ``evidence.judging``."""
        return tuple(asked.to_json() for asked in self.asked)


class Recalled(Struct, frozen=True, kw_only=True):
    """Verdicts on an item from earlier calls."""

    verdicts: tuple[ClaimVerdict | None, ...]
    """One for each claim; None if unknown."""
    fallback_history: tuple[tuple[Declined, ...], ...]
    """Why earlier judges returned no verdict when this one did, one entry for each claim."""
    usage: Usage
    """The usage of the replies when they were made."""
    shares: tuple[float, ...] = ()
    """How likely the choices are without a constraint, as far as that was measured."""


class JudgeIdentity(Struct, frozen=True, kw_only=True):
    """Everything that verdicts depend on, apart from the inputs."""

    kind: str
    """``llm``, ``matcher`` or another family."""
    model: str
    """The model's id or folder name."""
    revision: str = ""
    """The weights' revision or digest; empty if unknown."""
    server: str = ""
    """What serves it and in which version, such as ``vllm 0.32.0``; empty if unknown."""
    template: str = ""
    """Name, version and hash of the prompt template."""
    parameters: tuple[tuple[str, str], ...] = ()
    """Every parameter that is sent or applied, by name."""

    def __str__(self) -> str:
        revision = f"@{self.revision}" if self.revision else ""
        server = f" ({self.server})" if self.server else ""
        return f"{self.model}{revision}{server}"

    def signature_fields(self) -> tuple[tuple[str, str], ...]:
        """Return the judge's fields of a metric's signature."""
        parameters = ",".join(f"{name}={value}" for name, value in self.parameters)
        fields = (("judge", str(self)), ("prompt", self.template), ("params", parameters))
        return tuple((name, value) for name, value in fields if value)

    def settings(self) -> dict[str, str]:
        """Return the judge's settings for the report: model, prompts and every parameter."""
        parameters = {f"judge.{name}": value for name, value in self.parameters}
        return {"judge_model": str(self), "judge_prompts": self.template, **parameters}

    @property
    def signature(self) -> str:
        """The identity as one field of a metric's signature."""
        return ",".join(value for _, value in self.signature_fields())


def joined_identity(parts: Sequence[tuple[str, JudgeIdentity]]) -> JudgeIdentity:
    """Return one identity of several judges in order.

    Args:
        parts: Names and identities of the judges.
    """
    if len(parts) == 1:
        return parts[0][1]
    return JudgeIdentity(
        kind="router",
        model=">".join(str(part) for _, part in parts),
        template=">".join(part.template or "-" for _, part in parts),
        parameters=tuple(
            (f"{judge}.{name}", value) for judge, part in parts for name, value in part.parameters
        ),
    )


@runtime_checkable
class Judge(Protocol):
    """Gives verdicts on claims."""

    @property
    def name(self) -> str:
        """Its name in evidence and settings, such as ``llm`` or ``fallback``."""

    @property
    def identity(self) -> JudgeIdentity:
        """What its verdicts depend on, as far as it is known before the first call."""

    async def judge(
        self, items: Sequence[JudgeRequestItem], *, has_fallback: bool = False
    ) -> list[JudgedItem]:
        """Return verdicts on every claim of every item, in order.

        A claim without verdict is unscored with a reason. Only errors that every further
        call would repeat, such as a rejected key, are raised. Verdicts are counted by
        :func:`count_verdicts` as they are given.

        Args:
            items: Claims and references.
            has_fallback: Whether another judge is asked about claims without verdict.
        """


@runtime_checkable
class RecallingJudge(Judge, Protocol):
    """A judge that keeps verdicts of earlier calls."""

    async def recall(self, items: Sequence[JudgeRequestItem]) -> list[Recalled]:
        """Return the verdicts that are known without calling the model."""


def unscored_claim(claim: ClaimParts, reason: str, detail: str, judge: str = "") -> ClaimVerdict:
    """Return a claim without a verdict, and why it has none."""
    return ClaimVerdict(
        triplet=claim, verdict=Verdict.UNSCORED, judge=judge, reason=reason, detail=detail
    )


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
