"""The options of the families' analyses, which ``hallujudge analyze`` takes as flags.

They are apart from the analyses, whose imports no help page should wait for.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, TypeAlias

OptionValue: TypeAlias = "int | float | str | Path | Sequence[str] | None"
"""Value of an option."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalysisOption:
    """An option of a family's analyses."""

    name: str
    """Its name; the flag on the command line has hyphens."""
    meaning: str
    """Noun phrase for its help."""
    kind: Literal["text", "texts", "number", "count", "file"]
    """What its value is: a text, several texts, a number, a whole number from 1, or a file."""
    default: OptionValue = None
    """The value if none is given."""

    @property
    def flag(self) -> str:
        """The flag on the command line."""
        return f"--{self.name.replace('_', '-')}"


PROBE = "dining table"
"""The object of co-occurrence if none is named."""
_Declared: TypeAlias = tuple[
    str, Literal["text", "texts", "number", "count", "file"], OptionValue, str
]
_DECLARED: Mapping[str, Sequence[_Declared]] = {
    "chair": (
        ("probe", "text", PROBE, "object of co-occurrence"),
        # The columns of Tables 2 and 10.
        ("ks", "text", "10,20,30", "values of k of hit ratios, such as 10,20"),
        # The paper counts in MSCOCO and publishes no list (docs/explanation/pope-hit-ratios.md).
        ("counts", "file", None, "objects of images to count"),
    ),
    "tri-he": (
        ("words", "text", "", "word counts of the trend, such as 10,20,40"),
        # Table 4: the first 20 % of the pairs.
        ("share", "number", 0.2, "share of object pairs that are frequent"),
        ("wordnet", "text", "", "WordNet folder, for object pairs by synset, or auto"),
        ("sheet", "texts", (), "filled sheet of label scores; repeatable"),
        # Table 8: 5 is a response without hallucination.
        ("human_scale", "text", "more-is-better", "more-is-better or more-is-worse"),
    ),
    "mementos": (
        # Ours: section 3.2 speaks of common companions without a number.
        ("companions", "count", 5, "usual companions of a behaviour"),
        ("behavior_graph", "texts", (), "graph of behaviours, as in score"),
    ),
    "vidhal": (
        ("pairs", "file", None, "answers about pairs of captions"),
        ("people", "file", None, "people's choices of the order"),
        ("votes", "file", None, "judges' votes on captions"),
    ),
    "infact": (("audit", "file", None, "people's choices under operators"),),
}
OPTIONS: Mapping[str, tuple[AnalysisOption, ...]] = {
    family: tuple(
        AnalysisOption(name=name, kind=kind, default=default, meaning=f"{family}: {meaning}")
        for name, kind, default, meaning in declared
    )
    for family, declared in _DECLARED.items()
}
"""Family -> the options of its analyses."""
