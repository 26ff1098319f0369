"""Items, the pictures that they are about, and their results: outcome, scores and evidence.

A result without scores has the reason why: one name for each reason, and one sentence in
``reasons.toml``.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping, Sequence
from functools import cache, cached_property
from hashlib import sha256
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, Protocol, TypeAlias, TypeVar

from msgspec import Struct


class ReasonWords(NamedTuple):
    """What messages say about a reason."""

    sentence: str
    """What happened."""
    next_step: str
    """What to do about it."""


class UnscoredReason(enum.StrEnum):
    """Why an item or a claim is unscored.

    The value is the name that results, reports and the wire carry. ``reasons.toml`` has the words,
    which only messages for people need.
    """

    # Responses ------------------------------------------------------------------------------------
    RESPONSE_MISSING = "RESPONSE_MISSING"
    RESPONSE_EMPTY = "RESPONSE_EMPTY"
    RESPONSE_FAILED = "RESPONSE_FAILED"
    RESPONSE_TOO_LONG = "RESPONSE_TOO_LONG"
    LANGUAGE_UNSUPPORTED = "LANGUAGE_UNSUPPORTED"
    # References -----------------------------------------------------------------------------------
    REFERENCE_MISSING = "REFERENCE_MISSING"
    REFERENCE_TOO_LONG = "REFERENCE_TOO_LONG"
    LABEL_INVALID = "LABEL_INVALID"
    PLACE_INVALID = "PLACE_INVALID"
    DISPLAY_MISSING = "DISPLAY_MISSING"
    DISPLAY_INVALID = "DISPLAY_INVALID"
    DOMAIN_UNKNOWN = "DOMAIN_UNKNOWN"
    # Questions under operators --------------------------------------------------------------------
    OPERATOR_UNKNOWN = "OPERATOR_UNKNOWN"
    BASE_MISSING = "BASE_MISSING"
    BASE_UNPARSED = "BASE_UNPARSED"
    CONFIDENCE_INVALID = "CONFIDENCE_INVALID"
    ANSWER_UNPARSED = "ANSWER_UNPARSED"
    THOUGHT_UNFINISHED = "THOUGHT_UNFINISHED"
    # Claims and keywords --------------------------------------------------------------------------
    CLAIMS_MISSING = "CLAIMS_MISSING"
    CLAIMS_INVALID = "CLAIMS_INVALID"
    CLAIM_EMPTY = "CLAIM_EMPTY"
    CLAIM_TOO_LONG = "CLAIM_TOO_LONG"
    CLAIM_NOT_VISIBLE = "CLAIM_NOT_VISIBLE"
    NO_CLAIMS = "NO_CLAIMS"
    NO_VERDICTS = "NO_VERDICTS"
    TOO_MANY_HEADINGS = "TOO_MANY_HEADINGS"
    COST_UNDEFINED = "COST_UNDEFINED"
    KEYWORDS_MISSING = "KEYWORDS_MISSING"
    KEYWORD_TOO_LONG = "KEYWORD_TOO_LONG"
    TOO_MANY_KEYWORDS = "TOO_MANY_KEYWORDS"
    EXTRACTION_FAILED = "EXTRACTION_FAILED"
    PROCESS_DIED = "PROCESS_DIED"
    # Verdicts -------------------------------------------------------------------------------------
    VERDICT_NULL = "VERDICT_NULL"
    NO_VERDICT = "NO_VERDICT"
    JUDGE_REFUSED = "JUDGE_REFUSED"
    REPLY_NOT_JSON = "REPLY_NOT_JSON"
    REPLY_WRONG_SCHEMA = "REPLY_WRONG_SCHEMA"
    REPLY_OUT_OF_CHOICE = "REPLY_OUT_OF_CHOICE"
    REPLY_TRUNCATED = "REPLY_TRUNCATED"
    REPLY_ONLY_THOUGHT = "REPLY_ONLY_THOUGHT"
    CHOICES_TIED = "CHOICES_TIED"
    CHOICES_UNLIKELY = "CHOICES_UNLIKELY"
    MARGIN_TOO_SMALL = "MARGIN_TOO_SMALL"
    PANEL_TIED = "PANEL_TIED"
    # Judges ---------------------------------------------------------------------------------------
    JUDGE_AUTH_FAILED = "JUDGE_AUTH_FAILED"
    JUDGE_MODEL_UNKNOWN = "JUDGE_MODEL_UNKNOWN"
    JUDGE_QUOTA_EXHAUSTED = "JUDGE_QUOTA_EXHAUSTED"
    JUDGE_RATE_LIMITED = "JUDGE_RATE_LIMITED"
    JUDGE_SERVER_ERROR = "JUDGE_SERVER_ERROR"
    JUDGE_UNREACHABLE = "JUDGE_UNREACHABLE"
    JUDGE_TIMEOUT = "JUDGE_TIMEOUT"
    JUDGE_NOT_THE_API = "JUDGE_NOT_THE_API"
    JUDGE_BAD_REPLY = "JUDGE_BAD_REPLY"
    PROMPT_TOO_LONG = "PROMPT_TOO_LONG"
    JUDGE_REQUEST_REFUSED = "JUDGE_REQUEST_REFUSED"
    JUDGE_CIRCUIT_OPEN = "JUDGE_CIRCUIT_OPEN"
    JUDGE_OTHER_MODEL = "JUDGE_OTHER_MODEL"
    JUDGE_NO_REPLY = "JUDGE_NO_REPLY"
    JUDGE_BUDGET_EXHAUSTED = "JUDGE_BUDGET_EXHAUSTED"

    @property
    def sentence(self) -> str:
        """What happened."""
        return _words()[self].sentence

    @property
    def next_step(self) -> str:
        """What to do about it."""
        return _words()[self].next_step


@cache
def _words() -> dict[str, ReasonWords]:
    # Every program has the reasons, and few print their words.
    import tomllib
    from importlib import resources

    text = resources.files(__package__).joinpath("reasons.toml").read_text("utf-8")
    return {name: ReasonWords(**words) for name, words in tomllib.loads(text).items()}


CanonicalRecord: TypeAlias = "bool | int | str | Sequence[CanonicalRecord] | None"
"""What a hash is made of: texts and whole numbers in one order, in lists and tuples alike."""


class ItemRecords(NamedTuple):
    """What the hashes of an item are made of."""

    question: CanonicalRecord
    """What the model was asked, in one order: question, choices; None if unknown."""
    reference: CanonicalRecord
    """What the response is compared with, in one order; None without a reference."""


# No cycle goes through an item, and a run has as many of them as the collector would look at.
class Item(Struct, frozen=True, kw_only=True, gc=False):
    """One scored thing."""

    id: str
    """Id of the item, unique within one run."""
    group_id: str = ""
    """Cluster for intervals: the image or video. Empty for the item's own id."""
    fields: Mapping[str, str] = {}
    """Values that results may be grouped by."""
    thought: str = ""
    """The model's thought, where it is known apart from the response; empty without one."""

    def records(self) -> ItemRecords:
        """Return what is hashed of the item. Neither its id nor the image or video is part of it.

        The reference is as read, before a graph normalises it, so that no setting changes it.
        """
        return ItemRecords(question=None, reference=None)


