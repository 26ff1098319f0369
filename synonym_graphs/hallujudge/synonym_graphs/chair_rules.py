"""Word pairs of the published CHAIR procedure that are not in its table of synonyms.

The released script (Rohrbach et al., 2018, "Object Hallucination in Image Captioning") has these
word pairs in its code. Here they are data, so that a table file alone is the whole procedure.
"""

from __future__ import annotations

from typing import Final

YOUNG_OR_GROWN: Final = ("baby", "adult")
"""Person words that do not mention a person when an animal follows ("baby elephant")."""

ANIMALS: Final = (
    *("bird", "cat", "dog", "horse", "sheep", "cow", "elephant", "bear", "zebra", "giraffe"),
    *("animal", "cub"),
)

CARRYING: Final = ("passenger",)
"""Person words that do not mention a person when a vehicle follows ("passenger train")."""

VEHICLES: Final = ("jet", "train")

BLOCKED: Final = ("home plate", "train track")
"""Word pairs that are one unit and name no object of the table."""

READS_AS: Final = {"bow tie": "tie", "toilet seat": "toilet"}
"""Word pairs that count as one word."""

PUBLISHED_READS_AS: Final = {**READS_AS, "wine glas": "wine glass"}
"""The same for the published variant, whose singular of "glass" is "glas"."""

PUBLISHED_APART: Final = frozenset({"dining table"})
"""Two-word entries that the published variant never joins: it finds "table" alone in them."""

SUPPRESSED: Final = (("seat", "toilet"),)
"""(word, beside): the word does not count in a caption that also has ``beside``."""
