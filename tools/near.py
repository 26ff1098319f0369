"""Run the tests that are near to what changed, the nearest first, within half a minute or so.

    python tools/near.py [--base COMMIT] [--list] [-- PYTEST_OPTION...]

Changed are the files that differ from where the branch left main, and new ones. Near is a test file
that changed itself, that is named after a changed module, that imports it, or that imports what
imports it. A changed file of no package is near to the tests that name it. Where a family may have
changed, the test runs that says what a family lacks. What the budget leaves out is counted: the
whole suite is `make pytest`.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import subprocess
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import grimp

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    "asking",
    "integrations",
    "judge",
    "judge_service",
    "labels",
    "metrics",
    "sdk",
    "studies",
    "synonym_graphs",
)
# Measured: a file of these folders takes a fifth of a second, one of the others a second or more,
# since it starts servers, commands or whole runs.
QUICK = ("unit", "property", "contract")
COSTS = {True: 1, False: 5}
BUDGET = 20
# What the places of a family are in, and the test that says what a family lacks.
FAMILY_PLACES = re.compile("metrics/hallujudge/metrics/(?!framework/|answers/|responses/)")
FAMILIES_TEST = "tests/contract/test_declared_families.py"
MOST_STEPS = 3


@dataclass(frozen=True, slots=True, kw_only=True, order=True)
class Near:
    """A test file, and how near it is."""

    steps: int
    """-1 if it changed itself, 0 if it is named after what changed, or the imports in between."""
    cost: int
    """Its share of the budget."""
    path: str
    """The file."""


def git(*arguments: str) -> list[str]:
    """Return the lines that git prints; none if it fails."""
    done = subprocess.run(
        ("git", *arguments),  # noqa: S607
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    )
    return done.stdout.splitlines() if done.returncode == 0 else []


def changed_files(base: str | None) -> list[str]:
    """Return the files that differ from a commit, by default from where the branch left main."""
    found = [base] if base else [*git("merge-base", "HEAD", "main"), "HEAD"]
    return git("diff", "--name-only", found[0]) + git("ls-files", "-o", "--exclude-standard")


def module_of(path: str) -> str | None:
    """Return the name under which a file is imported; None for one that is not."""
    parts = Path(path).with_suffix("").parts
    if not path.endswith(".py"):
        return None
    if parts[0] == "tests":
        return ".".join(parts[1:]) if parts[1] in ("support", "oracles") else None
    inside = parts[1:] if parts[1:2] == ("hallujudge",) else ()
    return ".".join(inside[:-1] if inside[-1:] == ("__init__",) else inside) or None


def imports_of(path: Path) -> Iterator[str]:
    """Yield what a file imports: modules, and names that may be modules."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (name.name for name in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and not node.level:
            yield node.module
            yield from (f"{node.module}.{name.name}" for name in node.names)


def importers() -> dict[str, set[str]]:
    """Return who imports each module: modules by name, test files by path."""
    graph = grimp.build_graph(
        *(f"hallujudge.{name}" for name in PACKAGES), cache_dir=str(ROOT / ".import_linter_cache")
    )
    found = {name: graph.find_modules_that_directly_import(name) for name in graph.modules}
    for path in (ROOT / "tests").rglob("*.py"):
        name = str(path.relative_to(ROOT))
        for imported in imports_of(path):
            found.setdefault(imported, set()).add(module_of(name) or name)
    return found


def steps_to_tests(changed: Iterable[str], known: Mapping[str, set[str]]) -> dict[str, int]:
    """Return how many imports lie between changed modules and each test file."""
    steps = dict.fromkeys(changed, 0)
    reached = list(steps)
    for count in range(1, MOST_STEPS + 1):
        found = set().union(*(known.get(name, set()) for name in reached)) - steps.keys()
        steps |= dict.fromkeys(found, count)
        reached = list(found)
    return {name: count for name, count in steps.items() if is_test(name)}


def is_test(path: str) -> bool:
    """Return whether a path is that of a test file."""
    return Path(path).name.startswith("test_") and path.endswith(".py")


def named_after(path: str, tests: Iterable[str]) -> Iterator[str]:
    """Yield the test files that are named after a module of a package."""
    stem = Path(path).stem.strip("_")
    yield from (test for test in tests if stem and f"_{stem}_" in f"_{Path(test).stem}_")


def naming(path: str, tests: Sequence[str]) -> Iterator[str]:
    """Yield the tests of the checkout that have a file's name or say it, or else its folder's."""
    yield from named_after(path.lower(), tests)
    texts = {test: (ROOT / test).read_text(encoding="utf-8") for test in tests}
    for name in (Path(path).name, f'"{Path(path).parts[0]}'):
        if found := [test for test, text in texts.items() if name in text]:
            yield from found
            return


def near_tests(changed: Iterable[str]) -> list[Near]:
    """Return the test files near to changed files, the nearest first."""
    tests = [str(path.relative_to(ROOT)) for path in (ROOT / "tests").rglob("test_*.py")]
    project = [test for test in tests if test.startswith("tests/project/")]
    files = list(changed)
    modules = [name for path in files if (name := module_of(path))]
    steps = steps_to_tests(modules, importers()) if modules else {}
    for path in files:
        if is_test(path):
            steps[path] = -1
        elif module_of(path):
            steps |= {test: min(0, steps.get(test, 0)) for test in named_after(path, tests)}
        else:
            steps = dict.fromkeys(naming(path, project), 1) | steps
    if any(map(FAMILY_PLACES.match, files)):
        steps[FAMILIES_TEST] = -1
    return sorted(
        Near(steps=steps[test], cost=COSTS[test.split("/")[1] in QUICK], path=test)
        for test in steps
        if (ROOT / test).is_file()  # it may have been removed
    )


def within_budget(tests: Iterable[Near]) -> list[str]:
    """Return the test files to run: all that changed, and the nearest others in the budget."""
    chosen, left = [], BUDGET
    for test in tests:
        cost = 0 if test.steps < 0 else test.cost
        if cost <= left:
            chosen.append(test.path)
            left -= cost
    return chosen


def main() -> int:
    """Run pytest on what is near; return the exit code if there is nothing to run."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", metavar="COMMIT", help="compare with this commit, such as HEAD")
    parser.add_argument("--list", action="store_true", help="name the test files, run none")
    parser.add_argument("options", metavar="PYTEST_OPTION", nargs="*", help="options of pytest")
    given = parser.parse_args()
    changed = changed_files(given.base)
    tests = near_tests(changed)
    chosen = within_budget(tests)
    print(
        f"{len(changed)} changed files: {len(chosen)} test files are near, "
        f"{len(tests) - len(chosen)} farther ones are left out",
        flush=True,
    )
    if given.list:
        print("\n".join(chosen))
    if given.list or not chosen:
        return 0
    os.execv(  # noqa: S606 - pytest takes the place of this process
        sys.executable, (sys.executable, "-m", "pytest", *given.options, *chosen)
    )


if __name__ == "__main__":
    sys.exit(main())
