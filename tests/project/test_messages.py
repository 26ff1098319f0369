"""The table of messages: each entry is asserted by a test, and none is named that is absent."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest
from support.messages import expected_message, messages

from hallujudge.sdk import InputOptions

TESTS = Path(__file__).parents[1]
LIBRARY = [TESTS.parent / name for name in ("metrics", "judge_service", "sdk")]
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


def texts_of(path: Path) -> Iterator[str]:
    """Yield the texts of a module with a space in them, docstrings apart; … is for a value."""
    tree = ast.parse(path.read_text("utf-8"))
    statements = {id(n.value) for n in ast.walk(tree) if isinstance(n, ast.Expr)}
    for node in ast.walk(tree):
        parts = node.values if isinstance(node, ast.JoinedStr) else [node]
        words = [p.value if isinstance(p, ast.Constant) else "…" for p in parts]
        text = "".join(map(str, words))
        if id(node) not in statements and isinstance(node, (ast.JoinedStr, ast.Constant)):
            yield from [text] if " " in text else []


def test_options_of_archives_are_named_so_that_commands_can_show_their_flags() -> None:
    names = "|".join(set(InputOptions.__slots__) - {"own", "join", "encoding"})
    shown = re.compile(r"InputOptions\((own=dict\()?\w+=[^()]*\)+")
    bare = re.compile(rf"\b({names})\b")
    paths = [path for folder in LIBRARY for path in folder.rglob("*.py")]
    assert len(paths) > 300
    paths = [path for path in paths if bare.search(path.read_text("utf-8"))]
    found = [(p.name, t) for p in paths for t in texts_of(p) if bare.search(shown.sub("", t))]
    assert found == []
