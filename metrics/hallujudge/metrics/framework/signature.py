"""Signatures: short strings that state exactly how a score was computed."""

from __future__ import annotations

from dataclasses import dataclass

__all__ = ["Signature"]

_RESERVED = str.maketrans({"|": "/", "\n": " ", "\r": " "})


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """Declared fields in a declared order, printed as ``metric|key:value|key:value``.

    Two runs with equal signatures over equal inputs give equal numbers. Fields are declared by the
    metric, never read off an object, so that renaming an attribute can't change a signature.
    """

    metric: str
    """Name of the metric or score."""
    fields: tuple[tuple[str, str], ...]
    """Keys and values of everything that the score depends on, except the inputs."""

    def extended(self, *fields: tuple[str, str]) -> Signature:
        """Return the signature with more fields appended."""
        return Signature(metric=self.metric, fields=(*self.fields, *fields))

    def __str__(self) -> str:
        parts = [f"{key}:{value.translate(_RESERVED)}" for key, value in self.fields]
        return "|".join([self.metric, *parts])
