"""What the published CHAIR procedure knows beyond its table of synonyms.

The released script (Rohrbach et al., 2018, "Object Hallucination in Image Captioning") holds a few
word pairs in code, beside the table. They are stated here as data, so that a table file alone gives
the whole procedure.
"""

from __future__ import annotations

from typing import Final

YOUNG_OR_GROWN: Final = ("baby", "adult")
"""A qualifier that is itself a person word, and says nothing of a person before an animal."""

ANIMALS: Final = (
    "bird",
    "cat",
    "dog",
    "horse",
    "sheep",
    "cow",
    "elephant",
    "bear",
    "zebra",
    "giraffe",
    "animal",
    "cub",
)

CARRYING: Final = ("passenger",)
"""The same, before a vehicle."""

VEHICLES: Final = ("jet", "train")

BLOCKED: Final = ("home plate", "train track")
"""Pairs read as a unit that names no object of the table."""

READS_AS: Final = {"bow tie": "tie", "toilet seat": "toilet"}
"""Pairs read as one word."""

PUBLISHED_READS_AS: Final = {**READS_AS, "wine glas": "wine glass"}
"""The same for the published variant, whose singular of "glass" is "glas"."""

PUBLISHED_APART: Final = frozenset({"dining table"})
"""Two-word entries that the published variant never joins: "table" alone is found in them."""

SUPPRESSED: Final = (("seat", "toilet"),)
"""(word, beside): the word does not count in a caption that also has the other one."""
