"""``hallujudge build references`` and ``seen-probes``: files made from the objects of images.

References are for CHAIR. Probes are claims with known answers, of which a judge says yes or no.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Annotated

import click
from msgspec import Struct

from hallujudge.metrics.framework.results import JsonValue
from hallujudge.metrics.pope.question_builder import build_pope, count_objects
from hallujudge.sdk.archives.chair_references import read_coco
from hallujudge.sdk.archives.json_files import amount
from hallujudge.sdk.cli.app import (
    ExitCode,
    build_app,
    examples,
    input_option,
    metric_option,
    output_option,
    statistics_option,
)
from hallujudge.sdk.cli.options import Instances, Objects, refuse_input
from hallujudge.sdk.cli.output import write_file, write_lines
from hallujudge.sdk.errors import InvalidInputError

from .pope import objects_of_images


@build_app.command(
    "references",
    epilog=examples(
        "hallujudge build references --instances instances_val2014.json \\",
        "    --captions captions_val2014.json -o objects.json",
    ),
)
def build_references(
    *,
    instances: Instances = None,
    captions: Annotated[
        list[Path] | None, input_option(metavar="FILE", help="COCO's captions_*.json; repeatable.")
    ] = None,
    out: Annotated[
        Path, output_option("--out", "-o", metavar="FILE", help="File of references to write.")
    ],
) -> ExitCode:
    """CHAIR: objects of images, from COCO's annotation files."""
    paths = [*(instances or ()), *(captions or ())]
    if not paths:
        raise InvalidInputError(
            "give --instances, --captions, or both as the published script does"
        )
    refuse_input(out, *paths)
    objects = read_coco(paths)
    # A line for each image, so that files can be compared and searched.
    lines = (f"{json.dumps(image)}: {json.dumps(names)}" for image, names in objects.items())
    write_file(out, "{\n" + ",\n".join(lines) + "\n}\n")
    click.echo(f"objects of {len(objects):,} images written to {out}")
    return ExitCode.OK


@build_app.command(
    "seen-probes",
    epilog=examples(
        "hallujudge build seen-probes --instances instances_val2014.json --images 100 \\",
        "    -o probes.jsonl",
    ),
)
def build_seen_probes(
    *,
    objects: Objects = None,
    instances: Instances = None,
    per_image: Annotated[int, metric_option(min=1, help="Objects of each kind for an image.")] = 2,
    images: Annotated[
        int | None, metric_option(min=1, help="Images to draw; default: all.")
    ] = None,
    seed: Annotated[int, statistics_option(help="Seed of the draw.")] = 0,
    out: Annotated[
        Path, output_option("--out", "-o", metavar="FILE", help="File of probes, as JSON lines.")
    ],
) -> ExitCode:
    """Probes of a judge that sees: objects that images show, and lack.

    A file of their labels is written beside them: score the probes, then give the labels to
    hallujudge judge card, which says how often the judge says yes.
    """
    if (objects is None) == (instances is None):
        raise InvalidInputError("give either --objects or --instances")
    shown = objects_of_images(objects, instances)
    try:
        probes = build_probes(shown, per_image=per_image, images=images, seed=seed)
    except ValueError as err:
        raise InvalidInputError(str(err)) from err
    if not probes:
        raise InvalidInputError("no image shows and lacks enough objects; lower --per-image")
    labels = out.with_name(f"{out.stem}.labels.jsonl")
    write_lines(out, (probe.to_json() for probe in probes))
    write_lines(labels, (label for probe in probes for label in probe.labels()))
    claims, pictures = sum(len(p.objects) for p in probes), {p.image for p in probes}
    click.echo(f"{claims:,} claims about {len(pictures):,} images written to {out}")
    # Images that were not drawn have no claims either.
    if images is None and (left := [image for image in shown if image not in pictures]):
        few = amount(len(left), "image has", "images have")
        click.echo(
            f"note: {few} no claims, such as {left[0]}: fewer than {per_image} objects are named "
            "there; lower --per-image",
            err=True,
        )
    click.echo(f"their labels written to {labels}", err=True)
    return ExitCode.OK


# Probes -------------------------------------------------------------------------------------------


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
    # Both kinds take frequencies over all images, also where only some are drawn.
    counts = count_objects(shown)
    found: dict[tuple[str, str], list[str]] = {}
    for sampling, missing in (("random", ABSENT), ("adversarial", LIKELY)):
        built = build_pope(
            shown,
            sampling=sampling,
            # POPE's questions are balanced: half of them are about objects that are shown.
            questions_per_image=2 * per_image,
            images=images,
            seed=seed,
            counts=counts,
        )
        for question in built.questions:
            kind = PRESENT if question.label == "yes" else missing
            names = found.setdefault((question.image, kind), [])
            # Both samplings ask about the same objects that are shown.
            if question.object not in names:
                names.append(question.object)
    return tuple(
        Probe(image=image, probe=kind, objects=tuple(names))
        for (image, kind), names in found.items()
    )
