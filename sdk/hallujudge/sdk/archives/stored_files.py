"""Reads JSON that Hallujudge wrote: types and schema are checked, newer files are refused.

Help pages of commands load this module, and no reader of archives.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TypeVar

from msgspec import convert

from hallujudge.metrics.framework.json_values import schema_problem

from ..errors import ArchiveError, VersionMismatchError
from .json_files import read_json

_HUGE = 1e300
_T = TypeVar("_T")


def read_stored(path: Path, kind: type[_T], schema: str, what: str, advice: str) -> _T:
    """Return the value of a file that Hallujudge wrote.

    Args:
        path: The file.
        kind: Type of the value: a dataclass or a ``TypedDict``, whose fields are checked.
        schema: The kind of file, as in ``FILE_SCHEMAS``.
        what: What the file should be, for messages.
        advice: What to do if it is not.

    Raises:
        ArchiveError: The file can't be read, or is something else.
        VersionMismatchError: A newer release wrote it.
    """
    content = read_json(path)
    refuse_schema(content, schema, str(path))
    with ArchiveError.of_content(f"{path}: not {what}", advice):
        value = stored_value(content, kind)
        for place, number in _numbers(content):
            # All whole numbers are counts, apart from the seed of a plan.
            if isinstance(number, int) and number < 0 and place != "$.seed":
                raise ValueError(f"{place} is {number}, not a count")
    return value


def refuse_schema(content: object, kind: str, place: str) -> None:
    """Refuse JSON that names another schema than the one of its kind, or a newer version of it.

    Args:
        content: The JSON; without a schema it is accepted.
        kind: The kind of file, as in ``FILE_SCHEMAS``.
        place: Where it is from, for messages.

    Raises:
        VersionMismatchError: It can't be read by this release.
    """
    found = content.get("schema") if isinstance(content, Mapping) else None
    if problem := schema_problem(found, kind):
        raise VersionMismatchError(f"{place}: {problem}")


def stored_value(content: object, kind: type[_T]) -> _T:
    """Return JSON that Hallujudge wrote as a value.

    Raises:
        ValueError: A field has another type, or a number is one that Hallujudge does not write.
    """
    try:
        for place, number in _numbers(content):
            # NaN is in no range; and isfinite() fails for whole numbers of hundreds of digits.
            if not -_HUGE < number < _HUGE:
                raise ValueError(f"{place} is {number!r:.40}, not a finite number")
    except RecursionError as err:
        raise ValueError("it is nested too deeply") from err
    return convert(content, kind)


def _numbers(content: object, place: str = "$") -> Iterator[tuple[str, float]]:
    """Yield the numbers of a JSON value with their places."""
    if isinstance(content, dict):
        for name, value in content.items():
            yield from _numbers(value, f"{place}.{name:.80}")
    elif isinstance(content, list):
        for number, value in enumerate(content):
            yield from _numbers(value, f"{place}[{number}]")
    elif isinstance(content, int | float):
        yield place, content
