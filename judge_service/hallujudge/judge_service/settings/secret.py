"""Secrets that do not leak through a message, a log or a repr."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import AnyStr

from ..errors import InvalidInputError

__all__ = ["Secret", "read_secret"]

_MAX_KEY_BYTES = 16_384


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

    def scrubbed(self, text: AnyStr) -> AnyStr:
        """Return a text with every occurrence of the secret masked."""
        if not self._value:
            return text
        if isinstance(text, bytes):
            return text.replace(self._value.encode(), b"***")
        return text.replace(self._value, "***")

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


def read_secret(environ: Mapping[str, str], name: str) -> Secret:
    """Return a secret from the environment, or from the file that it names.

    Args:
        environ: The environment.
        name: The variable; with ``_FILE`` it names a file.

    Raises:
        InvalidInputError: The file cannot be read, or both are given.
    """
    file = environ.get(f"{name}_FILE", "")
    if not file:
        return Secret(environ.get(name, ""))
    if environ.get(name):
        raise InvalidInputError(f"both {name} and {name}_FILE are set; unset one of them")
    try:
        with Path(file).open("rb") as stream:
            data = stream.read(_MAX_KEY_BYTES + 1)
        text = data.decode().strip()
    except (OSError, UnicodeDecodeError) as err:
        # The error's text may hold bytes of the key.
        told = err.strerror if isinstance(err, OSError) else "it is not UTF-8 text"
        raise InvalidInputError(
            f"{name}_FILE: {file!r} cannot be read: {told}; give a file that contains only the key"
        ) from (err if isinstance(err, OSError) else None)
    if len(data) > _MAX_KEY_BYTES or not text or "\n" in text:
        raise InvalidInputError(f"{name}_FILE: {file!r} must contain only the key, in one line")
    return Secret(text)
