"""Claims, the triplets that they are made of, their verdicts, and what their metrics have alike."""

from __future__ import annotations

import enum
import json
import math
import re
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import ClassVar, NamedTuple, TypeAlias

from msgspec import Struct

from .json_values import json_kind, well_formed
from .metric import SoftMetric
from .results import JsonValue, UnscoredReason

MAX_PART_CHARS = 2_000
"""Longest part of a claim; a longer one is an extractor error, such as a whole response."""

# A line of a terminal.
_SHOWN_CHARS = 80
# A comma between parts has a space on at least one side; one inside 1,000 has none.
_SEPARATOR = re.compile(r"\s*,\s+|\s+,\s*")


class Triplet(NamedTuple):
    """A triplet (subject, relation, object), section 3.1 of the Tri-HE paper."""

    subject: str
    """The subject of the claim."""
    relation: str
    """The relation; ``is`` for an attribute."""
    object: str
    """The object of the relation, or the attribute."""

    @property
    def written(self) -> str:
        """Return the triplet as files write it."""
        return f"({self.subject}, {self.relation}, {self.object})"


class WrittenTriplet(Triplet):
    """A triplet with the exact text of its file, which its parts can't reproduce.

    The released matcher compares the text of the file, so that a slip such as ``(bus, is,stopped)``
    changes its scores. Equal parts make equal triplets, however they were written.
    """

    _text: str

    def __new__(cls, subject: str, relation: str, object: str, written: str = "") -> WrittenTriplet:
        """Create the triplet with its parts and its text."""
        triplet = super().__new__(cls, subject, relation, object)
        triplet._text = written or Triplet(subject, relation, object).written
        return triplet

    @property
    def written(self) -> str:
        """Return the text of the file."""
        return self._text


class Sentence(NamedTuple):
    """A whole sentence as a claim: the paper's baseline without triplets (its Table 3)."""

    text: str
    """The sentence."""


ClaimParts: TypeAlias = Triplet | Sentence
"""A claim as its parts: three of a triplet, one of a sentence."""


class TripletError(ValueError):
    """A value that is not a triplet."""

    def __init__(self, value: object, problem: str) -> None:
        self.value, self.problem = value, problem
        super().__init__(
            f"{_shown(value)} is not a triplet: {problem}; "
            'write three texts, such as ["man", "riding", "horse"] or "(man, riding, horse)"'
        )


def triplet_of(value: object) -> Triplet:
    """Return the triplet of a claim, parsed strictly.

    A list has exactly three parts, which may hold commas. A text is split at its commas, with or
    without brackets around it. Commas inside parts can't be distinguished from those between
    them, so that a text of two or four parts is refused, never guessed.

    Args:
        value: A list or tuple of three texts, or a text such as ``(man, riding, horse)``.

    Raises:
        TripletError: It has two or four parts, a part that is empty, too long or no text.
    """
    return _three(value, _parts(value))


def reference_of(value: object) -> Triplet:
    """Return the triplet of a scene graph, parsed as leniently as published files need.

    Some of Tri-HE's own triplets have a comma too many, such as ``(woman, reason for attention,
    curiosity, photographer)``: everything after the second comma is the object. If the parts cannot
    reproduce the text, it is kept for the published matcher.

    Args:
        value: A list or tuple of three texts, or a text of three or more parts.

    Raises:
        TripletError: It has fewer than three parts, or a part that is empty, too long or no text.
    """
    if not isinstance(value, str):
        return _three(value, _parts(value))
    value = well_formed(value)
    parts = _parts(value)
    triplet = _three(value, [*parts[:2], ", ".join(map(str, parts[2:]))] if parts[3:] else parts)
    if _bare(value) == _bare(triplet.written):
        return triplet
    return WrittenTriplet(*triplet, written=value.strip())


def _bare(text: str) -> str:
    return " ".join(re.sub("[(),]", "", text).split())


def _parts(value: object) -> list[object]:
    if isinstance(value, list | tuple):
        return list(value)
    if not isinstance(value, str):
        raise TripletError(value, f"it is {json_kind(value)}")
    inside = _inside(value)
    parts = _SEPARATOR.split(inside)
    # Commas inside names, as in "5,000 people", have no blank after them.
    return list(parts if len(parts) > 2 else inside.split(","))


def _inside(text: str) -> str:
    text = text.strip()
    return text[1:-1] if text[:1] in "([" and text[-1:] in ")]" and len(text) > 1 else text


