"""Pictures that a response is about, as values: encoded bytes with their type and size."""

from __future__ import annotations

from functools import cached_property
from hashlib import sha256

from msgspec import Struct

NOT_VISIBLE = "cannot_be_seen"
"""What a judge says of a claim that it can't check in the picture."""
SEEN_CHOICES = ("supported", "not_supported", NOT_VISIBLE)
"""What a judge that sees may say of a claim, in the order in which it is offered."""
MEDIA_TYPES = ("image/png", "image/jpeg", "image/gif", "image/webp")
"""The types of pictures that every server takes."""


# The hash is computed once and kept beside the fields, so that no caller can state another one.
class Picture(Struct, frozen=True, kw_only=True, dict=True):
    """An encoded picture, or one frame of a video."""

    name: str = ""
    """Its file's name, for people; no verdict depends on it."""
    data: bytes
    """The encoded picture, as its file has it."""
    media_type: str
    """Its type, such as ``image/jpeg``."""
    width: int
    """Pixels."""
    height: int
    """Pixels."""

    @cached_property
    def sha256(self) -> str:
        """The hash of its bytes, which caches and evidence know it by."""
        return sha256(self.data).hexdigest()

    @property
    def problem(self) -> str:
        """Why it can't be shown, in words; empty if it can. Remote callers write its fields."""
        if self.media_type not in MEDIA_TYPES:
            return f"its type is {self.media_type!r:.40}; send {', '.join(MEDIA_TYPES)}"
        return "" if self.data and self.width and self.height else "it is empty"

    def __repr__(self) -> str:
        """Return its name and hash; its bytes would fill messages."""
        return f"Picture(name={self.name!r}, sha256={self.sha256!r}, {self.width}x{self.height})"


class ShownPicture(Struct, frozen=True, kw_only=True, gc=False):
    """What evidence keeps of a picture."""

    name: str
    """Its file's name."""
    sha256: str
    """The hash of its bytes."""