MEDIA_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""The types of pictures that every server takes."""


# The hash is computed once and kept beside the fields, so that no caller can state another one.
class Picture(Struct, frozen=True, kw_only=True, dict=True):
    """An encoded picture, or one frame of a video."""

    name: str = ""
    """Its file's name, for people; no verdict depends on it."""
    data: bytes
    """The encoded picture, as its file has it."""
    media_type: str
    """Its type, such as ``image/jpeg``."""
    width: int
    """Pixels."""
    height: int
    """Pixels."""

    @cached_property
    def sha256(self) -> str:
        """The hash of its bytes, which caches and evidence know it by."""
        return sha256(self.data).hexdigest()

    @property
    def problem(self) -> str:
        """Why it can't be shown, in words; empty if it can. Remote callers write its fields."""
        if self.media_type not in MEDIA_TYPES:
            return f"its type is {self.media_type!r:.40}; send {', '.join(MEDIA_TYPES)}"
        return "" if self.data and self.width and self.height else "it is empty"

    def __repr__(self) -> str:
        """Return its name and hash; its bytes would fill messages."""
        return f"Picture(name={self.name!r}, sha256={self.sha256!r}, {self.width}x{self.height})"


class ShownPicture(Struct, frozen=True, kw_only=True, gc=False):
    """What evidence keeps of a picture."""

    name: str
    """Its file's name."""
    sha256: str
    """The hash of its bytes."""


