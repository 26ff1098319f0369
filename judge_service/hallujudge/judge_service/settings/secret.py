"""Secrets that do not leak through a message, a log or a repr."""

from __future__ import annotations

__all__ = ["Secret"]


class Secret:
    """A text that is shown only by :meth:`reveal`.

    Args:
        value: The secret; white space around it, such as a file's last line break, is dropped.
    """

    __slots__ = ("_value",)

    def __init__(self, value: str) -> None:
        self._value = value.strip()

    def reveal(self) -> str:
        """Return the secret. Pass it only to the request that needs it."""
        return self._value

    def scrubbed(self, text: str) -> str:
        """Return a text with every occurrence of the secret masked."""
        return text.replace(self._value, "***") if self._value else text

    def __bool__(self) -> bool:
        return bool(self._value)

    def __repr__(self) -> str:
        return "Secret('***')" if self._value else "Secret('')"

    __str__ = __repr__

    def __format__(self, _spec: str) -> str:
        return repr(self)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Secret) and self._value == other._value

    def __hash__(self) -> int:
        return hash(type(self))

    def __reduce__(self) -> str:
        raise TypeError("a secret is never pickled or copied")
