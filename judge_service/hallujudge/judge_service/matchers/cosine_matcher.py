"""The released NLI judge of Tri-HE, which compares claims with references by cosine.

Its rules for the wrong part of a triplet and its rounds also serve the small judges.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import partial
from typing import ClassVar

from msgspec import Struct, structs

# Loaded on use: servers of language models need no numpy.
from hallujudge.metrics.framework.arrays import FloatArray, np
from hallujudge.metrics.framework.claims import ClaimVerdict, Part, Triplet, Verdict

from ..threads import in_thread
from . import ClaimQuery, MatcherSettings, Vectors, VectorStore, claim_text, plain, verdict_by

MAX_CLAIM_CHARS = 8_000
"""Longer claims are unscored, because every model would truncate them."""


class RoundsMatcher(ABC):
    """What matchers share: claims that can't be compared, rounds, and the wrong parts.

    Args:
        settings: The thresholds and the rule for parts.
        store: Vectors by text.
    """

    name: str
    claims_per_round: ClassVar[int]
    """Claims that are compared together; between rounds a run can be cancelled."""
    is_short: ClassVar[bool]
    """Whether a round takes less than about a tenth of a second."""

    def __init__(self, settings: MatcherSettings, store: VectorStore) -> None:
        self._settings = settings
        self._store = store
        self._rule = PartRule(store, settings.keep_above) if settings.parts == "objects" else None

    async def judge(self, claims: Sequence[ClaimQuery]) -> list[ClaimVerdict]:
        """Return one verdict for each claim, in order.

        The work runs in a thread, in rounds.

        Args:
            claims: Claims of any number of images, which are encoded together.
        """
        verdicts: list[ClaimVerdict] = []
        for first in range(0, len(claims), self.claims_per_round):
            these = claims[first : first + self.claims_per_round]
            verdicts += await in_thread(partial(self.judge_now, these), short=self.is_short)
        return verdicts

    def judge_now(self, claims: Sequence[ClaimQuery]) -> list[ClaimVerdict]:
        """Return the same verdicts, computed in the calling thread."""
        known = [_unscored(claim, self.name) for claim in claims]
        left = [claim for claim, verdict in zip(claims, known, strict=True) if verdict is None]
        compared = iter(self._compared(left))
        verdicts = [verdict or next(compared) for verdict in known]
        return verdicts if self._rule is None else self._rule.with_parts(claims, verdicts)

    def _scored(
        self, query: ClaimQuery, score: float, above: float, chosen: Sequence[int], detail: str = ""
    ) -> ClaimVerdict:
        """Return the verdict by a score, with the references that the claim was compared with."""
        kept = tuple(query.references[index] for index in chosen) if query.references else ()
        more = {"references": kept, "span": query.span, "detail": detail}
        return verdict_by(query.claim, score, above, self.name, **more)

    @abstractmethod
    def _compared(self, queries: Sequence[ClaimQuery]) -> list[ClaimVerdict]:
        """Return one verdict for each claim that can be compared, in order."""


class CosineMatcher(RoundsMatcher):
    """Protocol ``published``: the released NLI judge of Tri-HE (section 3.3 of its paper).

    It does not test entailment. It compares a claim with concatenated references by the cosine of
    their vectors:

    1. References above ``keep_above`` are kept, in the order of the scene graph.
    2. The claim is compared with the concatenated kept references, if there are any, and with the
       concatenated ``top`` nearest references, the nearest first.
    3. The higher cosine is the score. The claim is supported if it is above ``support_above``.

    The script's quirks are kept:

    * References lose brackets and commas and get a full stop; claims do not.
    * Texts above the model's limit are truncated silently.
    * A duplicate reference of the scene graph counts twice.

    The script also embeds all references of the image as one text for every claim, and ignores the
    result. This class omits that step.

    The released judge does not name the wrong part of a claim, and the paper reports no such rates
    for it. :class:`PartRule` adds them.

    Args:
        settings: The thresholds and the rule for parts.
        store: Vectors by text.
        model: The model and its backend, for the signature.
    """

    # Seconds on a CPU.
    claims_per_round = 1024
    is_short = True

    def __init__(self, settings: MatcherSettings, store: VectorStore, model: str) -> None:
        super().__init__(settings, store)
        self.name = f"matcher:published/{model.partition('@')[0]}"
        self.label = "/".join(
            [
                f"published/{model}",
                f"keep>{settings.keep_above:g}",
                f"top{settings.top}",
                f"sup>{settings.support_above:g}",
                f"parts-{settings.parts}",
            ]
        )
        self._model = model

    @property
    def settings(self) -> Mapping[str, str]:
        """The model and thresholds."""
        return {
            "matcher_protocol": "published",
            "matcher_model": self._model,
            "matcher_keep_above": f"{self._settings.keep_above:g}",
            "matcher_top": str(self._settings.top),
            "matcher_support_above": f"{self._settings.support_above:g}",
            "matcher_parts": self._settings.parts,
        }

    def _compared(self, queries: Sequence[ClaimQuery]) -> list[ClaimVerdict]:
        retained = retained_of(queries, self._store, self._settings)
        candidates = [_texts(query, kept) for query, kept in zip(queries, retained, strict=True)]
        vectors = self._store.values(
            [text for texts in candidates for text, _ in texts]
            + [claim_text(query.claim) for query in queries]
        )
        verdicts = []
        for query, texts in zip(queries, candidates, strict=True):
            claim = vectors[claim_text(query.claim)].astype("float64")
            scored = [(float(vectors[text] @ claim), chosen) for text, chosen in texts]
            score, chosen = max(scored, key=lambda pair: pair[0])
            verdicts.append(self._scored(query, score, self._settings.support_above, chosen))
        return verdicts


class Retained(Struct, frozen=True, kw_only=True):
    """The reference triplets that a claim is compared with."""

    kept: tuple[int, ...]
    """The positions of those above the threshold, in the order of the scene graph."""
    top: tuple[int, ...]
    """The positions of the nearest ones, the nearest first."""


def retained_of(
    queries: Sequence[ClaimQuery], store: VectorStore, settings: MatcherSettings
) -> list[Retained]:
    """Return the references that each claim retains; all texts are encoded together."""
    # Keyed by identity: equal triplets may be written differently, and hashing graphs is slow.
    graphs = {id(query.references): query.references or () for query in queries}
    texts = {key: [reference_text(triplet) for triplet in graph] for key, graph in graphs.items()}
    vectors = store.values(
        [text for found in texts.values() for text in found]
        + [claim_text(query.claim) for query in queries]
    )
    rows = {
        key: np.stack([vectors[text] for text in found]).astype("float64")
        for key, found in texts.items()
    }
    return [
        retain(
            vectors[claim_text(query.claim)],
            rows[id(query.references)],
            above=settings.keep_above,
            top=settings.top,
        )
        for query in queries
    ]


def retain(claim: Vectors, references: FloatArray, *, above: float, top: int) -> Retained:
    """Return the references that a claim retains (Tri-HE paper, section 3.3, NLI judge).

    Args:
        claim: The claim's unit vector.
        references: The references' unit vectors, one per row.
        above: The cosine above which references are kept.
        top: How many of the nearest references are retained.
    """
    cosines = references @ claim.astype("float64")
    # A stable sort keeps the order of the scene graph among equal cosines.
    return Retained(
        kept=tuple(map(int, (cosines > above).nonzero()[0])),
        top=tuple(map(int, (-cosines).argsort(kind="stable")[:top])),
    )


def _texts(query: ClaimQuery, retained: Retained) -> list[tuple[str, tuple[int, ...]]]:
    """Return the texts that a claim is compared with, each with the positions of its references."""
    references = query.references or ()
    return [
        (" ".join(reference_text(references[index]) for index in chosen), chosen)
        for chosen in (retained.kept, retained.top)
        if chosen
    ]


def _unscored(query: ClaimQuery, judge: str) -> ClaimVerdict | None:
    """Return the verdict of a claim that cannot be compared, or None if it can."""
    text = claim_text(query.claim)
    if not query.references:
        known = "has no triplets" if query.references is not None else "is not known"
        reason, detail = "REFERENCE_MISSING", f"the scene graph of the image {known}"
    elif not text.strip():
        reason, detail = "CLAIM_EMPTY", "the claim has no text"
    elif len(text) > MAX_CLAIM_CHARS:
        reason = "CLAIM_TOO_LONG"
        detail = f"the claim has {len(text)} characters; at most {MAX_CLAIM_CHARS} are read"
    else:
        return None
    return without_verdict(query, judge, reason, detail)


def without_verdict(query: ClaimQuery, judge: str, reason: str, detail: str) -> ClaimVerdict:
    """Return a claim without a verdict, and why it has none."""
    return ClaimVerdict(
        triplet=query.claim,
        verdict=Verdict.UNSCORED,
        judge=judge,
        span=query.span,
        reason=reason,
        detail=detail,
    )


def known_objects(query: ClaimQuery) -> tuple[str, ...]:
    """Return the image's objects, from its object list and its triplets, without repeats."""
    ends = (end for triplet in query.references or () for end in (triplet[0], triplet[2]))
    return tuple(dict.fromkeys(_normal_name(name) for name in (*query.objects, *ends)))


