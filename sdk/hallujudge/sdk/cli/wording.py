"""Translation of the SDK's errors and notes into command-line options."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import fields
from typing import TYPE_CHECKING

from .judging import JudgeOptions

if TYPE_CHECKING:
    from typer.exceptions import TyperException

__all__ = ["in_flags", "typed_flags", "usage_error"]

_ARGUMENT = re.compile(
    r"(?:InputOptions|CompareOptions|GateLimits|ScoreRun|Client|Connection)\((?P<name>\w+)=(?P<value>[^()]*)\)|\b(?P<bare>references|baseline)=…"
)
_OPTION = re.compile(r"\bthe option (?P<name>[a-z_]+)(?: = (?P<value>\w+))?")
# Settings of judges in this process; a server's have the same names, but are set elsewhere.
_SETTINGS = (*(entry.name for entry in fields(JudgeOptions)), "matcher_download")
# Settings of a server that `hallujudge serve` has flags for.
_SERVE = ("allow_anonymous", "http_host", "http_port", "keys_file", "tls_ca", "tls_cert", "tls_key")
_TYPED: ContextVar[tuple[str, ...]] = ContextVar("typed_flags", default=())
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
_NAMES = {flag: name for name, flag in (_FLAGS | _OPTION_FLAGS).items()} | {"-n": "count"}


@contextmanager
def typed_flags(arguments: Iterable[str]) -> Iterator[None]:
    """Take the command and the flags of these arguments as those that were typed."""
    command, *others = *arguments, ""
    flags = (part.partition("=")[0] for part in others if _is_flag(part))
    token = _TYPED.set((command, *flags))
    try:
        yield
    finally:
        _TYPED.reset(token)


def in_flags(message: str) -> str:
    """Replace names of Python arguments in a message by command-line options.

    ``InputOptions(id_key=…)`` becomes ``--id-key``, ``Client(progress_timeout=…)``
    ``--progress-timeout``, ``references=…`` ``--references``, and ``the option unparsed = wrong``
    ``--unparsed wrong``. Names of flags that were typed become these flags: ``confidence is 2``
    becomes ``--confidence is 2``. Settings of judges become flags unless a server is called, where
    they keep their names.
    """
    flags = _ARGUMENT.sub(_flag, message)
    flags = _OPTION.sub(_option_flag, flags)
    typed = _TYPED.get()
    names = {flag: _NAMES.get(flag) or flag[2:].replace("-", "_") for flag in typed[1:]}
    if "--server" not in typed and not message.startswith("settings file "):
        own = (*_SETTINGS, *_SERVE) if "serve" in typed else _SETTINGS
        names.update({_flag_of(name): name for name in own})
    for flag, name in names.items():
        flags = _bare(name).sub(flag, flags)
    # Ids and keys are as the file has them; a terminal would obey their control characters.
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in flags)


def _is_flag(part: str) -> bool:
    return part.startswith("--") or part in _NAMES


def _bare(name: str) -> re.Pattern[str]:
    """Return what matches a name outside of paths and quotes; a word only where it is the subject.

    The name of a setting stays if the setting is from the environment or a file.
    """
    given = r"(?: \(from argument\))?"
    if "_" in name:
        return re.compile(rf"(?<![\w/.'\"-]){name}(?: = 1)?{given}(?![\w/'\"]|\.\w| \(from )")
    return re.compile(rf"^{name}{given}(?= is | are )")


def _flag_of(name: str) -> str:
    return _FLAGS.get(name) or _OPTION_FLAGS.get(name) or f"--{name.replace('_', '-')}"


def _flag(match: re.Match[str]) -> str:
    if match["bare"]:
        return f"--{match['bare']}"
    flag = _flag_of(match["name"])
    return flag if match["value"] in ("…", "True") else f"{flag} {match['value']}".replace("'", "")


def _option_flag(match: re.Match[str]) -> str:
    flag = _flag_of(match["name"])
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
    bounds = {name: _plain(bound) for name, bound in problem.get("ctx", {}).items()}
    needed = needed.format(**bounds)
    return f"{flag['flag']} is {problem['input']!r:.80}; {needed}"


def _plain(bound: object) -> object:
    """Return a bound of an option as people write it: 0 instead of 0.0."""
    return int(bound) if isinstance(bound, float) and bound.is_integer() else bound