def _three(value: object, parts: list[object]) -> Triplet:
    if len(parts) != 3:
        raise TripletError(value, f"it has {len(parts)} part{'' if len(parts) == 1 else 's'}")
    return Triplet(*(_part(value, number, part) for number, part in enumerate(parts, start=1)))


def _part(value: object, number: int, part: object) -> str:
    if not isinstance(part, str):
        raise TripletError(value, f"part {number} is {json_kind(part)}, not a text")
    part = well_formed(part.strip())
    if not part:
        raise TripletError(value, f"part {number} is empty")
    if len(part) > MAX_PART_CHARS:
        raise TripletError(value, f"part {number} is longer than {MAX_PART_CHARS} characters")
    return part


def _shown(value: object) -> str:
    # Bounded output: the repr of a nested value may be as large as its file.
    if isinstance(value, list | tuple):
        value = [_brief(item) for item in value[:5]]
    elif isinstance(value, str):
        value = value[:_SHOWN_CHARS]
    try:
        text = json.dumps(value, ensure_ascii=False)
    # Also what is no JSON, or is nested too deep, must be shown in an error.
    except (TypeError, ValueError, RecursionError):
        text = repr(value)
    return text if len(text) <= 2 * _SHOWN_CHARS else text[: 2 * _SHOWN_CHARS] + "…"


def _brief(item: object) -> object:
    """Return a part as it is shown; lists and objects may be as large as a file."""
    if isinstance(item, str):
        return item[:_SHOWN_CHARS]
    return item if item is None or isinstance(item, (int, float)) else "…"


LANGUAGE_MODELS = ("llm", "fallback")
"""The names of judges that are language models, in evidence."""
_SIMILARITY_JUDGE = "matcher"


def certainty(margin: float, judge: str) -> float:
    """Return how sure a judge is of a verdict, from its margin.

    The margin of a matcher or small judge is a signed distance from a threshold, so its size is
    what counts. That of a language model belongs to the answer that it chose, among the choices:
    below 0, another choice was likelier, so it is least sure.

    Args:
        margin: The verdict's margin.
        judge: Name of the judge in evidence.
    """
    return margin if judge in LANGUAGE_MODELS else abs(margin)


class Modality(enum.Enum):
    """How a response puts a claim."""

    STATED = "stated"
    """As a fact."""
    HEDGED = "hedged"
    """As a guess or one of several alternatives: "might be", "possibly", "red or blue"."""
    CONDITIONAL = "conditional"
    """As a condition or its consequence: "if the wind stops"."""


class Verdict(enum.Enum):
    """A judge's verdict on a claim."""

    SUPPORTED = "supported"
    """The scene graph states or implies the claim."""
    NOT_SUPPORTED = "not_supported"
    """The scene graph does not support the claim: it is hallucinated."""
    UNSCORED = "unscored"
    """The judge returned no valid verdict; a reason explains it."""


class Part(enum.Enum):
    """The part of a triplet that is wrong."""

    SUBJECT = "subject"
    """The image lacks the subject."""
    OBJECT = "object"
    """The image lacks the object."""
    RELATION = "relation"
    """The image has both objects, but not this relation."""

    @classmethod
    def of(cls, wrong: Iterable[Part]) -> Part | None:
        """Return the part under which a claim with several wrong parts is counted.

        A relation is hallucinated only where both objects exist (section 3.1 of the paper), so that
        a claim with a wrong object is an object hallucination whatever its relation is.
        """
        # The parts are declared in this order: subject, object, relation.
        return min(wrong, key=list(cls).index, default=None)

    @property
    def is_object(self) -> bool:
        """Return whether the part counts as object hallucination."""
        return self is not Part.RELATION


NOT_VISIBLE = "cannot_be_seen"
"""What a judge says of a claim that it can't check in the picture."""
SEEN_CHOICES = ("supported", "not_supported", NOT_VISIBLE)
"""What a judge that sees may say of a claim, in the order in which it is offered."""


