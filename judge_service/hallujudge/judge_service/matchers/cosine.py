"""The released NLI judge: claims against references by the cosine of sentence vectors."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from hallujudge.metrics.framework.claims import ClaimVerdict, Verdict

from .parts import PartRule
from .texts import claim_text, reference_text
from .values import ClaimQuery, MatcherSettings
from .vectors import VectorStore

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from .values import Vectors

    Doubles = NDArray[np.float64]

__all__ = [
    "DIGITS",
    "MAX_CLAIM_CHARS",
    "CosineMatcher",
    "Retained",
    "retain",
    "retained_of",
    "unscored",
]

MAX_CLAIM_CHARS = 8_000
"""Longer claims are unscored: no model reads them whole."""

DIGITS = 6
"""Decimals of scores: beyond them the last bits of two machines may differ."""

_CLAIMS_PER_ROUND = 1024


@dataclass(frozen=True, slots=True, kw_only=True)
class Retained:
    """The reference triplets that a claim is compared with."""

    kept: tuple[int, ...]
    """Those above the threshold, in the order of the scene graph; empty where none is."""
    top: tuple[int, ...]
    """The nearest ones, nearest first."""


def retain(claim: Vectors, references: Doubles, *, above: float, top: int) -> Retained:
    """Which references a claim keeps (section 3.3, NLI judge).

    Args:
        claim: The claim's unit vector.
        references: The references' unit vectors, one a row.
        above: The cosine that kept ones exceed.
        top: How many of the nearest are taken.
    """
    import numpy as np

    cosines = references @ claim.astype(np.float64)
    return Retained(
        kept=tuple(map(int, np.flatnonzero(cosines > above))),
        top=tuple(map(int, np.argsort(-cosines, kind="stable")[:top])),
    )


def unscored(query: ClaimQuery, judge: str) -> ClaimVerdict | None:
    """The verdict of a claim that can't be compared with anything; None of one that can."""
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
    return ClaimVerdict(
        triplet=query.claim,
        verdict=Verdict.UNSCORED,
        judge=judge,
        span=query.span,
        reason=reason,
        detail=detail,
    )


class CosineMatcher:
    """Protocol ``published``: what Tri-HE's released NLI judge does (section 3.3 of its paper).

    It is no entailment: a claim is compared with texts put together from the references, by the
    cosine of their vectors.

    1. References above ``keep_above`` are kept, in the order of the scene graph.
    2. The claim is compared with their texts put together, and with those of the ``top`` nearest
       ones, nearest first. Where none is kept, only with the latter.
    3. The higher cosine is the score; the claim is supported above ``support_above``.

    As released: brackets and commas are dropped from references and a full stop is added, neither
    of which happens to claims; a text longer than the model reads is cut without a word; a
    reference that stands twice in the scene graph counts twice. The script also embeds all
    references of the image as one text for every claim and never uses the result; here it is not
    made.

    The released matcher does not say which part of a claim is wrong, and the paper reports no such
    rates for it. :class:`PartRule` adds them.

    Args:
        settings: Thresholds and the rule for parts.
        store: Vectors by text.
        model: The model and what runs it, for the signature.
    """

    def __init__(self, settings: MatcherSettings, store: VectorStore, model: str) -> None:
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
        self._settings = settings
        self._store = store
        self._model = model
        self._rule = PartRule(store, settings.keep_above) if settings.parts == "objects" else None

    @property
    def settings(self) -> Mapping[str, str]:
        """Model and thresholds."""
        return {
            "matcher_protocol": "published",
            "matcher_model": self._model,
            "matcher_keep_above": f"{self._settings.keep_above:g}",
            "matcher_top": str(self._settings.top),
            "matcher_support_above": f"{self._settings.support_above:g}",
            "matcher_parts": self._settings.parts,
        }

    async def judge(self, claims: Sequence[ClaimQuery]) -> list[ClaimVerdict]:
        """One verdict for each claim, in order; made in a thread, in rounds that can be called off.

        Args:
            claims: Claims of any number of images. Those of a call are embedded together.
        """
        verdicts: list[ClaimVerdict] = []
        for at in range(0, len(claims), _CLAIMS_PER_ROUND):
            part = claims[at : at + _CLAIMS_PER_ROUND]
            verdicts += await asyncio.to_thread(self.judge_now, part)
        return verdicts

    def judge_now(self, claims: Sequence[ClaimQuery]) -> list[ClaimVerdict]:
        """The same in the calling thread, all at once."""
        out: list[ClaimVerdict | None] = [unscored(claim, self.name) for claim in claims]
        open_ones = [index for index, verdict in enumerate(out) if verdict is None]
        for index, verdict in zip(
            open_ones, self._compared([claims[index] for index in open_ones]), strict=True
        ):
            out[index] = verdict
        if self._rule is not None:
            out = list(self._rule.told(claims, [verdict for verdict in out if verdict]))
        return [verdict for verdict in out if verdict]

    def _compared(self, queries: Sequence[ClaimQuery]) -> list[ClaimVerdict]:
        import numpy as np

        retained = retained_of(queries, self._store, self._settings)
        candidates = [_texts(query, kept) for query, kept in zip(queries, retained, strict=True)]
        vectors = self._store.vectors(
            [text for texts in candidates for text, _ in texts]
            + [claim_text(query.claim) for query in queries]
        )
        verdicts = []
        for query, texts in zip(queries, candidates, strict=True):
            claim = vectors[claim_text(query.claim)].astype(np.float64)
            scored = [(float(vectors[text] @ claim), chosen) for text, chosen in texts]
            score, chosen = max(scored, key=lambda pair: pair[0])
            verdicts.append(self._verdict(query, score, chosen))
        return verdicts

    def _verdict(self, query: ClaimQuery, score: float, chosen: Sequence[int]) -> ClaimVerdict:
        references = query.references or ()
        supported = score > self._settings.support_above
        return ClaimVerdict(
            triplet=query.claim,
            verdict=Verdict.SUPPORTED if supported else Verdict.NOT_SUPPORTED,
            score=round(score, DIGITS),
            margin=round(score - self._settings.support_above, DIGITS),
            judge=self.name,
            references=tuple(references[index] for index in chosen),
            span=query.span,
        )


def retained_of(
    queries: Sequence[ClaimQuery], store: VectorStore, settings: MatcherSettings
) -> list[Retained]:
    """What each claim keeps of its references; all texts are embedded together."""
    # By identity: equal triplets may be written differently, and hashing graphs costs more.
    graphs = {id(query.references): query.references or () for query in queries}
    texts = {key: [reference_text(triplet) for triplet in graph] for key, graph in graphs.items()}
    vectors = store.vectors(
        [text for found in texts.values() for text in found]
        + [claim_text(query.claim) for query in queries]
    )
    rows = {key: _stacked([vectors[text] for text in found]) for key, found in texts.items()}
    return [
        retain(
            vectors[claim_text(query.claim)],
            rows[id(query.references)],
            above=settings.keep_above,
            top=settings.top,
        )
        for query in queries
    ]


def _stacked(vectors: Sequence[Vectors]) -> Doubles:
    import numpy as np

    return np.stack(vectors).astype(np.float64)


def _texts(query: ClaimQuery, retained: Retained) -> list[tuple[str, tuple[int, ...]]]:
    """The texts that a claim is compared with, and the references each is made of."""
    references = query.references or ()
    return [
        (" ".join(reference_text(references[index]) for index in chosen), chosen)
        for chosen in (retained.kept, retained.top)
        if chosen
    ]