if TYPE_CHECKING:
    JsonValue: TypeAlias = (
        "bool | int | float | str | list[JsonValue] | dict[str, JsonValue] "
        "| tuple[JsonValue, ...] | None"
    )
else:
    # msgspec reads saved items by the types of their fields. It knows no union of such types.
    JsonValue: TypeAlias = Any


class Outcome(enum.Enum):
    """Whether an item was scored."""

    SCORED = "scored"
    """The item has statistics and counts in every score."""

    UNSCORED = "unscored"
    """The item has no statistics, and a reason says why. Unscored is not wrong."""


class Evidence(Protocol):
    """Evidence of an item's outcome; every family has its own fields."""

    def to_json(self) -> dict[str, JsonValue]:
        """Return the evidence as ``items.jsonl`` has it."""


_EvidenceT = TypeVar("_EvidenceT", covariant=True)


class ScoredItem(NamedTuple, Generic[_EvidenceT]):
    """Statistics and evidence of a scored item, which a pipeline takes apart at once."""

    statistics: tuple[float, ...]
    """One number for each column of the metric."""
    scores: Mapping[str, float | None]
    """The item's own scores; None if undefined."""
    evidence: _EvidenceT
    """What the scores are based on; None if the pipeline adds it later."""
    readable: bool = True
    """Whether the response could be parsed; otherwise the item is unscored."""


class ItemResult(Struct, frozen=True, kw_only=True, gc=False):
    """One item's outcome, statistics and evidence."""

    id: str
    """The item's id."""
    group_id: str
    """Cluster for intervals: the image or video."""
    outcome: Outcome
    """Whether the item is scored."""
    reason: str = ""
    """Why the item is unscored, such as ``RESPONSE_MISSING``."""
    detail: str = ""
    """Details of the reason."""
    statistics: tuple[float, ...] = ()
    """Statistics of the item, one number for each of the metric's columns."""
    scores: Mapping[str, float | None] = {}
    """The item's own scores; None if undefined."""
    evidence: Evidence | None = None
    """What the outcome is based on."""
    fields: Mapping[str, str] = {}
    """Values that results may be grouped by."""
    question_hash: str = ""
    """Hash of the item's question; empty if it is unknown."""
    reference_hash: str = ""
    """Hash of the item's reference; empty in a run that does not say."""
    traits: Mapping[str, int] = {}
    """What its responses have beside the answer, such as a thought: trait -> number."""
    kept: tuple[float, ...] = ()
    """Statistics of the whole response, thought included; empty where they were not computed."""
    thought: ItemResult | None = None
    """Result of the thought, as if it were the response; None unless thoughts are scored."""

    @property
    def left_out(self) -> bool:
        """Whether the variant leaves the item out, so that it counts in no number of items."""
        return not self.statistics and not self.reason

    def to_json(self) -> dict[str, JsonValue]:
        """Return the line of ``items.jsonl``."""
        line = self.head()
        line["scores"] = dict(self.scores)
        line["evidence"] = self.evidence.to_json() if self.evidence is not None else {}
        if self.traits:
            line["traits"] = dict(sorted(self.traits.items()))
        if self.kept:
            line["kept"] = list(self.kept)
        return line

    def head(self) -> dict[str, JsonValue]:
        """Return what a line begins with: all that differs between items of the same outcome."""
        line: dict[str, JsonValue] = {
            "id": self.id,
            "group_id": self.group_id,
            # The value without the function that enumerations look it up with.
            "outcome": self.outcome._value_,
        }
        if self.outcome is Outcome.UNSCORED:
            line["reason"] = self.reason
            line["detail"] = self.detail
        if self.fields:
            # Sorted, since protobuf maps have no order.
            line["fields"] = dict(sorted(self.fields.items()))
        if self.question_hash:
            line["question_hash"] = self.question_hash
        if self.reference_hash:
            line["reference_hash"] = self.reference_hash
        return line
