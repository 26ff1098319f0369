"""Responses about pictures or videos, kinds of their claims, and what a judge is shown."""

from __future__ import annotations

import re
from typing import Literal, TypeAlias

from msgspec import Struct, to_builtins

from ..framework.claims import ClaimParts, ClaimVerdict, InvalidEntry, Triplet, invalid_to_json
from ..framework.results import Item, ItemRecords, JsonValue, Picture, ShownPicture

MOMENT, OBJECT = "moment", "object"
"""What a further look is at: a moment of a video, or an object of a picture."""


class CloserLook(Struct, frozen=True, kw_only=True):
    """Pictures that only claims about one moment or object are judged by."""

    kind: str
    """``moment``: frames in place of the usual ones; ``object``: crops beside the picture."""
    of: str
    """The moment as evidence names it, or the object's name."""
    pictures: tuple[Picture, ...]
    """The frames in their order, or the crops, the largest first."""

    @property
    def hashes(self) -> tuple[str, ...]:
        """The hash of each picture."""
        return tuple(picture.sha256 for picture in self.pictures)


class ShownLook(Struct, frozen=True, kw_only=True, gc=False):
    """What evidence keeps of a further look."""

    kind: str
    """``moment`` or ``object``."""
    of: str
    """The moment, or the object."""
    sha256: tuple[str, ...]
    """The hash of each picture."""


class SeenClaim(Struct, frozen=True, kw_only=True, gc=False):
    """A claim that came with a response."""

    claim: ClaimParts
    verdict: str = ""
    """What somebody said of it: one of
    :data:`~hallujudge.metrics.framework.claims.SEEN_CHOICES`, or empty."""


class SeenClaimsItem(Item, frozen=True, kw_only=True):
    """A response about a picture or a video, and what a judge is shown of it."""

    question: str = ""
    """What the model was asked; no judge sees it."""
    response: str | None = None
    """What the model wrote; None if only its claims are known."""
    claims: tuple[SeenClaim, ...] | None = None
    """Claims of the response; None if they are to be extracted."""
    pictures: tuple[Picture, ...] = ()
    """The picture, or the frames of the video in order; empty if they are not known."""
    problem: str = ""
    """Why there are no pictures, in words; empty if there are, or none were looked for."""
    seconds: float | None = None
    """Length of the video, 0 if it is not known; None for pictures."""
    looks: tuple[CloserLook, ...] = ()
    """What else is shown for claims about some moments or objects."""

    def records(self) -> ItemRecords:
        """Return the question; the pictures, the video's length, and crops of objects.

        Frames of moments depend on the response, so that they are not part of the reference.
        """
        shown = [picture.sha256 for picture in self.pictures]
        crops = [[look.of, *look.hashes] for look in self.looks if look.kind == OBJECT]
        length = None if self.seconds is None else f"{self.seconds:.3f}"
        return ItemRecords(self.question, (shown, length, crops))


class SeenClaimsEvidence(Struct, frozen=True, kw_only=True, gc=False):
    """Evidence of a response's scores."""

    claims: tuple[ClaimVerdict, ...]
    """Every claim with its verdict and kind, in the order of the response."""
    pictures: tuple[ShownPicture, ...] = ()
    """What the judge was shown."""
    looks: tuple[ShownLook, ...] = ()
    """What it was shown further of moments and objects."""
    extractor: str = ""
    """The extractor that found the claims; empty if they were given."""
    judging: tuple[dict[str, JsonValue], ...] = ()
    """The judges that were called, in order: verdicts, fallbacks, tokens, latency and cost."""
    invalid: tuple[InvalidEntry, ...] = ()
    """Triplets of a language model's reply that were rejected."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the claims, and the pictures, extractor and judges that are known."""
        line: dict[str, JsonValue] = {"claims": [claim.to_json() for claim in self.claims]}
        if self.pictures:
            line["pictures"] = to_builtins(self.pictures)
        if self.looks:
            line["looks"] = to_builtins(self.looks)
        if self.extractor:
            line["extractor"] = self.extractor
        if self.judging:
            line["judging"] = list(self.judging)
        return line | invalid_to_json(self.invalid)


ClaimKind: TypeAlias = Literal["object", "attribute", "count", "relation", ""]
"""The kind of a claim; empty for a sentence, which may hold several."""
KINDS = ("object", "attribute", "count", "relation")
"""The kinds with scores of their own."""


def _words(text: str) -> frozenset[str]:
    return frozenset(text.split())


_NUMBERS = _words(
    "zero two three four five six seven eight nine ten eleven twelve dozen hundred thousand"
)
# "One" alone is a number, and before a noun mostly an article.
_ALONE = _NUMBERS | {"one", "single"}
_COPULAS = _words("is are was were be being am")
_PRESENT = _words("present there visible here shown seen existing")
_HOLDING = _words("has have contains contain shows show depicts depict features includes include")
_COUNTING = _words("number numbers count counts total totals")
# What a caption says that it describes; the rule extractor's own list is of all such nouns.
_MEDIA = _words("image picture photo photograph scene video clip frame view")
_WORD = re.compile(r"[a-z0-9]+")


def kind_of(claim: ClaimParts) -> ClaimKind:
    """Return the kind of a claim.

    A triplet whose relation is a form of "be" says that something is there (object), how many there
    are (count) or what it is like (attribute). Any other one relates two things, unless the first
    is the image itself.

    Args:
        claim: A triplet; a sentence has no kind.
    """
    if not isinstance(claim, Triplet):
        return ""
    subject, relation, target = (_WORD.findall(part.lower()) for part in claim)
    # A denied claim is of the kind that it denies; "isn't" leaves a "t".
    said = [word for word in relation if word not in ("not", "no", "t")]
    if set(said) <= _COPULAS:
        return _kind_of_state(subject, target)
    if set(subject) & _MEDIA and set(said) & _HOLDING:
        # A number at the beginning counts the things; one later on is of something else.
        return "count" if target[:1] and _is_number(target[0]) else "object"
    if set(said) <= _COPULAS | _COUNTING and _is_alone(target):
        return "count"
    # "A dog appears in the picture" says that it is there, and relates it to nothing.
    if set(target) & _MEDIA and said[-1:] in (["in"], ["within"]) and set(said[:-1]) <= _AT:
        return "count" if subject[:1] and _is_number(subject[0]) else "object"
    return "relation"


_AT = _COPULAS | _PRESENT | {"appears", "appear"}


def _kind_of_state(subject: list[str], target: list[str]) -> ClaimKind:
    if _is_alone(target):
        return "count"
    if target and set(target) <= _PRESENT:
        return "count" if subject[:1] and _is_number(subject[0]) else "object"
    return "attribute"


def _is_number(word: str) -> bool:
    return word in _NUMBERS or word.isdigit()


def _is_alone(words: list[str]) -> bool:
    """Return whether words are a number, with nothing but a noun of counting around it."""
    left = [word for word in words if word not in ("in", "number", "exactly", "only", "of", "all")]
    return len(left) == 1 and (left[0] in _ALONE or left[0].isdigit())
