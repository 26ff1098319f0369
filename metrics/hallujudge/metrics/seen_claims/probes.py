"""Probes: claims with known answers, which show how often a judge that sees says yes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from msgspec import Struct

from ..framework.results import JsonValue
from ..pope.question_builder import build_pope, count_objects

PRESENT, ABSENT, LIKELY = "present", "absent", "likely"
"""What a probe is about: an object that the picture shows, one that it lacks, or one that it lacks
though it often occurs with what is shown."""


class Probe(Struct, frozen=True, kw_only=True):
    """Claims of one kind about one picture, all right or all wrong."""

    image: str
    """The picture."""
    probe: str
    """``present``, ``absent`` or ``likely``."""
    objects: tuple[str, ...]
    """The objects that are claimed to be there."""

    @property
    def id(self) -> str:
        """The id of its record."""
        return f"{self.image}: {self.probe}"

    def to_json(self) -> dict[str, JsonValue]:
        """Return the record that is scored."""
        claims: list[JsonValue] = [[name, "is", "present"] for name in self.objects]
        return {"id": self.id, "image": self.image, "probe": self.probe, "claims": claims}

    def labels(self) -> list[dict[str, JsonValue]]:
        """Return what is known of each claim, as human labels have it."""
        known = "supported" if self.probe == PRESENT else "not_supported"
        return [
            {"item": self.id, "claim": at, "label": known, "text": f"{name} · is · present"}
            for at, name in enumerate(self.objects)
        ]


def build_probes(
    objects: Mapping[str, Iterable[str]],
    *,
    per_image: int = 2,
    images: int | None = None,
    seed: int = 0,
) -> tuple[Probe, ...]:
    """Return probes of each picture: of objects that it shows, and two kinds that it lacks.

    The objects are drawn as POPE's questions are (Li et al. 2023, section 5.1): ``absent`` ones at
    random, ``likely`` ones as its adversarial ones.

    Args:
        objects: Picture -> the objects that it shows.
        per_image: Objects of each kind for a picture; pictures that show fewer are left out.
        images: Pictures to draw; by default, all of them.
        seed: Seed of the draw.

    Raises:
        OptionError: Too few pictures show enough objects.
    """
    shown = {image: list(names) for image, names in objects.items()}
    counts = count_objects(shown)
    found: dict[tuple[str, str], list[str]] = {}
    for sampling, missing in (("random", ABSENT), ("adversarial", LIKELY)):
        built = build_pope(
            shown,
            sampling=sampling,
            questions_per_image=2 * per_image,
            images=images,
            seed=seed,
            counts=counts,
        )
        for question in built.questions:
            kind = PRESENT if question.label == "yes" else missing
            names = found.setdefault((question.image, kind), [])
            if question.object not in names:
                names.append(question.object)
    return tuple(
        Probe(image=image, probe=kind, objects=tuple(names))
        for (image, kind), names in found.items()
    )
