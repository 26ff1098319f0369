"""Translation of the SDK's errors and notes into command-line options."""

from __future__ import annotations

import re

__all__ = ["in_flags"]

_ARGUMENT = re.compile(
    r"(?:InputOptions|CompareOptions|Client)\((?P<name>\w+)=(?P<value>[^()]*)\)|\breferences=…"
)
# All other options have the names of their fields.
_FLAGS = {
    "human_keys": "--human-key",
    "claims_only": "--claims",
    "display": "--options",
    "nouns": "--nouns-file",
}


def in_flags(message: str) -> str:
    """Replace names of Python arguments in a message by command-line options.

    ``InputOptions(id_key=…)`` becomes ``--id-key``, ``Client(progress_timeout=…)``
    ``--progress-timeout``, and ``references=…`` ``--references``.
    """
    return _ARGUMENT.sub(_flag, message)


def _flag(match: re.Match[str]) -> str:
    if match["name"] is None:
        return "--references"
    flag = _FLAGS.get(match["name"]) or f"--{match['name'].replace('_', '-')}"
    return flag if match["value"] in ("…", "True") else f"{flag} {match['value']}".replace("'", "")
