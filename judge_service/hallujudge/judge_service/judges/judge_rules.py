"""Rules that options of a run set: which verdicts are kept, who votes, which share is enough."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from hallujudge.metrics.framework.claims import ClaimParts, ClaimVerdict, Verdict, certainty
from hallujudge.metrics.framework.json_values import newer_schema, schema_problem
from hallujudge.metrics.framework.results import UnscoredReason
from hallujudge.metrics.framework.signature import signature_value

from ..errors import InvalidInputError, fault_of
from . import Declined, JudgeIdentity, JudgeRequestItem, logistic
from .questions import Question


@contextmanager
def option_file(
    option: str, text: str, kind: str, *, what: str, advice: str
) -> Iterator[Mapping[str, Any]]:
    """Provide the content of a file, and say which option is wrong where a block can't read it.

    Args:
        option: The option's name.
        text: The file's text.
        kind: The kind of file that its schema names.
        what: What the file is, for the error.
        advice: Which file to give instead.

    Raises:
        InvalidInputError: It is not such a file, or a newer release wrote it.
    """
    try:
        content: Any = json.loads(text)
        # A newer file first: the checks below would only call it wrong.
        if problem := newer_schema(content["schema"]):
            raise InvalidInputError(f"the option {option} can't be read: {problem}")
        if problem := schema_problem(content["schema"] or "", kind):
            raise ValueError(problem)
        yield content
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as err:
        raise InvalidInputError(
            f"the option {option} is not {what}: {fault_of(err)}; {advice}"
        ) from err


def text_sha256(text: str) -> str:
    """Return the hash of a file's text; texts of callers may have lone surrogates."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def _is_drawn(content: object, share: float) -> bool:
    """Return whether content is in a share of all; its hash draws, so that every run agrees."""
    return int.from_bytes(sha256(json.dumps(content).encode()).digest()[:8]) < share * 2**64


def share_of_option(option: str, text: str, *, default: str, above_zero: bool = False) -> float:
    """Return the share that an option states.

    Args:
        option: The option's name.
        text: Its text.
        default: The text in place of an empty one.
        above_zero: Whether 0 is not such a share.

    Raises:
        InvalidInputError: It is not a number from 0 to 1.
    """
    with suppress(ValueError):
        share = float(text or default)
        # NaN fails both comparisons, and is refused.
        if 0 < share <= 1 or (share == 0 and not above_zero):
            return share
    numbers = "above 0 and up to 1" if above_zero else "from 0 to 1"
    raise InvalidInputError(f"the option {option} is {text!r:.40}; give a number {numbers}")


def finite(given: Any) -> float:
    """Return a finite number.

    Raises:
        ValueError: It is none.
    """
    value = float(given)
    if not math.isfinite(value):
        raise ValueError(f"{given!r:.40} is not a finite number")
    return value


# Characters of a judge's signature in a note.
_REFERENCE = 300
# Digits of a file's hash in a signature.
_SHOWN_HASH = 12


class Promise(Struct, frozen=True, kw_only=True):
    """The promise of a learned threshold, from ``cascade.json``."""

    judge: str
    """The signature of the judge whose verdicts were labelled."""
    target: float
    """The least agreement of kept verdicts with labels."""
    confidence: float
    """How often thresholds learned in this way keep their promise."""
    labels: int
    """Labelled claims with kept verdicts."""
    sha256: str
    """The hash of the file."""
    reference: str = ""
    """The signature of the judge whose verdicts were taken for labels; empty for people's."""


