"""Which part of an unsupported triplet is wrong, by a rule of ours."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hallujudge.metrics.framework.claims import ClaimVerdict, Part, Verdict
from hallujudge.metrics.framework.triplets import Triplet

from .texts import plain
from .values import ClaimQuery
from .vectors import VectorStore

if TYPE_CHECKING:
    from .values import Vectors

__all__ = ["PartRule", "known_objects"]


def known_objects(query: ClaimQuery) -> tuple[str, ...]:
    """Objects of the image: those listed, and both ends of its triplets; without repeats."""
    ends = (end for triplet in query.references or () for end in (triplet[0], triplet[2]))
    return tuple(dict.fromkeys(_normal(name) for name in (*query.objects, *ends)))


class PartRule:
    """Tells apart what the matcher found unsupported, after section 3.1 of the Tri-HE paper.

    There, a triplet with an object that is not in the image is an object hallucination, whatever
    its relation is; one with both objects in the image is a relation hallucination. An object
    counts as being in the image when it is named in the scene graph or the object list, letter case
    aside, or when its cosine with one of those names is above the threshold that retains references
    (0.5 in the paper). So the first missing object is the part, else the relation.

    This is ours: neither the paper nor its script tells parts with the NLI judge. A sentence has no
    parts, and gets none.

    Args:
        store: Vectors by text.
        above: The cosine above which two names mean the same object.
    """

    def __init__(self, store: VectorStore, above: float) -> None:
        self._store = store
        self._above = above

    def told(
        self, queries: Sequence[ClaimQuery], verdicts: Sequence[ClaimVerdict]
    ) -> list[ClaimVerdict]:
        """The verdicts, with the part of each unsupported triplet.

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
        vectors = self._store.vectors(
            name for index in wrong for name in self._asked(verdicts[index], known[index])
        )
        told = list(verdicts)
        for index in wrong:
            told[index] = replace(
                verdicts[index], part=self._part(verdicts[index], known[index], vectors)
            )
        return told

    def _asked(self, verdict: ClaimVerdict, known: tuple[str, ...]) -> tuple[str, ...]:
        strange = tuple(name for name in _ends(verdict) if name not in known)
        return (*strange, *known) if strange else ()

    def _part(
        self, verdict: ClaimVerdict, known: tuple[str, ...], vectors: dict[str, Vectors]
    ) -> Part:
        for name, part in zip(_ends(verdict), (Part.SUBJECT, Part.OBJECT), strict=True):
            if name not in known and not self._near(name, known, vectors):
                return part
        return Part.RELATION

    def _near(self, name: str, known: tuple[str, ...], vectors: dict[str, Vectors]) -> bool:
        import numpy as np

        rows = np.stack([vectors[other] for other in known])
        return bool((rows @ vectors[name]).max() > self._above)


def _ends(verdict: ClaimVerdict) -> tuple[str, str]:
    return _normal(verdict.triplet[0]), _normal(verdict.triplet[-1])


def _normal(name: str) -> str:
    return plain(" ".join(name.casefold().split()))
