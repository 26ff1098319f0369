"""What matchers take and give, and how they are set up."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol, TypeAlias

from hallujudge.metrics.framework.claims import ClaimVerdict
from hallujudge.metrics.framework.triplets import ClaimParts, Triplet

from ..errors import InvalidInputError, Violation

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors: TypeAlias = NDArray[np.float32]

__all__ = [
    "BACKENDS",
    "PROTOCOLS",
    "ClaimMatcher",
    "ClaimQuery",
    "Encoder",
    "EntailmentModel",
    "MatcherSettings",
]

PROTOCOLS = ("published", "nli")
"""How claims are compared with references."""

BACKENDS = ("auto", "onnx", "torch")
"""What runs the sentence encoder; ``auto`` takes onnxruntime where it can."""

PART_RULES = ("objects", "none")
"""Whether unsupported claims are told apart by their wrong part."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ClaimQuery:
    """A claim and what it is held against."""

    claim: ClaimParts
    """The triplet or sentence."""
    references: tuple[Triplet, ...] | None
    """The image's scene graph, in its order. None: no reference is known."""
    objects: tuple[str, ...] = ()
    """Objects of the image beside those that the triplets name."""
    span: tuple[int, int] | None = None
    """Where the claim stands in the response; handed on to the verdict."""


class Encoder(Protocol):
    """Texts -> unit vectors. A text's vector does not depend on the texts beside it."""

    @property
    def label(self) -> str:
        """What runs the model, and how precisely, such as ``onnx-fp32``."""
        ...

    @property
    def size(self) -> int:
        """Numbers in a vector."""
        ...

    def encode(self, texts: Sequence[str]) -> Vectors:
        """One row for each text, in order."""
        ...


class EntailmentModel(Protocol):
    """A cross-encoder: how probable is it that a premise entails a hypothesis."""

    @property
    def label(self) -> str:
        """The model as signatures show it."""
        ...

    @property
    def room(self) -> int:
        """Tokens that premise and hypothesis may have together."""
        ...

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Tokens of each text."""
        ...

    def entailment(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Probability that each premise entails its hypothesis."""
        ...


class ClaimMatcher(Protocol):
    """A judge that compares claims with references by a model that runs here."""

    @property
    def name(self) -> str:
        """The name that verdicts carry."""
        ...

    @property
    def label(self) -> str:
        """Protocol, model, precision and thresholds, for the signature."""
        ...

    @property
    def settings(self) -> Mapping[str, str]:
        """The same in full, for the report."""
        ...

    async def judge(self, claims: Sequence[ClaimQuery]) -> list[ClaimVerdict]:
        """One verdict for each claim, in order. What can't be judged is unscored."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class MatcherSettings:
    """How a matcher is made. All but the paths stand in the signature."""

    protocol: str = "published"
    """``published`` or ``nli``."""
    model: str = "minilm"
    """The sentence encoder: ``minilm``, ``mpnet``, a model id or a folder."""
    nli_model: str = ""
    """The entailment cross-encoder of ``nli``: a model id or a folder."""
    backend: str = "auto"
    """``onnx``, ``torch`` or ``auto``."""
    device: str = "cpu"
    """Where torch runs, such as ``cuda``; onnxruntime runs on the processor."""
    keep_above: float = 0.5
    """Reference triplets whose cosine with the claim is above it are kept (section 3.3)."""
    top: int = 3
    """How many of the nearest are taken where none is, and beside those that are."""
    support_above: float = 0.6
    """``published``: a claim is supported where its cosine is above it (section 3.3)."""
    entail_above: float = 0.5
    """``nli``: a claim is supported where its entailment probability is above it."""
    parts: str = "objects"
    """``objects``: unsupported claims are told apart by their wrong part; ``none``: not."""
    threads: int = 0
    """Threads of onnxruntime; 0 leaves it to it. No result depends on it."""
    cached_vectors: int = 20_000
    """Vectors kept from call to call."""
    cache_folder: Path | None = None
    """Where written ONNX graphs are kept. None: ``.cache/hallujudge/onnx`` of the user's home."""
    allow_download: bool = False
    """Whether a model that is not on this machine may be fetched from its hub."""

    def __post_init__(self) -> None:
        if violations := tuple(self._violations()):
            raise InvalidInputError(
                "; ".join(violation.description for violation in violations), violations=violations
            )

    def _violations(self) -> list[Violation]:
        choices = {"protocol": PROTOCOLS, "backend": BACKENDS, "parts": PART_RULES}
        found = [
            (name, f"{name} is {getattr(self, name)!r}; choose one of {', '.join(known)}")
            for name, known in choices.items()
            if getattr(self, name) not in known
        ]
        found += [
            (name, f"{name} is {getattr(self, name)}; give a number from {low} to 1")
            for name, low in (("keep_above", -1), ("support_above", -1), ("entail_above", 0))
            if not low <= getattr(self, name) <= 1
        ]
        found += [
            (name, f"{name} is {getattr(self, name)}; give a whole number from {low} to {high}")
            for name, low, high in (("top", 1, 1000), ("threads", 0, 1024))
            if not low <= getattr(self, name) <= high
        ]
        if self.cached_vectors < 0:
            found.append(
                ("cached_vectors", f"cached_vectors is {self.cached_vectors}; give 0 or more")
            )
        if self.protocol == "nli" and not self.nli_model:
            found.append(
                ("nli_model", "protocol nli needs nli_model: the id or folder of a cross-encoder")
            )
        return [Violation(field=name, description=text) for name, text in found]
