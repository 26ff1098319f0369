"""Errors and notes of the SDK in the words of the command line."""

from __future__ import annotations

import re

__all__ = ["in_flags"]

_ARGUMENT = re.compile(r"InputOptions\((?P<name>\w+)=(?P<value>[^()]*)\)|\breferences=…")
# The other options are called as their fields are.
_FLAGS = {"human_keys": "--human-key", "claims_only": "--claims", "display": "--options"}


def in_flags(message: str) -> str:
    """Return a message with options of the command line where it names arguments in Python.

    ``InputOptions(id_key=…)`` becomes ``--id-key``, and ``references=…`` ``--references``.
    """
    return _ARGUMENT.sub(_flag, message)


def _flag(match: re.Match[str]) -> str:
    if match["name"] is None:
        return "--references"
    flag = _FLAGS.get(match["name"]) or f"--{match['name'].replace('_', '-')}"
    return flag if match["value"] in ("…", "True") else f"{flag} {match['value']}".replace("'", "")
