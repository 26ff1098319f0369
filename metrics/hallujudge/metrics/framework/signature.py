"""Signatures: a short string that says exactly how a number was made."""

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
    """What was measured."""
    fields: tuple[tuple[str, str], ...]
    """Key and value of everything that the number depends on, beside the inputs."""

    def extended(self, *fields: tuple[str, str]) -> Signature:
        """The same signature with more fields at its end."""
        return Signature(metric=self.metric, fields=(*self.fields, *fields))

    def __str__(self) -> str:
        parts = [f"{key}:{value.translate(_RESERVED)}" for key, value in self.fields]
        return "|".join([self.metric, *parts])
