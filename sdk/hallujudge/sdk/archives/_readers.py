"""The reader of each metric."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

from .chair import read_chair
from .infact import read_infact
from .inputs import InputOptions, ItemSource, References, Responses
from .mementos import read_mementos
from .pope import read_pope
from .tri_he import read_tri_he
from .vidhal import read_vidhal

__all__ = ["READERS"]

Reader: TypeAlias = (
    "Callable[[Responses, References | None, InputOptions, tuple[str, ...]], ItemSource]"
)

READERS: Mapping[str, Reader] = {
    "chair": read_chair,
    "pope": read_pope,
    "tri-he": read_tri_he,
    "mementos": read_mementos,
    "vidhal-mcqa": read_vidhal,
    "vidhal-ordering": read_vidhal,
    "infact": read_infact,
}
