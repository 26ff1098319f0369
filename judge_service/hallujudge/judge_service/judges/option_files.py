"""JSON files of our own commands that are options of a run, and numbers that options state."""

from __future__ import annotations

import json
import math
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any

from hallujudge.metrics.framework.file_schemas import newer_schema, schema_problem

from ..errors import InvalidInputError, fault_of


@contextmanager
def option_file(
    option: str, text: str, kind: str, *, what: str, advice: str
) -> Iterator[Mapping[str, Any]]:
    """Provide the content of a file, and say which option is wrong where a block can't read it.

    Args:
        option: The option's name.
        text: The file's text.
        kind: The kind of file that its schema names.
        what: What the file is, for the error.
        advice: Which file to give instead.

    Raises:
        InvalidInputError: It is no such file, or a newer release wrote it.
    """
    try:
        content: Any = json.loads(text)
        if problem := newer_schema(content["schema"]):
            raise InvalidInputError(f"the option {option} can't be read: {problem}")
        if problem := schema_problem(content["schema"] or "", kind):
            raise ValueError(problem)
        yield content
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as err:
        raise InvalidInputError(
            f"the option {option} is not {what}: {fault_of(err)}; {advice}"
        ) from err


def text_sha256(text: str) -> str:
    """Return the hash of a file's text; texts of callers may have lone surrogates."""
    return sha256(text.encode("utf-8", "surrogatepass")).hexdigest()


def share_of_option(option: str, text: str, *, default: str, above_zero: bool = False) -> float:
    """Return the share that an option states.

    Args:
        option: The option's name.
        text: Its text.
        default: The text in place of an empty one.
        above_zero: Whether 0 is no such share.

    Raises:
        InvalidInputError: It is not a number from 0 to 1.
    """
    with suppress(ValueError):
        share = float(text or default)
        if 0 < share <= 1 or (share == 0 and not above_zero):
            return share
    numbers = "above 0 and up to 1" if above_zero else "from 0 to 1"
    raise InvalidInputError(f"the option {option} is {text!r:.40}; give a number {numbers}")


def finite(given: Any) -> float:
    """Return a finite number.

    Raises:
        ValueError: It is none.
    """
    value = float(given)
    if not math.isfinite(value):
        raise ValueError(f"{given!r:.40} is not a finite number")
    return value
