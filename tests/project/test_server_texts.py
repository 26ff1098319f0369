"""Texts that a server sends name fields and settings, never options of a command line."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
FLAG = re.compile(r"(?<![\w-])--[a-z][a-z-]+")
# Programs that these modules start or describe, each with options of its own.
STARTED = {
    "judge_service/hallujudge/judge_service/llm/chat_replies.py",
    "judge_service/hallujudge/judge_service/llm/vllm.py",
    "judge_service/hallujudge/judge_service/llm/vllm_serving.py",
    "judge_service/hallujudge/judge_service/__main__.py",
    "judge_service/hallujudge/judge_service/__init__.py",
}


def texts(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the string constants of a module that may name an option, without docstrings."""
    source = path.read_text(encoding="utf-8")
    if "--" not in source:
        return
    tree = ast.parse(source)
    documented = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        if (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and id(node) not in documented
        ):
            yield node.lineno, node.value


def test_no_text_of_a_server_names_an_option_of_a_command_line() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {text}"
        for folder in ("judge_service", "metrics", "synonym_graphs")
        for path in sorted((ROOT / folder).rglob("*.py"))
        if str(path.relative_to(ROOT)) not in STARTED
        for line, text in texts(path)
        if FLAG.search(text)
    ]
    assert found == []
