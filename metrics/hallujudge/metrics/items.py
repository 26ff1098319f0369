"""Items: what is scored, one shape for each protocol."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from .triplets import ClaimParts, Triplet

__all__ = [
    "ChairItem",
    "InfactItem",
    "InfactRun",
    "Item",
    "MementosItem",
    "PopeItem",
    "TriHeItem",
    "VidhalItem",
]


@dataclass(frozen=True, slots=True, kw_only=True)
class Item:
    """One scored thing."""

    id: str
    """Unique within one run."""
    group_id: str = ""
    """What intervals are resampled by: the image or the video. Empty: the id itself."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """Values that results may be grouped by."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChairItem(Item):
    """A caption and the objects that its image shows."""

    response: str | None
    """What the model wrote. None: it gave nothing, and the item is unscored."""
    reference_objects: tuple[str, ...] | None
    """Objects of the image. None: no reference is known. Empty: the image shows none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TriHeItem(Item):
    """An answer to a question about an image, and what the image's scene graph says."""

    question: str = ""
    """The question that was answered."""
    response: str | None = None
    """What the model wrote. None: only its claims are known."""
    claims: tuple[ClaimParts, ...] | None = None
    """Claims already taken from the response. None: the extractor takes them."""
    reference_triplets: tuple[Triplet, ...] | None = None
    """The image's scene graph. None: no reference is known."""
    reference_objects: tuple[str, ...] = ()
    """Objects of the image beside those that the triplets name."""
    human_scores: tuple[float, ...] = ()
    """What people scored the response, one number for each annotator; for agreement alone."""


@dataclass(frozen=True, slots=True, kw_only=True)
class PopeItem(Item):
    """A yes/no question about an image, its label and the answer."""

    response: str | None
    """What the model wrote. None: it gave nothing, and the item is unscored."""
    question: str = ""
    """The question that was asked."""
    label: str
    """The right answer: ``yes`` or ``no``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class VidhalItem(Item):
    """A choice or an order over the captions of one video."""

    response: str | None
    """What the model wrote: a letter, a caption, or letters in order. None: it gave nothing."""
    captions: tuple[str, ...] = ()
    """The captions by rank, the most faithful first."""
    display: Mapping[str, int] = field(default_factory=dict)
    """Letter shown to the model -> rank (1 is the most faithful) of the caption behind it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfactRun:
    """What a model answered under one operator."""

    response: str | None
    """What the model wrote. None: it gave nothing."""
    confidence: float | None = None
    """How sure it said it was, in [0, 1]; None where it was not asked."""


@dataclass(frozen=True, slots=True, kw_only=True)
class InfactItem(Item):
    """A question about a video, answered under the base condition and under induced ones."""

    label: str
    """The right answer: a letter, or the answer's text."""
    dimension: str = ""
    """``faithfulness`` or ``factuality``."""
    category: str = ""
    """Leaf of the taxonomy."""
    order_sensitive: bool = False
    """Whether the answer depends on the order of the frames."""
    options: Mapping[str, str] = field(default_factory=dict)
    """Choices: letter -> text. Empty: they are not known."""
    runs: Mapping[str, InfactRun] = field(default_factory=dict)
    """Operator -> run; the base condition is ``base``."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MementosItem(Item):
    """A description of an image sequence and the human one, as texts or as keywords."""

    response: str | None = None
    """What the model wrote. None: it gave nothing, or only its keywords are known."""
    reference: str | None = None
    """The human description."""
    domain: str = ""
    """The domain whose synonym graphs are used; empty: the general ones."""
    reference_objects: tuple[str, ...] | None = None
    """Objects of the human description. None: the extractor takes them."""
    predicted_objects: tuple[str, ...] | None = None
    """Objects of the model's description."""
    reference_behaviors: tuple[str, ...] | None = None
    """Behaviours of the human description."""
    predicted_behaviors: tuple[str, ...] | None = None
    """Behaviours of the model's description."""
    episode_length: int | None = None
    """Events in the sequence, where known; else the reference behaviours are counted."""
