"""Pictures of coloured shapes, and a vision server that knows what each of them shows."""

from __future__ import annotations

import hashlib
import json
import random
import struct
import zlib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from support import scripted_llm as llm

__all__ = ["COLOURS", "SHAPES", "Scene", "Seer", "drawn_scenes", "said_of"]

COLOURS = {"red": (220, 30, 30), "green": (30, 160, 60), "blue": (40, 60, 220), "black": (0, 0, 0)}
SHAPES = ("ball", "box", "tent")
_PLURALS = {"ball": "balls", "box": "boxes", "tent": "tents"}
_SINGULARS = {many: one for one, many in _PLURALS.items()}
_CELL = 32


@dataclass(frozen=True)
class Scene:
    """What a picture shows: things from the top to the bottom, each with a colour and a number."""

    shapes: tuple[tuple[str, str, int], ...]
    """Thing, colour, and how many of it stand in its row."""

    def png(self) -> bytes:
        """Return the picture: a row for each thing, with its copies beside each other."""
        columns = max(number for _, _, number in self.shapes)
        pixels = np.full((len(self.shapes) * _CELL, columns * _CELL, 3), 255, np.uint8)
        for row, (shape, colour, number) in enumerate(self.shapes):
            for column in range(number):
                cell = pixels[row * _CELL :, column * _CELL :][:_CELL, :_CELL]
                cell[_mask(shape)] = COLOURS[colour]
        return _encoded(pixels)

    def holds(self, claim: Sequence[str]) -> bool | None:
        """Return whether a claim is right; None if it can't be seen."""
        subject, relation, target = claim
        known = {each[0]: (place, each) for place, each in enumerate(self.shapes)}
        one = known.get(_SINGULARS.get(subject, subject))
        if relation == "is":
            if target == "present":
                return one is not None
            if target in COLOURS:
                return one is not None and one[1][1] == target
            if target.isdigit():
                return one is not None and str(one[1][2]) == target
            return None
        other = known.get(target)
        return one is not None and other is not None and (one[0] < other[0])


def _mask(shape: str) -> Any:
    y, x = np.mgrid[:_CELL, :_CELL] - _CELL // 2
    if shape == "ball":
        return x**2 + y**2 < 12**2
    if shape == "box":
        return (abs(x) < 11) & (abs(y) < 11)
    return (y < 11) & (abs(x) < (y + 12) / 2)


def _encoded(pixels: Any) -> bytes:
    height, width, _ = pixels.shape
    head = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    rows = b"".join(b"\0" + row.tobytes() for row in pixels)
    parts = ((b"IHDR", head), (b"IDAT", zlib.compress(rows)), (b"IEND", b""))
    return b"\x89PNG\r\n\x1a\n" + b"".join(
        struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))
        for kind, data in parts
    )


def drawn_scenes(count: int, seed: int = 0) -> list[Scene]:
    """Return different scenes of two shapes each."""
    rng, found = random.Random(seed), dict[Scene, None]()
    while len(found) < count:
        pair = rng.sample(SHAPES, 2)
        found[
            Scene(tuple((each, rng.choice([*COLOURS]), rng.randrange(2, 9)) for each in pair))
        ] = None
    return list(found)


def said_of(scene: Scene, rng: random.Random) -> tuple[str, list[tuple[list[str], bool | None]]]:
    """Return a response about a scene, and its claims as rules find them, each true or not.

    Args:
        scene: The scene.
        rng: Decides which claims are wrong.
    """
    (first, colour, _), (second, _, number) = scene.shapes
    absent = next(each for each in SHAPES if each not in (first, second))
    another = rng.choice([each for each in COLOURS if each != colour])
    said, claims = [], list[tuple[list[str], bool | None]]()
    right = rng.random() < 0.7
    said.append(f"The {first} is {colour if right else another}.")
    claims.append(([first, "is", colour if right else another], right))
    right = rng.random() < 0.8
    said.append(f"There is a {second if right else absent}.")
    claims.append(([second if right else absent, "is", "present"], right))
    right = rng.random() < 0.6
    one, other = (first, second) if right else (second, first)
    said.append(f"The {one} is above the {other}.")
    claims.append(([one, "above", other], right))
    if rng.random() < 0.5:
        right = rng.random() < 0.5
        told, many = number if right else number + 1, _PLURALS[second]
        said.append(f"There are {told} {many}.")
        claims += [([many, "is", str(told)], right), ([many, "is", "present"], True)]
    if rng.random() < 0.3:
        said.append(f"The {first} is fragrant.")
        claims.append(([first, "is", "fragrant"], None))
    return " ".join(said), claims


_WORDS = {True: "supported", False: "not_supported", None: "cannot_be_seen"}


class Seer:
    """Replies as a vision model that knows some pictures by their bytes.

    Args:
        scenes: Bytes of a picture -> what it shows.
    """

    def __init__(self, scenes: Mapping[bytes, Scene]) -> None:
        self._scenes = {hashlib.sha256(data).hexdigest(): s for data, s in scenes.items()}
        self.seen: list[str] = []
        """The hash of the picture of each call."""

    def step(self, _number: int, body: llm.Body) -> llm.Reply:
        [image] = llm.images_of(body)
        shown = hashlib.sha256(image).hexdigest()
        self.seen.append(shown)
        content = body["messages"][-1]["content"]
        # The picture comes first and the claim last, so that a prefix cache has the picture.
        assert [part["type"] for part in content] == ["image_url", "text"]
        scene = self._scenes[shown]
        cached = {"cached_tokens": 80 * (self.seen.count(shown) > 1)}
        usage = {"prompt_tokens": 100, "completion_tokens": 2, "prompt_tokens_details": cached}
        return llm.completion("".join(_reply(scene, body)), usage=usage)


def _reply(scene: Scene, body: llm.Body) -> Iterator[str]:
    claims = llm.claims_of(body)
    if "<<<CLAIMS" not in llm.prompt_of(body):
        yield _WORDS[scene.holds(claims[0])]
        return
    yield json.dumps({number: _WORDS[scene.holds(claim)] for number, *claim in claims})
