"""Translation of the SDK's errors and notes into command-line options."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from typer.exceptions import TyperException

__all__ = ["in_flags", "usage_error"]

_ARGUMENT = re.compile(
    r"(?:InputOptions|CompareOptions|GateLimits|ScoreRun|Client|Connection)\((?P<name>\w+)=(?P<value>[^()]*)\)|\b(?P<bare>references|baseline)=…"
)
_OPTION = re.compile(r"\bthe option (?P<name>[a-z_]+)(?: = (?P<value>\w+))?")
_SETTINGS = {
    "set llm_url and llm_model": "without a server: --llm-url, --llm-model",
    "set llm_model": "without a server: --llm-model",
    "set fallback_model": "without a server: --fallback-model",
    "matcher_download = 1": "without a server: --matcher-download",
}
# Types of pydantic's errors, with which typer reads numbers.
_NEEDED = {
    "int_parsing": "give a whole number",
    "int_from_float": "give a whole number",
    "float_parsing": "give a number",
    "greater_than_equal": "give {ge} or more",
    "less_than_equal": "give {le} or less",
}
_FLAG_OF_ERROR = re.compile(r"Invalid value for .*?'(?P<flag>[^']*)': ")
# All other options have the names of their fields.
_FLAGS = {
    "key_map": "--map",
    "human_keys": "--human-key",
    "claims_only": "--claims",
    "display": "--options",
    "nouns": "--nouns-file",
    "maximum": "--max",
    "minimum": "--min",
}
_OPTION_FLAGS = {"failure_texts": "--failure-text", "questions_per_image": "--questions"}


def in_flags(message: str) -> str:
    """Replace names of Python arguments in a message by command-line options.

    ``InputOptions(id_key=…)`` becomes ``--id-key``, ``Client(progress_timeout=…)``
    ``--progress-timeout``, ``references=…`` ``--references``, and ``the option unparsed = wrong``
    ``--unparsed wrong``. Settings keep their names, since they may be a server's.
    """
    flags = _ARGUMENT.sub(_flag, message)
    flags = _OPTION.sub(_option_flag, flags)
    for setting, own in _SETTINGS.items():
        flags = flags.replace(setting, f"{setting} ({own})")
    return flags


def _flag(match: re.Match[str]) -> str:
    if match["bare"]:
        return f"--{match['bare']}"
    flag = _FLAGS.get(match["name"]) or f"--{match['name'].replace('_', '-')}"
    return flag if match["value"] in ("…", "True") else f"{flag} {match['value']}".replace("'", "")


def _option_flag(match: re.Match[str]) -> str:
    flag = _OPTION_FLAGS.get(match["name"]) or f"--{match['name'].replace('_', '-')}"
    return f"{flag} {match['value']}" if match["value"] else flag


def usage_error(error: TyperException) -> str:
    """Return an error of typer's; one about a value names the value and what to give."""
    message = error.format_message()
    told = getattr(error.__cause__, "errors", None)
    flag = _FLAG_OF_ERROR.match(message)
    if told is None or flag is None:
        return message
    problem = told()[0]
    needed = _NEEDED.get(problem["type"])
    if needed is None:
        return message.replace(": Value error, ", ": ")
    needed = needed.format(**problem.get("ctx", {}))
    return f"{flag['flag']} is {problem['input']!r:.80}; {needed}"
