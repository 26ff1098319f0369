"""Parameters of requests that have no option, such as seeds and settings of chat templates."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from hashlib import sha256
from typing import NoReturn

from hallujudge.metrics.framework.results import JsonValue
from hallujudge.sdk.errors import InvalidInputError

_NAME = re.compile(r"[A-Za-z_][\w-]*(\.[A-Za-z_][\w-]*)*", re.ASCII)
# Texts that a signature can show, and that are not mistaken for values of JSON.
_PLAIN_TEXT = re.compile(r"(?!(?:true|false|null)$)[A-Za-z][\w.-]{0,31}", re.ASCII)
_OF_PYTHON = {"True": "true", "False": "false", "None": "null"}
_READ_WHOLE = "replies are read whole, and one for each question"
_RESERVED = {
    "model": "the model is named by AskRun(model=…)",
    "messages": "the messages are the prompts; replace those",
    "max_tokens": "use AskRun(max_tokens=…)",
    "max_completion_tokens": "use AskRun(max_tokens=…)",
    "temperature": "use AskRun(temperature=…)",
    "stream": _READ_WHOLE,
    "n": _READ_WHOLE,
}


def parsed_parameters(given: Sequence[str]) -> dict[str, JsonValue]:
    """Return parameters as they are sent, from ``NAME=VALUE``; dots in a name nest.

    Args:
        given: The values of the option. A value is JSON, or else a text.

    Raises:
        InvalidInputError: One has another form, a name is reserved, or it is given twice.
    """
    made: dict[str, JsonValue] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not _NAME.fullmatch(name):
            raise InvalidInputError(f"--param {text!r}: give NAME=VALUE, such as seed=7")
        *folders, last = name.split(".")
        held = made
        for depth, folder in enumerate(folders, 1):
            inner = held.setdefault(folder, {})
            if not isinstance(inner, dict):
                before = ".".join(folders[:depth])
                _refuse(name, f"{before} is given as a value too; give one of them")
            held = inner
        if last in held:
            _refuse(name, "it is given twice; give one value")
        held[last] = _value_of(name, value)
    return checked_parameters(made)


def checked_parameters(parameters: Mapping[str, object]) -> dict[str, JsonValue]:
    """Return parameters as JSON values.

    Raises:
        InvalidInputError: A name is reserved, or a value can't be sent as JSON.
    """
    for name, value in parameters.items():
        if not isinstance(name, str) or name in _RESERVED:
            _refuse(str(name), _RESERVED.get(name, "a name is a text"))
        try:
            json.dumps(value, allow_nan=False)
        except (TypeError, ValueError, RecursionError) as err:
            _refuse(name, f"its value can't be sent as JSON: {err}; give another")
    # A copy, which the caller can't change any more.
    copied: dict[str, JsonValue] = json.loads(json.dumps(dict(parameters)))
    return copied


def shown_parameters(parameters: Mapping[str, JsonValue]) -> list[str]:
    """Return parameters as signatures state them, such as ``seed=7``, in the order of names.

    Values that are no numbers, words or truth values are stated by a hash.
    """
    return [f"{name}={_shown(value)}" for name, value in sorted(_leaves(parameters))]


def _leaves(
    parameters: Mapping[str, JsonValue], before: str = ""
) -> Iterator[tuple[str, JsonValue]]:
    for name, value in parameters.items():
        # An empty object is a leaf, or a signature would not show it.
        if isinstance(value, dict) and value:
            yield from _leaves(value, f"{before}{name}.")
        else:
            yield f"{before}{name}", value


def _shown(value: JsonValue) -> str:
    if isinstance(value, str) and _PLAIN_TEXT.fullmatch(value):
        return value
    text = json.dumps(value, sort_keys=True)
    if isinstance(value, (bool, int, float, type(None))):
        return text
    return f"#{sha256(text.encode()).hexdigest()[:8]}"


def _value_of(name: str, text: str) -> JsonValue:
    """Return a value of JSON, or else the text as it is.

    Raises:
        InvalidInputError: It is a word of Python, which a server would read as a text.
    """
    if text in _OF_PYTHON:
        _refuse(name, f"{text!r} is a text; give {_OF_PYTHON[text]}, or '\"{text}\"' for the text")
    try:
        value: JsonValue = json.loads(text, parse_constant=_no_value)
    except (ValueError, RecursionError):
        return text
    return value


def _no_value(constant: str) -> NoReturn:
    """Refuse NaN and infinity, which JSON does not have."""
    raise ValueError(constant)


def _refuse(name: str, why: str) -> NoReturn:
    raise InvalidInputError(f"request parameter {name}: {why}")
