"""What is wrong with content that could not be read, without Python's names."""

from __future__ import annotations

import re
from json import JSONDecodeError

__all__ = ["fault_of"]

_MOST_CHARS = 80
_NOT_A_NUMBER = re.compile(r"(?:could not convert|invalid literal).*?: (?P<value>'.*)")
_NOT_A_CHOICE = re.compile(r"(?P<value>.+) is not a valid \w+")
_NOT_FORMATTED = re.compile(r"(?:Cannot specify|Unknown format code|Invalid format specifier) .*")
_OTHER_KIND = "a value in it is of another kind than expected"


def fault_of(error: Exception) -> str:
    """Return what is wrong with content, from the error of the code that read it.

    Args:
        error: What was raised; a ``ValueError`` of our own keeps its message.
    """
    match error:
        case JSONDecodeError():
            return f"it is not JSON: {error.msg.lower()} in line {error.lineno}"
        case KeyError():
            return f"it has no {error.args[0]!r:.{_MOST_CHARS}}"
        case RecursionError():
            return "it is nested too deeply"
        case UnicodeDecodeError():
            return "it is not UTF-8 text"
        case ValueError():
            return _plain(str(error))[:_MOST_CHARS]
        case _:
            return _OTHER_KIND


def _plain(message: str) -> str:
    if found := _NOT_A_NUMBER.match(message):
        return f"{found['value']} is not a number"
    if found := _NOT_A_CHOICE.fullmatch(message):
        return f"{found['value']} is not a known value"
    if _NOT_FORMATTED.fullmatch(message):
        return _OTHER_KIND
    return message
