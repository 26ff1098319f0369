"""The rule that finds the wrong part of an unsupported triplet."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

from hallujudge.metrics.framework.claims import ClaimVerdict, Part, Triplet, Verdict

from .texts import plain
from .values import ClaimQuery
from .vectors import VectorStore

if TYPE_CHECKING:
    from .values import Vectors

__all__ = ["PartRule", "known_objects"]


def known_objects(query: ClaimQuery) -> tuple[str, ...]:
    """Return the image's objects, from its object list and its triplets, without repeats."""
    ends = (end for triplet in query.references or () for end in (triplet[0], triplet[2]))
    return tuple(dict.fromkeys(_normal(name) for name in (*query.objects, *ends)))


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
        vectors = self._store.vectors(
            name for index in wrong for name in self._names(verdicts[index], known[index])
        )
        completed = list(verdicts)
        for index in wrong:
            completed[index] = replace(
                verdicts[index], part=self._part(verdicts[index], known[index], vectors)
            )
        return completed

    def _names(self, verdict: ClaimVerdict, known: tuple[str, ...]) -> tuple[str, ...]:
        """Return the names whose vectors a triplet needs: none if both its objects are known."""
        unknown = tuple(name for name in _ends(verdict) if name not in known)
        return (*unknown, *known) if unknown else ()

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