class PartRule:
    """Names the wrong part of unsupported triplets, after section 3.1 of the Tri-HE paper.

    In the paper, a triplet with an object that is not in the image is an object hallucination,
    whatever its relation. A triplet whose objects are both in the image is a relation
    hallucination. Here an object is in the image if the scene graph or the object list has its
    name, ignoring case, or a name whose cosine with it is above the threshold for references (0.5
    in the paper). The wrong part is the first object that is not in the image, else the relation.

    Neither the paper nor its script has this rule: their NLI judge does not name parts. Sentences
    have no parts.

    Args:
        store: Vectors by text.
        above: The cosine above which two names mean the same object.
    """

    def __init__(self, store: VectorStore, above: float) -> None:
        self._store = store
        self._above = above

    def with_parts(
        self, queries: Sequence[ClaimQuery], verdicts: Sequence[ClaimVerdict]
    ) -> list[ClaimVerdict]:
        """Return the verdicts with the wrong part of each unsupported triplet.

        Args:
            queries: The claims.
            verdicts: One for each, in order.
        """
        wrong = [
            index
            for index, verdict in enumerate(verdicts)
            if verdict.verdict is Verdict.NOT_SUPPORTED and isinstance(verdict.triplet, Triplet)
        ]
        known = {index: known_objects(queries[index]) for index in wrong}
        vectors = self._store.values(
            name for index in wrong for name in self._names(verdicts[index], known[index])
        )
        completed = list(verdicts)
        for index in wrong:
            completed[index] = structs.replace(
                verdicts[index], part=self._part(verdicts[index], known[index], vectors)
            )
        return completed

    def _names(self, verdict: ClaimVerdict, known: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names whose vectors a triplet needs: none if both its objects are known."""
        unknown = tuple(name for name in _ends_of(verdict) if name not in known)
        return (*unknown, *known) if unknown else ()

    def _part(
        self, verdict: ClaimVerdict, known: tuple[str, ...], vectors: dict[str, Vectors]
    ) -> Part:
        for name, part in zip(_ends_of(verdict), (Part.SUBJECT, Part.OBJECT), strict=True):
            if name not in known and not self._near(name, known, vectors):
                return part
        return Part.RELATION

    def _near(self, name: str, known: tuple[str, ...], vectors: dict[str, Vectors]) -> bool:
        rows = np.stack([vectors[other] for other in known])
        return bool((rows @ vectors[name]).max() > self._above)


def _ends_of(verdict: ClaimVerdict) -> tuple[str, str]:
    return _normal_name(verdict.triplet[0]), _normal_name(verdict.triplet[-1])


def _normal_name(name: str) -> str:
    return plain(" ".join(name.casefold().split()))


# The released script strips the notation of a tuple from the text of a triplet.
_DROPPED = str.maketrans("", "", "(),")


def reference_text(reference: Triplet) -> str:
    """Return a reference as the released script compares it.

    The script takes the triplet as written in the file, drops every bracket and comma (inside parts
    too) and appends a full stop: ``(man, riding, horse)`` becomes ``man riding horse.``
    """
    return plain(reference.written.translate(_DROPPED) + ".")