class Escalation(Struct, frozen=True, kw_only=True):
    """The rule by which a verdict of the first judge goes to the next one."""

    below: float
    """The margin below which a verdict is not kept."""
    abstain: bool = False
    """Whether such a claim stays without a verdict, though there is a next judge."""
    promise: Promise | None = None
    """The promise of the threshold, if it was learned."""

    @classmethod
    def of(cls, *, below: str, cascade: str, abstain: str) -> Escalation | None:
        """Return the rule of a run's options, or None if every verdict is kept.

        Args:
            below: The margin, or empty.
            cascade: The text of ``cascade.json``, or empty.
            abstain: ``yes`` or ``no``.

        Raises:
            InvalidInputError: An option can't be used, or two of them contradict each other.
        """
        if below and cascade:
            raise InvalidInputError(
                "give the option escalate_below or the option cascade, not both"
            )
        if not below and not cascade:
            if abstain == "yes":
                raise InvalidInputError(
                    "the option abstain needs a margin; set the option escalate_below or "
                    "the option cascade"
                )
            return None
        made = _learnt_cascade(cascade) if cascade else cls(below=_margin(below))
        return replace(made, abstain=abstain == "yes")

    def check(self, identity: JudgeIdentity) -> None:
        """Reject a threshold that was learned from another judge than the first one.

        Raises:
            InvalidInputError: It was.
        """
        signature = signature_value(identity.signature)
        if self.promise is not None and self.promise.judge != signature:
            raise InvalidInputError(
                f"the cascade was learnt from verdicts of {self.promise.judge!r:.300}, but the "
                f"first judge is {signature!r:.300}; calibrate a run of this judge with a level of "
                "agreement, or name the other judge first in the setting judge_order"
            )

    def declines(self, judge: str, margin: float | None) -> Declined | None:
        """Return why a verdict of the first judge is not kept, or None if it is.

        Args:
            judge: The judge's name, ``llm`` or ``fallback`` for language models.
            margin: The verdict's margin.
        """
        sure = None if margin is None else certainty(margin, judge)
        if sure is not None and sure >= self.below:
            return None
        found = "no margin" if sure is None else f"margin {sure:.6g}"
        return Declined(
            judge, str(UnscoredReason.MARGIN_TOO_SMALL), f"{found}, and {self.below:.6g} is needed"
        )

    def identity(self, judges: JudgeIdentity) -> JudgeIdentity:
        """Return the identity of judges with the rule among the parameters."""
        more = [("escalate_below", str(self.below))]
        if self.promise is not None:
            more.append(("cascade", self.promise.sha256[:_SHOWN_HASH]))
        if self.abstain:
            more.append(("abstain", "yes"))
        return replace(judges, parameters=(*judges.parameters, *more))

    def note(self, first: str) -> str:
        """Return the sentence for the report about what kept verdicts are worth.

        Args:
            first: The first judge's name.
        """
        kept = f"Verdicts of {first} with a margin of at least {self.below:.6g} are kept"
        if self.promise is None:
            return f"{kept}. This margin was set by hand and promises no agreement."
        of = self.promise
        taken = "verdicts" if of.reference else "labels"
        name = of.reference.partition(",")[0]
        truth = f"verdicts of {name}" if name else taken
        return (
            f"{kept}. They agree with {truth} in at least {of.target:.1%}, with a confidence of "
            f"{of.confidence:.0%} (fixed-sequence test on {of.labels:,} {taken}; Angelopoulos et "
            "al., arXiv:2110.01052). This holds for claims like those that it was learnt from, and "
            "not for verdicts of other judges."
        )


def _margin(text: str) -> float:
    try:
        return finite(text)
    except ValueError as err:
        raise InvalidInputError(
            f"the option escalate_below is {text!r:.40}; give a number"
        ) from err


def _learnt_cascade(text: str) -> Escalation:
    """Return the rule of a file that ``hallujudge calibrate --agreement`` wrote."""
    advice = "give the file that a calibration with a level of agreement writes"
    with option_file("cascade", text, "cascade", what="a cascade.json", advice=advice) as content:
        if content["escalate_below"] is None:
            raise InvalidInputError(
                "the cascade has no margin: too few labels, or the judge is too weak; label more, "
                "or ask for less agreement"
            )
        promise = Promise(
            judge=str(content["judge"]),
            target=finite(content["target"]),
            confidence=finite(content["confidence"]),
            labels=int(content["labels"]),
            reference=str(content["reference"])[:_REFERENCE],
            sha256=text_sha256(text),
        )
        return Escalation(below=_margin(str(content["escalate_below"])), promise=promise)


class VoteWeights(NamedTuple):
    """What a judge's votes add to the log odds that a claim is supported."""

    supported: float
    """What a vote for support adds."""
    not_supported: float
    """What a vote against it adds; below 0 unless the judge is wrong more often than right."""


# One vote as good as the other: the sum is votes for support minus votes against it.
_MAJORITY = VoteWeights(1.0, -1.0)


