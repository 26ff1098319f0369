"""Claims of our own making with known labels: a small grammar of rooms, drawn by a seed."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass

from hallujudge.judge_service.judges import JudgeRequestItem
from hallujudge.metrics.framework.claims import Triplet

CLAIMS_PER_SCENE = 20

_THINGS = [
    "armchair", "backpack", "basket", "bench", "bicycle", "blanket", "book", "bottle", "bowl",
    "box", "bucket", "cabinet", "camera", "candle", "cat", "clock", "coat", "couch", "cup",
    "curtain", "desk", "dog", "drawer", "fan", "flag", "flower", "fork", "guitar", "hammer",
    "hat", "helmet", "jacket", "kettle", "keyboard", "ladder", "lamp", "laptop", "map",
    "mirror", "mug", "notebook", "painting", "pan", "pillow", "plant", "plate", "printer",
    "radio", "rug", "scarf", "shelf", "shoe", "sofa", "spoon", "statue", "stool", "suitcase",
    "table", "teapot", "telephone", "towel", "toy", "tray", "umbrella", "vase", "wallet",
    "window",
]  # fmt: skip
# Values of one kind exclude each other.
_VALUES = (
    ("red", "blue", "green", "yellow", "black", "white"),
    ("wooden", "metallic", "plastic", "woollen"),
    ("clean", "dirty"),
    ("open", "closed"),
    ("large", "small"),
)
# A relation, and the same said from the other side. Nothing has both to the same thing.
_RELATIONS = (
    ("to the left of", "to the right of"),
    ("in front of", "behind"),
    ("above", "below"),
    ("on top of", "underneath"),
    ("inside", "around"),
)


@dataclass(frozen=True, slots=True)
class KnownClaim:
    """A claim and what is known about it."""

    claim: Triplet
    """The claim."""
    kind: str
    """How it was made."""
    supported: bool
    """Whether the scene supports it."""


@dataclass(frozen=True, slots=True)
class Scene:
    """A scene graph with claims about it."""

    item: JudgeRequestItem
    """What a judge receives."""
    known: tuple[KnownClaim, ...]
    """The claims, in the same order."""


def scenes(seed: int | str) -> Iterator[Scene]:
    """Yield scenes without end, the same ones for a seed.

    Half of the claims are supported: stated in the graph, or stated from the other side
    (``inverse``). The others name another value, the opposite relation, the two things exchanged,
    or a thing that is not there.
    """
    number = 0
    while True:
        yield _scene(random.Random(f"{seed}/{number}"), f"{seed}/{number}")
        number += 1


def _scene(draw: random.Random, name: str) -> Scene:
    things = draw.sample(_THINGS, 16)
    present, absent = things[:8], things[8:]
    values = [(thing, draw.choice(_VALUES)) for thing in present]
    stated = [(thing, draw.choice(kind), kind) for thing, kind in values]
    # Each pair has one relation, so that its opposite is known to be wrong.
    pairs = [(present[k], present[(k + 1) % 8]) for k in range(8)]
    related = [(a, draw.choice(_RELATIONS), b) for a, b in pairs]
    graph = [Triplet(thing, "is", value) for thing, value, _ in stated]
    graph += [Triplet(a, both[0], b) for a, both, b in related]
    known = [KnownClaim(claim, "stated", True) for claim in draw.sample(graph, 7)]
    known += [
        KnownClaim(Triplet(b, both[1], a), "inverse", True)
        for a, both, b in draw.sample(related, 3)
    ]
    for thing, value, kind in draw.sample(stated, 3):
        wrong = draw.choice([one for one in kind if one != value])
        known.append(KnownClaim(Triplet(thing, "is", wrong), "value", False))
    for a, both, b in draw.sample(related, 2):
        known.append(KnownClaim(Triplet(a, both[1], b), "opposite", False))
    for a, both, b in draw.sample(related, 2):
        known.append(KnownClaim(Triplet(b, both[0], a), "exchanged", False))
    for thing in absent[:3]:
        claim = Triplet(thing, draw.choice(_RELATIONS)[0], draw.choice(present))
        known.append(KnownClaim(claim, "absent", False))
    draw.shuffle(known)
    draw.shuffle(graph)
    item = JudgeRequestItem(
        id=name,
        claims=tuple(one.claim for one in known),
        reference_triplets=tuple(graph),
        reference_objects=tuple(present),
    )
    return Scene(item, tuple(known))
