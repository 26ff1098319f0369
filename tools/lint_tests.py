"""Reject tests that depend on the speed of the machine, or on private attributes.

    python tools/lint_tests.py [FOLDER ...]

Two rules, checked on the syntax tree, so that comments and strings never count:

* ``elapsed-time``: an ``assert`` that compares a difference of two readings of a clock, directly,
  through a variable, or through a function of the same file that returns one. Such a test fails
  on a machine that is busy. Prove the order of events instead: the thread that does the work, or
  other work that completes before a gate opens.
* ``private-attribute``: ``value._name`` where ``value`` is neither ``self`` nor ``cls``, and the
  same through ``getattr`` or ``monkeypatch.setattr``. Test what a caller can see.

Exit code: 0 without findings, 1 with findings.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
CLOCKS = frozenset({"monotonic", "monotonic_ns", "perf_counter", "perf_counter_ns", "time",
                    "time_ns", "process_time", "process_time_ns", "thread_time"})  # fmt: skip
# `loop.time()` reads a clock as well; `datetime.time()` takes the time of day from a given value.
CLOCK_OWNERS = frozenset({"time", "loop"})
BY_NAME = frozenset({"getattr", "setattr", "delattr", "hasattr", "object"})
# `super()._hook()` is an own attribute; `os._exit` and `sys._getframe` are documented functions.
OWN = frozenset({"self", "cls", "super()", "os", "sys"})
# A named tuple's `_fields`, `_replace`, `_asdict` and `_make` are documented: no fields of its own.
PRIVATE = re.compile(r"_(?!(?:fields|replace|asdict|make)$)[^_]")
ADVICE = {
    "elapsed-time": "asserts on elapsed time: prove the order of events instead",
    "private-attribute": "reads a private attribute: test what a caller can see",
}


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Finding:
    """A place that breaks a rule."""

    path: str
    line: int
    rule: str
    detail: str

    def __str__(self) -> str:
        """Return the finding as one line, as compilers write them."""
        return f"{self.path}:{self.line}: {self.rule}: `{self.detail}` {ADVICE[self.rule]}"


def is_clock(node: ast.AST) -> bool:
    """Return whether a node is a call that reads a clock."""
    if not isinstance(node, ast.Call):
        return False
    called = node.func
    if isinstance(called, ast.Name):
        return called.id in CLOCKS - {"time"}
    if not isinstance(called, ast.Attribute) or called.attr not in CLOCKS:
        return False
    owner = ast.unparse(called.value)
    return owner in CLOCK_OWNERS or owner.endswith(("_loop()", ".time"))


class Clocked:
    """The names of a file whose value is a clock time, or the difference of two."""

    def __init__(self, tree: ast.Module) -> None:
        self.read: set[str] = set()
        self.elapsed: set[str] = set()
        size = -1
        while size != len(self.read) + len(self.elapsed):
            size = len(self.read) + len(self.elapsed)
            for node in ast.walk(tree):
                self._learn(node)

    def reads(self, node: ast.AST) -> bool:
        """Return whether the value of an expression is a clock time."""
        return any(is_clock(n) or named(n) in self.read for n in ast.walk(node))

    def measures(self, node: ast.AST) -> bool:
        """Return whether the value of an expression is a difference of two clock times."""
        return any(
            named(n) in self.elapsed
            or (isinstance(n, ast.BinOp) and isinstance(n.op, ast.Sub) and self.reads(n))
            for n in ast.walk(node)
        )

    def _learn(self, node: ast.AST) -> None:
        for name, value in bound(node):
            if self.measures(value):
                self.elapsed.add(name)
            elif self.reads(value):
                self.read.add(name)


def named(node: ast.AST) -> str | None:
    """Return the name that a node reads, or the name of the function that it calls."""
    return node.id if isinstance(node, ast.Name) else None


def bound(node: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield the names that a statement assigns, each with its expression."""
    if isinstance(node, ast.Assign):
        for target in node.targets:
            yield from pairs(target, node.value)
    elif isinstance(node, ast.AnnAssign | ast.AugAssign | ast.NamedExpr) and node.value:
        yield from pairs(node.target, node.value)
    elif isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
        for inner in ast.walk(node):
            if isinstance(inner, ast.Return) and inner.value:
                yield node.name, inner.value


def pairs(target: ast.AST, value: ast.AST) -> Iterator[tuple[str, ast.AST]]:
    """Yield a target's names with their values; tuples are assigned by position."""
    if isinstance(target, ast.Name):
        yield target.id, value
    elif isinstance(target, ast.Tuple) and isinstance(value, ast.Tuple):
        for one, other in zip(target.elts, value.elts, strict=False):
            yield from pairs(one, other)
    elif isinstance(target, ast.Tuple):
        for one in target.elts:
            yield from pairs(one, value)


def timed(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the asserts that compare elapsed time."""
    clocked = Clocked(tree)
    for node in ast.walk(tree):
        if isinstance(node, ast.Assert):
            compares = (n for n in ast.walk(node.test) if isinstance(n, ast.Compare))
            if any(clocked.measures(n) for n in compares):
                yield node.test


def private(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the expressions that reach a private attribute of another object."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Attribute) and PRIVATE.match(node.attr):
            if ast.unparse(node.value) not in OWN:
                yield node
        elif isinstance(node, ast.Call) and reaches_by_name(node):
            yield node


def reaches_by_name(call: ast.Call) -> bool:
    """Return whether a call names a private attribute in a string: `getattr(x, "_y")`."""
    called = call.func.attr if isinstance(call.func, ast.Attribute) else named(call.func)
    return called in BY_NAME and any(
        isinstance(given, ast.Constant)
        and isinstance(given.value, str)
        and PRIVATE.match(given.value.rpartition(".")[2])
        for given in call.args[:2]
    )


def check(source: str, path: str) -> list[Finding]:
    """Return the findings in one file, in the order of its lines."""
    tree = ast.parse(source, path)
    rules = {"elapsed-time": timed(tree), "private-attribute": private(tree)}
    return sorted(
        Finding(path=path, line=node.lineno, rule=rule, detail=ast.unparse(node)[:70])
        for rule, nodes in rules.items()
        for node in nodes
        if isinstance(node, ast.expr)
    )


def check_folders(folders: Iterable[Path]) -> list[Finding]:
    """Return the findings of every Python file below the folders."""
    files = sorted(path for folder in folders for path in folder.rglob("*.py"))
    if not files:
        raise SystemExit(
            f"no Python file in {', '.join(map(str, folders))}: give a folder of tests"
        )
    return [
        finding
        for path in files
        for finding in check(path.read_text("utf-8"), show(path.resolve()))
    ]


def show(path: Path) -> str:
    """Return a path as seen from the repository, if it lies there."""
    return str(path.relative_to(ROOT) if path.is_relative_to(ROOT) else path)


def main(argv: list[str] | None = None) -> int:
    """Check the folders that the command line names."""
    parser = argparse.ArgumentParser(description="Check that tests pass on any machine.")
    parser.add_argument("folders", nargs="*", type=Path, default=[ROOT / "tests"])
    findings = check_folders(parser.parse_args(argv).folders)
    for finding in findings:
        print(finding)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