class PanelRule(Struct, frozen=True, kw_only=True):
    """Who votes, on which claims, and how votes are combined.

    Majorities of different judges follow PoLL (Verga et al., arXiv:2404.18796). Learnt weights are
    the logarithms of likelihood ratios of a judge's votes, as in Dawid and Skene (Applied
    Statistics 28, 1979), so that their sum is the log odds that a claim is supported.
    """

    members: tuple[str, ...]
    """Names of the judges; the first one judges every claim."""
    share: float = 1.0
    """Share of claims on which the others vote, too."""
    weights: Mapping[str, VoteWeights] = {}
    """The weights of each member; empty for a majority."""
    prior: float = 0.0
    """Log odds that a claim is supported before any vote."""
    sha256: str = ""
    """The hash of the weights' file."""

    @classmethod
    def of(cls, *, members: str, share: str, weights: str) -> PanelRule | None:
        """Return the rule of a run's options, or None without a panel.

        Args:
            members: Names with commas between, or empty.
            share: A number above 0 and up to 1, or empty for 1.
            weights: The text of ``panel.json``, or empty.

        Raises:
            InvalidInputError: An option can't be used.
        """
        names = tuple(filter(None, map(str.strip, members.split(","))))
        if not names:
            given = [name for name, of in (("share", share), ("weights", weights)) if of]
            if given:
                raise InvalidInputError(
                    f"the option panel_{given[0]} is about a panel; set the option panel to the "
                    "names of its judges"
                )
            return None
        if len(names) < 2 or len({*names}) < len(names):
            raise InvalidInputError(
                f"the option panel is {members!r:.200}; name two or more different judges, such as "
                "llm,matcher"
            )
        made = cls(
            members=names, share=share_of_option("panel_share", share, default="1", above_zero=True)
        )
        return _learnt_weights(made, weights) if weights else made

    @property
    def text(self) -> str:
        """The rule, for the signature."""
        how = f"weights@{self.sha256[:_SHOWN_HASH]}" if self.weights else "majority"
        part = f"/{self.share:g}" if self.share < 1 else ""
        return f"{how}({'+'.join(self.members)}){part}"

    def draws(self, item: JudgeRequestItem, claim: ClaimParts) -> bool:
        """Return whether all members vote on a claim; the same in every run and order."""
        if self.share >= 1:
            return True
        return _is_drawn([item.id, *claim], self.share)

    def odds(self, votes: Mapping[str, ClaimVerdict]) -> float:
        """Return the log odds of support; of a majority, votes for it minus votes against it."""
        sums = self.prior
        for name, vote in votes.items():
            weights = self.weights.get(name, _MAJORITY)
            supports = vote.verdict is Verdict.SUPPORTED
            sums += weights.supported if supports else weights.not_supported
        return sums

    def probability(self, votes: Mapping[str, ClaimVerdict]) -> float:
        """Return the probability of support; of a majority, the share of votes for it."""
        if self.weights:
            return logistic(self.odds(votes))
        return sum(vote.verdict is Verdict.SUPPORTED for vote in votes.values()) / len(votes)


def _learnt_weights(rule: PanelRule, text: str) -> PanelRule:
    """Return a rule with the weights of a file that ``hallujudge judge panel`` wrote."""
    advice = "give the JSON file that hallujudge judge panel writes"
    with option_file(
        "panel_weights", text, "judge-panel", what="a panel's weights", advice=advice
    ) as content:
        weights = dict(_weights(content["weights"]))
        prior = finite(content["prior"])
    if unknown := [name for name in rule.members if name not in weights]:
        raise InvalidInputError(
            f"panel_weights has no weights of {', '.join(unknown)}, only of {', '.join(weights)}; "
            "learn them from a run of this panel"
        )
    return replace(rule, weights=weights, prior=prior, sha256=text_sha256(text))


def _weights(content: Mapping[str, Any]) -> Iterator[tuple[str, VoteWeights]]:
    for name, of in content.items():
        yield str(name), VoteWeights(finite(of["supported"]), finite(of["not_supported"]))


# The part of the claims whose share is measured; the calls cost one token each.
_PART = 0.05
# So many expected draws are 50 or more in all but 2 of 1,000 runs.
_EXPECTED = 75


class ShareRule(Struct, frozen=True, kw_only=True):
    """Of which claims the share of the choices is measured, and which share is enough."""

    claims: int = 0
    """About how many claims the run has; 0 if that is unknown."""
    least: float = 0.0
    """The share below which a claim is unscored; above 0, the share of every claim is measured."""

    @classmethod
    def of(cls, least: str, claims: int) -> ShareRule:
        """Return the rule of a run.

        Args:
            least: The option ``min_choice_share``, or empty.
            claims: About how many claims the run has; 0 if that is unknown.

        Raises:
            InvalidInputError: The option can't be used.
        """
        return cls(claims=claims, least=share_of_option("min_choice_share", least, default="0"))

    def check(self, judges: Iterable[object]) -> None:
        """Refuse to leave out claims by a share that no judge's server can tell.

        Raises:
            InvalidInputError: There is a least share, and no judge's share can be measured.
        """
        if self.least and not any(getattr(judge, "measures_shares", False) for judge in judges):
            raise InvalidInputError(
                "the option min_choice_share needs a language model whose server reports "
                "log-probabilities (api chat, without batch files) or the api scoring; leave it out"
            )

    def draws(self, question: Question) -> bool:
        """Return whether the share is measured of a question about one claim."""
        part = max(_PART, _EXPECTED / self.claims) if self.claims else _PART
        if self.least or part >= 1:
            return True
        return _is_drawn(question.messages, part)

    def identity(self, judges: JudgeIdentity) -> JudgeIdentity:
        """Return the identity of judges with the rule, if it leaves claims out."""
        if not self.least:
            return judges
        least = ("min_choice_share", f"{self.least:g}")
        return replace(judges, parameters=(*judges.parameters, least))