class ClaimVerdict(Struct, frozen=True, kw_only=True, gc=False):
    """A claim and its verdict."""

    triplet: ClaimParts
    """The claim: a triplet, or a sentence in the sentence-level baseline."""
    verdict: Verdict
    """Supported, not supported or unscored."""
    part: Part | None = None
    """The wrong part of an unsupported claim, if the judge names it."""
    score: float | None = None
    """A matcher's similarity; of other judges the probability that the claim is supported, among
    the choices that a language model has."""
    margin: float | None = None
    """The judge's confidence: for a matcher the distance to the threshold, for a language model the
    log-probability of its answer minus that of the runner-up among the choices."""
    judge: str = ""
    """Name of the judge."""
    references: tuple[Triplet, ...] = ()
    """The reference triplets that a matcher checked the claim against. Empty: all of the
    scene graph, which a language model reads and the item's evidence holds only once."""
    span: tuple[int, int] | None = None
    """Position in the response: first character and the position after the last."""
    within_words: int | None = None
    """Words of the response up to the claim's end; None if the claim has no position."""
    modality: Modality | None = None
    """How the response puts the claim; None if unknown."""
    prediction_error: bool = False
    """Whether the image has all parts of an unsupported claim, but not in this combination."""
    reason: str = ""
    """Why there is no verdict, such as ``REFERENCE_MISSING``."""
    detail: str = ""
    """Details of the reason; of a verdict, how the judge's input was cut, if it was too long."""
    kind: str = ""
    """What it is about, such as ``attribute``, in metrics that keep kinds apart."""
    moment: str | None = None
    """The moment of the video that its text names, such as ``0:12``; empty if it names none, and
    None where it is not about a video."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the entry of ``evidence.claims``."""
        line: dict[str, JsonValue] = {
            "triplet": list(self.triplet),
            "span": list(self.span) if self.span else None,
            "within_words": self.within_words,
            "verdict": self.verdict.value,
            "part": self.part.value if self.part else None,
            "prediction_error": self.prediction_error,
            "score": self.score,
            "margin": self.margin,
            "judge": self.judge,
            "references": [list(triplet) for triplet in self.references],
        }
        if self.kind:
            line["kind"] = self.kind
        if self.moment is not None:
            line["moment"] = self.moment
        if self.modality is not None:
            line["modality"] = self.modality.value
        if self.reason:
            line["reason"] = self.reason
        if self.reason or self.detail:
            line["detail"] = self.detail
        return line


def no_verdicts(claims: Sequence[ClaimVerdict]) -> tuple[UnscoredReason, str]:
    """Return why claims, all without a verdict, have no score: a reason, and that of the first."""
    first = claims[0]
    detail = f"none of {len(claims)} claims has a verdict: {first.reason or 'no reason given'}"
    return UnscoredReason.NO_VERDICTS, f"{detail} ({first.detail})" if first.detail else detail


def support_probability(claim: ClaimVerdict) -> float | None:
    """Return the probability of support that a claim's judge states, or None."""
    return stated_probability(claim.judge, claim.score)


def stated_probability(judge: str, score: float | None) -> float | None:
    """Return a judge's score as a probability of support, or None.

    The score of a matcher is a similarity and not a probability.
    """
    return None if judge == _SIMILARITY_JUDGE else score


class InvalidEntry(NamedTuple):
    """A keyword or triplet of a language model's reply that breaks the rules of its extraction."""

    place: str
    """The list that it was in: ``triplets``, ``reference_objects``, ``predicted_behaviors`` …"""
    text: str
    """What the model wrote, shortened."""
    problem: str
    """What is wrong with it."""
    repaired: str = ""
    """What replaced it; empty if it was rejected."""


def invalid_to_json(entries: Iterable[InvalidEntry]) -> dict[str, JsonValue]:
    """Return the invalid entries as evidence has them; empty without any."""
    found: list[JsonValue] = [dict(entry._asdict()) for entry in entries]
    return {"invalid": found} if found else {}


def invalid_note(noun: str, rejected: float, repaired: float = 0) -> tuple[str, ...]:
    """Return the note on invalid entries of an extractor's replies, if there are any.

    Args:
        noun: What the entries are, in the plural.
        rejected: How many were left out.
        repaired: How many were replaced.
    """
    if not rejected and not repaired:
        return ()
    kinds = [
        f"{int(number):,} {how}"
        for number, how in ((rejected, "rejected"), (repaired, "repaired"))
        if number
    ]
    return (
        f"Invalid {noun} in the extractor's replies: {' and '.join(kinds)}. Their items are scored "
        "without those rejected, and have all of them in the evidence (invalid).",
    )


