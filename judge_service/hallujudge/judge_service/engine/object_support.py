"""How well references support the objects of a caption, by words, meaning and context."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from hallujudge.metrics.open_objects import RECALLED_FROM, ComparedObject

from ..extractors.caption_objects import CaptionObject, CaptionSentence, numbers_of, read_caption

if TYPE_CHECKING:
    from collections.abc import Iterable

    import numpy as np
    from numpy.typing import NDArray

VectorsOf: TypeAlias = "Callable[[Iterable[str]], Mapping[str, NDArray[np.float32]]]"
"""Returns a unit vector for each text."""
RootOf: TypeAlias = "Callable[[str], str | None]"
"""Returns the root of a name in a synonym graph; None if the graph does not know it."""

# Two words for persons, such as "skier" and "man", may name the same one.
_PERSONS = 0.9


class Reference(NamedTuple):
    """What is known of an image."""

    objects: tuple[CaptionObject, ...]
    """Objects that it shows: given ones, and those of its captions, each name once."""
    captions: tuple[str, ...]
    """Its captions."""
    numbers: frozenset[int]
    """Numbers that its captions state."""


def reference_of(captions: Sequence[str], names: Sequence[str]) -> Reference:
    """Return a reference of captions, and of further names of objects."""
    found = [o for text in captions for sentence in read_caption(text) for o in sentence.objects]
    given = [
        CaptionObject(name, name.rpartition(" ")[2], False, 0, 0, 0, ())
        for name in map(str.lower, names)
    ]
    named = {each.name: each for each in (*found, *given)}
    numbers = frozenset[int]().union(*map(numbers_of, captions))
    return Reference(tuple(named.values()), tuple(captions), numbers)


def texts_of(sentences: Sequence[CaptionSentence], reference: Reference) -> set[str]:
    """Return all texts whose vectors :func:`supports` needs."""
    objects = (o for sentence in sentences for o in sentence.objects)
    texts = {text for o in (*objects, *reference.objects) for text in (o.name, o.head)}
    if reference.captions:
        texts.update(map(normal, reference.captions))
        for sentence in sentences:
            texts.add(normal(sentence.text))
            texts.update(normal(t) for o in sentence.objects for t in _shortened(sentence, o))
    return texts


def normal(text: str) -> str:
    """Return a text in lower case without a full stop, as short captions are compared."""
    return " ".join(text.lower().split()).rstrip(" .")


def compared(
    sentences: Sequence[CaptionSentence],
    reference: Reference,
    vectors: Mapping[str, NDArray[np.float32]],
    root_of: RootOf,
) -> tuple[list[ComparedObject], dict[str, bool]]:
    """Return the objects of a caption, and for each reference object whether it is named.

    Args:
        sentences: The caption.
        reference: What it is compared with.
        vectors: The vectors of :func:`texts_of`.
        root_of: The synonym graph.
    """
    # A caption that names an object twice means the same one.
    named = list({o.name: o for sentence in sentences for o in sentence.objects}.values())
    alike = [
        [_similarity(o, other, vectors, root_of) for other in reference.objects] for o in named
    ]
    partners = {
        o.name: ("", 0.0) if at is None else (reference.objects[at].name, row[at])
        for o, row, at in zip(named, alike, assign(alike), strict=True)
    }
    found = [
        ComparedObject(
            object=o.name,
            start=o.start,
            end=o.end,
            reference=partners[o.name][0],
            similarity=partners[o.name][1],
            closeness=near,
            gain=gain,
            uncounted=bool(o.number and reference.captions and o.number not in reference.numbers),
        )
        for sentence in sentences
        for o, (near, gain) in zip(
            sentence.objects, _contexts(sentence, reference, vectors), strict=True
        )
    ]
    best = [max((row[at] for row in alike), default=0.0) for at in range(len(reference.objects))]
    names = (other.name for other in reference.objects)
    return found, {n: b >= RECALLED_FROM for n, b in zip(names, best, strict=True)}


def _similarity(
    one: CaptionObject,
    other: CaptionObject,
    vectors: Mapping[str, NDArray[np.float32]],
    root_of: RootOf,
) -> float:
    root = root_of(one.name) or root_of(one.head)
    same = root is not None and root == (root_of(other.name) or root_of(other.head))
    if same or one.head == other.head:
        return 1.0
    cosine = max(
        float(vectors[one.name] @ vectors[other.name]),
        float(vectors[one.head] @ vectors[other.head]),
    )
    return max(cosine, _PERSONS) if one.person and other.person else min(cosine, 1.0)


def _contexts(
    sentence: CaptionSentence,
    reference: Reference,
    vectors: Mapping[str, NDArray[np.float32]],
) -> list[tuple[float, float]]:
    """Return for each object how close its sentence is to the captions, and the gain."""
    import numpy as np

    if not reference.captions:
        return [(1.0, 0.0)] * len(sentence.objects)
    mean = np.mean([vectors[normal(text)] for text in reference.captions], axis=0)
    mean /= np.linalg.norm(mean)
    near = float(mean @ vectors[normal(sentence.text)])
    return [
        (
            near,
            max(
                (float(mean @ vectors[normal(t)]) - near for t in _shortened(sentence, o)),
                default=0.0,
            ),
        )
        for o in sentence.objects
    ]


def _shortened(sentence: CaptionSentence, o: CaptionObject) -> list[str]:
    """Return the sentence without each of the words about an object."""
    return [sentence.without(place) for place in o.words]


def assign(values: Sequence[Sequence[float]]) -> list[int | None]:
    """Return the column of each row in the one-to-one assignment with the largest sum.

    Kuhn's Hungarian algorithm with potentials, in O(rows² · columns), as in
    ``scipy.optimize.linear_sum_assignment``: docs/decisions/open-objects.md says why not scipy's.

    Args:
        values: Rows of equal length. Rows that are left over when columns run out have None.
    """
    rows, columns = len(values), len(values[0]) if values else 0
    if rows > columns:
        flipped = assign([list(column) for column in zip(*values, strict=True)])
        by_row = {row: column for column, row in enumerate(flipped)}
        return [by_row.get(row) for row in range(rows)]
    row_of = [-1] * (columns + 1)  # the last column is a place for the row to be assigned
    of_row, of_column = [0.0] * rows, [0.0] * (columns + 1)
    for row in range(rows):
        _add(row, values, row_of, of_row, of_column)
    found: list[int | None] = [None] * rows
    for column, row in enumerate(row_of[:columns]):
        if row >= 0:
            found[row] = column
    return found


def _add(
    row: int,
    values: Sequence[Sequence[float]],
    row_of: list[int],
    of_row: list[float],
    of_column: list[float],
) -> None:
    """Assign one more row along the shortest augmenting path."""
    columns = len(row_of) - 1
    row_of[columns], current = row, columns
    least, before = [float("inf")] * columns, [columns] * columns
    used = [False] * (columns + 1)
    while row_of[current] >= 0:
        used[current] = True
        at = row_of[current]
        for column in range(columns):
            if not used[column]:
                cost = -values[at][column] - of_row[at] - of_column[column]
                if cost < least[column]:
                    least[column], before[column] = cost, current
        after = min((c for c in range(columns) if not used[c]), key=least.__getitem__)
        step = least[after]
        for column in range(columns + 1):
            if used[column]:
                of_row[row_of[column]] += step
                of_column[column] -= step
            elif column < columns:
                least[column] -= step
        current = after
    while current != columns:
        row_of[current] = row_of[before[current]]
        current = before[current]
    row_of[columns] = -1
