"""Responses that are not texts, and the texts that they hold."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from hallujudge.metrics.framework.claims import json_kind, well_formed

from ..errors import ArchiveError
from .bad_records import RESPONSE_KEY
from .json_files import named, shown
from .records import Record, response_value

# Keys of texts that are never what a model said: ids, and what describes a message.
_NAMES_NO_RESPONSE = re.compile(
    r"(?:^|[_-])(?:id|uuid|hash|fingerprint|role|type|object|model|status|finish_reason|stop_reason)$"
    r"|Id$"
)
# How deep texts are looked for in an object that was given as a response.
_MAX_DEPTH = 6


def response_text(record: Record, key: str) -> str | None:
    """Return the response of a record; None if it has none.

    Raises:
        ArchiveError: The response is not a text.
    """
    value = response_value(record, key)
    if value is None or isinstance(value, str):
        return value and well_formed(value)
    raise not_a_text(record, key)


def not_a_text(record: Record, key: str, what: str = "a text") -> ArchiveError:
    """Return the error of a response that is not a text; it names the texts that it holds.

    ``what`` says what it may be.
    """
    value = record.values.get(key)
    problem = f"{record.place}: {key!r} is {json_kind(value)}, not {what}"
    texts = [f"response={key}.{path}" for path in _paths_of_texts(value)]
    if not texts:
        problem += f" (found {shown(value)}); write what the model said as a text, or name the "
        problem += "key that has it with InputOptions(key_map=…): response=KEY"
        return ArchiveError(problem, metadata={RESPONSE_KEY: key})
    problem += f"; name one in it with InputOptions(key_map=…): {named(texts)}"
    return ArchiveError(problem, metadata={RESPONSE_KEY: key})


def _paths_of_texts(value: object, depth: int = _MAX_DEPTH) -> Iterator[str]:
    """Yield the paths of the texts in a value, of lists of objects in the last one; no ids."""
    if not depth:
        return
    if isinstance(value, (list, tuple)) and value and isinstance(value[-1], Mapping):
        yield from (f"-1.{path}" for path in _paths_of_texts(value[-1], depth - 1))
        return
    lists = enumerate(value) if isinstance(value, (list, tuple)) else ()
    for name, held in value.items() if isinstance(value, Mapping) else lists:
        if isinstance(held, str) and not _NAMES_NO_RESPONSE.search(str(name)):
            yield str(name)
        elif not isinstance(held, str):
            yield from (f"{name}.{path}" for path in _paths_of_texts(held, depth - 1))