LEAST_SHARE = 0.5
"""The choice share below which a judge would write something else more often than a choice."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceShare:
    """How likely a judge would write one of the choices if nothing kept it from other words."""

    mean: float
    """Mean over claims."""
    n: int
    """Claims for which it was measured."""


def choice_share_notes(shares: Iterable[tuple[str, ChoiceShare | None]]) -> tuple[str, ...]:
    """Return a warning for each judge that would rather write something else than a choice.

    Args:
        shares: Judges with their shares; None where it was not measured.
    """
    return tuple(
        f"If nothing kept {judge} from other words, it would write one of the choices with a "
        f"probability of {known.mean:.3g} only (choice_share, {known.n:,} claims). Its margins and "
        "probabilities are among the choices and do not show this; check its verdicts by labels, "
        "or choose another judge."
        for judge, known in shares
        if known is not None and known.mean < LEAST_SHARE
    )


def is_hallucinated(claim: ClaimVerdict) -> bool:
    """Return whether a claim counts as hallucinated."""
    return claim.verdict is Verdict.NOT_SUPPORTED


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimsMetric(SoftMetric):
    """A metric of responses whose claims have verdicts.

    Attributes:
        judge: Name of the judge, for the signature.
        extractor: Name of the extractor, for the signature; ``given`` if claims were given.
        tentative: ``keep`` or ``omit`` hedged and conditional claims, for the signature.
        panel: Who votes, and how votes are combined, for the signature; empty without a panel.
    """

    response_noun: ClassVar[str]
    """What has claims, such as ``answer``."""
    judge_option: ClassVar[str] = "judge"
    soft_noun: ClassVar[str] = "claims"
    # The responses' own shares are fractions.
    folds: ClassVar[bool] = False
    unresolved: ClassVar[str] = "unscored_claims"

    judge: str
    extractor: str = "given"
    tentative: str = "keep"
    panel: str = ""

    def _shown_fields(self) -> tuple[tuple[str, str], ...]:
        """Return what the judge is shown, as fields of the signature."""
        return ()

    def signature_fields(self) -> tuple[tuple[str, str], ...]:
        """Return the extractor, the judge, and which claims and probabilities count."""
        omitted = () if self.tentative == "keep" else (("tentative", self.tentative),)
        panel = (("panel", self.panel),) if self.panel else ()
        judging = (*self._shown_fields(), ("judge", self.judge), *panel)
        return (("extract", self.extractor), *omitted, *self.soft_fields(), *judging)

    def verdicts_in(self, totals: Mapping[str, float]) -> int:
        """Return the number of claims with a verdict."""
        return int(totals["claims"])

    def unscored_reason(
        self, verdicts: Sequence[ClaimVerdict]
    ) -> tuple[UnscoredReason, str] | None:
        """Return why a response with these verdicts has no score, as reason and detail, or None.

        Args:
            verdicts: The verdicts of the response's claims.
        """
        if not verdicts:
            detail = f"the {self.response_noun} makes no claim that could be judged"
            return UnscoredReason.NO_CLAIMS, detail
        # One verdict is enough for a score; the bounds show what the others could change.
        if any(claim.verdict is not Verdict.UNSCORED for claim in verdicts):
            return None
        return no_verdicts(verdicts)

    def _check_score(self, verdicts: Sequence[ClaimVerdict]) -> None:
        """Check that a response has a score.

        Raises:
            ValueError: It has none; see :meth:`unscored_reason`.
        """
        if (problem := self.unscored_reason(verdicts)) is not None:
            raise ValueError(f"the {self.response_noun} has no score: {problem[1]}")

    def is_hallucinated(self, claim: ClaimVerdict) -> bool:
        """Return whether a claim counts as hallucinated."""
        return is_hallucinated(claim)

    def soft_weight(self, claim: ClaimVerdict) -> float:
        """Return what a claim with a verdict adds: 1 - P(supported), or 0 or 1 by its verdict."""
        share = support_probability(claim)
        return float(self.is_hallucinated(claim)) if share is None else 1.0 - share

    def _counted(self, known: Sequence[ClaimVerdict], wrong: int) -> tuple[float, int]:
        """Return how much claims with a verdict add, and how many add by it without a probability.

        Args:
            known: The claims.
            wrong: How many of them are hallucinated.
        """
        if not self.is_soft:
            return wrong, 0
        without = sum(support_probability(claim) is None for claim in known)
        return math.fsum(map(self.soft_weight, known)), without
