"""Lists and objects in cells of tables, which are texts there."""

from __future__ import annotations

import ast
import json
from collections.abc import Iterable, Mapping

# Python's parser takes a hundred times the memory of its text.
_MAX_LIST_CHARS = 1 << 16


def with_lists(record: Mapping[str, object], keys: Iterable[str]) -> Mapping[str, object]:
    """Return a record whose lists and objects under some keys are no longer texts.

    Args:
        record: The record.
        keys: Keys that never hold a text: a response may begin with a bracket too.
    """
    for key in keys:
        if isinstance(cell := record.get(key), str) and cell.startswith(("[", "{")):
            record = {**record, key: listed(cell)}
    return record


def listed(text: str) -> object:
    """Return the list or object that a text is, as JSON or as Python prints it; else the text."""
    try:
        return json.loads(text)
    except (ValueError, RecursionError):
        return _printed(text)


def _printed(text: str) -> object:
    """Return the list or object that a cell holds as Python prints it; other texts as they are.

    pandas writes columns of lists so: ``['dining table', "chef's knife"]``. An array of numpy,
    ``['dog' 'cat']``, would be read as one text, so a list counts only if it prints as the cell.
    """
    # Python's parser warns of backslashes that escape nothing; names of objects have none.
    if not text.startswith(("[", "{")) or "\\" in text or len(text) > _MAX_LIST_CHARS:
        return text
    try:
        value = ast.literal_eval(text)
    except (ValueError, SyntaxError, RecursionError, MemoryError):
        return text
    return value if repr(value) == text else text
