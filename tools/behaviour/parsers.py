"""What an answer parser for yes-or-no questions reads, for twenty answers.

    python tools/behaviour/parsers.py lmms-eval

Prints one cell for each answer, as JSON. `behaviour_tables.py` installs the packages and compares.
"""

from __future__ import annotations

import ast
import json
import re
import sys
from collections.abc import Callable
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ANSWERS = (
    "Yes",
    "yes",
    "YES.",
    "Yes, there is a dog.",
    "No",
    "NO",
    "No.",
    "no, there is not",
    "There is no dog.",
    "There isn't a dog.",
    "Yes. There is no doubt.",
    "No. Yes.",
    "Not sure",
    "I do not know",
    "**Yes**",
    "Answer: No",
    "(yes)",
    "<think>Is there? No dog.</think> Yes",
    "是",
    "",
)


def from_source(package: str, path: str, *names: str) -> dict[str, Any]:
    """Run only these definitions of an installed file, so that its imports need no package."""
    spec = find_spec(package)
    assert spec is not None, f"install {package}"
    file = Path(next(iter(spec.submodule_search_locations or ()))) / path
    tree = ast.parse(file.read_text(encoding="utf-8"))
    wanted: list[ast.stmt] = [
        node
        for node in tree.body
        if (isinstance(node, ast.FunctionDef) and node.name in names)
        or (isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) in names)
    ]
    assert len(wanted) == len(names), f"{file} has not all of {names}"
    space: dict[str, Any] = {"re": re, "Optional": Any}
    exec(compile(ast.Module(wanted, []), str(file), "exec"), space)  # noqa: S102
    return space


def lmms_eval() -> Callable[[str], Any]:
    """Return lmms-eval's prediction; its metrics compare it with yes and no."""
    path = "tasks/pope/utils.py"
    process = from_source("lmms_eval", path, "pope_process_results")["pope_process_results"]
    doc = {"answer": "yes", "question_id": 1}
    return lambda text: process(doc, [text])["pope_accuracy"]["prediction"]


def vlmevalkit() -> Callable[[str], Any]:
    """Return VLMEvalKit's rule, of either package that ships it."""
    space = from_source("vlmeval", "smp/misc.py", "process_punctuation")
    rule = from_source("vlmeval", "dataset/utils/yorn.py", "YOrN_Extraction")
    rule.update(space)
    return lambda text: rule["YOrN_Extraction"](text)


def evalscope() -> Callable[[str], Any]:
    """Return evalscope's rule as its POPE calls it."""
    names = ("_YES_PATTERN", "_NO_PATTERN", "_LOWERCASE_EXACT_PATTERN", "extract_verdict")
    rule = from_source("evalscope", "utils/yes_no.py", *names)["extract_verdict"]
    return lambda text: rule(text, allow_lowercase_exact=True)


def ours(name: str) -> Callable[[], Callable[[str], Any]]:
    """Return one of our parsers, those that follow released scripts included."""

    def parser() -> Callable[[str], Any]:
        from hallujudge.metrics.answers.yes_no import YES_NO_PARSERS

        return YES_NO_PARSERS[name]

    return parser


PARSERS: dict[str, Callable[[], Callable[[str], Any]]] = {
    "lmms-eval": lmms_eval,
    "ms-vlmeval": vlmevalkit,
    "nvidia-vlmeval": vlmevalkit,
    "evalscope": evalscope,
    **{name: ours(name) for name in ("published", "opera", "first-word", "strict")},
}


def cell(read: Any) -> str:
    """Return yes, no, or a dash for anything else."""
    word = str(read).lower()
    return word if word in {"yes", "no"} else "-"


def main() -> None:
    """Print a parser's cells."""
    parse = PARSERS[sys.argv[1]]()
    print(json.dumps({answer: cell(parse(answer)) for answer in ANSWERS}))


if __name__ == "__main__":
    main()
