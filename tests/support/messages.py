"""The words of messages that tests assert: one table, ``tests/data/messages.toml``."""

from __future__ import annotations

import tomllib
from functools import cache
from pathlib import Path

TABLE = Path(__file__).parents[1] / "data" / "messages.toml"


@cache
def messages() -> dict[str, dict[str, str]]:
    """Return the words by module and key."""
    return tomllib.loads(TABLE.read_text("utf-8"))


def expected_message(name: str, *values: object) -> str:
    """Return the words of a message.

    Args:
        name: The module that writes the message, and the key of its words: ``module:key``.
        values: Values for the places ``{}``. Without values the words are taken as they are.

    Raises:
        KeyError: The table has no such message.
    """
    module, _, key = name.partition(":")
    words = messages()[module][key]
    return words.format(*values) if values else words
