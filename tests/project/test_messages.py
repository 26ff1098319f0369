"""The table of messages: each entry is asserted by a test, and none is named that is absent."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from support.messages import expected_message, messages

TESTS = Path(__file__).parents[1]
NAMED = re.compile(r"""expected_message\(\s*["']([\w.]+):([\w-]+)["']""")


def named() -> set[tuple[str, str]]:
    """Return the messages that tests name, by module and key."""
    texts = (path.read_text("utf-8") for path in TESTS.rglob("test_*.py"))
    return {found for text in texts for found in NAMED.findall(text)}


def test_the_table_holds_what_tests_name_and_nothing_else() -> None:
    held = {(module, key) for module, words in messages().items() for key in words}
    assert held == named()


def test_unknown_names_are_refused() -> None:
    with pytest.raises(KeyError):
        expected_message("sdk.cli" + ":no-such-words")
