"""Make small mutations in code that changed, and print those that no test near them notices.

    python tools/mutants.py [--base COMMIT] [--count 40] [--seed 0] [--limit 120] [PATH ...]

A mutation changes one place: a comparison, ``and`` or ``or``, a sign, ``not``, a number, a truth
value, what a function returns, or a statement that is left out. They are drawn by the seed from the
modules of all folders in which something changed since the base, which by default is the newest
commit that is at least a week old. Paths in its place are drawn from whatever their age. Each
mutation is made in a copy of the tree in a temporary folder; the checkout is never touched.

A mutation is killed if a test near it fails that passes without it. Those that no test noticed are
printed again at the end: either a test is missing, or the change makes no difference to anybody.
"""

from __future__ import annotations

import argparse
import ast
import random
import re
import shutil
import subprocess
import sys
import sysconfig
import tempfile
import time
import venv
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from queue import SimpleQueue

ROOT = Path(__file__).resolve().parent.parent
ROOTS = (
    "metrics",
    "synonym_graphs",
    "judge_service",
    "sdk",
    "asking",
    "integrations",
    "labels",
    "studies",
)
SCRIPTS = {
    "hallujudge": "hallujudge.sdk.cli",
    "hallujudge-server": "hallujudge.judge_service.__main__",
}
# Tests of these kinds start servers and browsers, or read large files: too slow for each mutation.
SLOW = ("e2e", "golden", "congruence", "project")
# A run of many modules' tests would say little of the one that is mutated.
MOST_TESTS = 12
# pytest's exit code.
_NONE_RAN = 5
NOTICED = ("killed", "timed out")
COMPARISONS: dict[type[ast.cmpop], type[ast.cmpop]] = {
    ast.Eq: ast.NotEq, ast.NotEq: ast.Eq, ast.Lt: ast.LtE, ast.LtE: ast.Lt, ast.Gt: ast.GtE,
    ast.GtE: ast.Gt, ast.Is: ast.IsNot, ast.IsNot: ast.Is, ast.In: ast.NotIn, ast.NotIn: ast.In,
}  # fmt: skip
SIGNS: dict[type[ast.operator], type[ast.operator]] = {ast.Add: ast.Sub, ast.Sub: ast.Add}
# The parts of a node that say nothing about what it does.
IDLE_PARTS = ("annotation", "returns", "decorator_list", "type_comment", "type_params")


@dataclass(frozen=True, slots=True, kw_only=True)
class Mutation:
    """One change of one module."""

    path: Path
    """The module, as a path in the tree."""
    line: int
    """The line where the change begins."""
    start: int
    """The first byte that is replaced."""
    end: int
    """One past the last byte that is replaced."""
    before: str
    """The text that is replaced."""
    after: str
    """What replaces it."""

    def __str__(self) -> str:
        before = " ".join(self.before.split())
        return f"{self.path}:{self.line}: {before}  ->  {self.after}"

    def applied_to(self, source: bytes) -> bytes:
        """Return the mutated module."""
        return source[: self.start] + self.after.encode() + source[self.end :]


def mutations_of(path: Path, source: bytes) -> list[Mutation]:
    """Return every mutation of a module, in the order of its nodes."""
    starts = [0]
    for line in source.split(b"\n"):
        starts.append(starts[-1] + len(line) + 1)
    found = []
    for node in _active(ast.parse(source)):
        for after in _changes(node):
            start = starts[node.lineno - 1] + node.col_offset
            end = starts[(node.end_lineno or 0) - 1] + (node.end_col_offset or 0)
            before = source[start:end].decode()
            if before != after:
                mutation = Mutation(
                    path=path, line=node.lineno, start=start, end=end, before=before, after=after
                )
                found.append(mutation)
    return found


def _active(node: ast.AST) -> Iterator[ast.expr | ast.stmt]:
    """Yield the nodes that do something, with their parts."""
    for name, value in ast.iter_fields(node):
        if name in IDLE_PARTS:
            continue
        for part in value if isinstance(value, list) else [value]:
            # In Python 3.11 the parts of an f-string have wrong places.
            if isinstance(part, ast.JoinedStr) or _is_idle(part):
                continue
            if isinstance(part, ast.expr | ast.stmt):
                yield part
            if isinstance(part, ast.AST):
                yield from _active(part)


def _is_idle(node: object) -> bool:
    """Return whether a statement is for type checkers and readers alone."""
    if isinstance(node, ast.If):
        return isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _changes(node: ast.expr | ast.stmt) -> Iterator[str]:
    """Yield what may replace a node."""
    match node:
        case ast.Compare(ops=[first, *others]):
            ops = [COMPARISONS[type(first)](), *others]
            yield _text(ast.Compare(node.left, ops, node.comparators))
        case ast.BoolOp(op=ast.And()):
            yield _text(ast.BoolOp(ast.Or(), node.values))
        case ast.BoolOp():
            yield _text(ast.BoolOp(ast.And(), node.values))
        case ast.UnaryOp(op=ast.Not()):
            yield _text(node.operand)
        case ast.BinOp() if type(node.op) in SIGNS:
            yield _text(ast.BinOp(node.left, SIGNS[type(node.op)](), node.right))
        case ast.Constant(value=bool() as value):
            yield str(not value)
        case ast.Constant(value=int() | float() as value):
            yield str(value + 1)
        case ast.Return(value=ast.expr() as value) if ast.unparse(value) != "None":
            yield "return None"
        case ast.Expr() | ast.AugAssign() | ast.Raise() | ast.Continue() | ast.Break():
            yield "pass"
        case ast.Assign(targets=[ast.Attribute() | ast.Subscript()]):
            yield "pass"


def _text(node: ast.expr) -> str:
    # In brackets, so that neither neighbours nor lines change what belongs together.
    return f"({ast.unparse(node)})"


def changed_modules(base: str) -> list[Path]:
    """Return the modules of every folder of the library in which a file changed since the base."""
    listed = git("diff", "--name-only", base, "--", *ROOTS).splitlines()
    folders = sorted({Path(name).parent for name in listed if name.endswith(".py")})
    return modules_below(folders, deep=False)


def modules_below(paths: list[Path], *, deep: bool) -> list[Path]:
    """Return the modules in folders, and those that are named themselves."""
    pattern = "**/*.py" if deep else "*.py"
    found = {
        file.relative_to(ROOT)
        for path in paths
        for file in ([ROOT / path] if path.suffix == ".py" else (ROOT / path).glob(pattern))
        if file.is_file()
    }
    return sorted(found)


def week_old_commit() -> str:
    """Return the newest commit that is at least a week old, or the first one."""
    old = git("rev-list", "-1", "--before=1.week", "HEAD")
    return old or git("rev-list", "--max-parents=0", "HEAD").splitlines()[-1]


def git(*arguments: str) -> str:
    """Return what git prints."""
    command = ("git", *arguments)
    done = subprocess.run(command, cwd=ROOT, check=True, capture_output=True, encoding="utf-8")
    return done.stdout.strip()


def near_tests(module: Path) -> list[str]:
    """Return the test modules near a module, the nearest first.

    Those of its name come first, then those that import it, then those of its folder.
    """
    dotted = ".".join(module.with_suffix("").parts[1:]).removesuffix(".__init__")
    package, _, name = dotted.rpartition(".")
    imports = re.compile(
        rf"\b{re.escape(dotted)}\b|from {re.escape(package)} import [^\n]*\b{re.escape(name)}\b"
    )
    own = re.compile(rf"test_({name}|{name.removesuffix('s')})(_\w+)?\.py")
    # metrics/hallujudge/metrics/pope/x.py -> tests/unit/metrics/pope
    folder = module.parent.parts[2:]
    ranked = []
    for test in sorted((ROOT / "tests").glob("**/test_*.py")):
        place = test.relative_to(ROOT / "tests").parts
        # All tests of a benchmark are in its golden test, which skips without its data.
        if place[0] in SLOW and not (place[0] == "golden" and own.fullmatch(test.name)):
            continue
        same_folder = place[1:-1] == folder
        if own.fullmatch(test.name):
            ranked.append((0 if same_folder else 1, test))
        elif imports.search(test.read_text(encoding="utf-8")):
            ranked.append((2, test))
        elif same_folder:
            ranked.append((3, test))
    nearest = sorted(ranked)[:MOST_TESTS]
    return [str(test.relative_to(ROOT)) for _, test in nearest]


class Copy:
    """A copy of the tree with an environment of its own, in which one module changes at a time.

    Args:
        folder: Where it is made; the caller removes it.
        limit: Seconds that the tests of one mutation may take.
    """

    def __init__(self, folder: Path, limit: float) -> None:
        self._tree = folder / "tree"
        self._cache = folder / "cache"
        self._limit = limit
        for name in git("ls-files", "--cached", "--others", "--exclude-standard").splitlines():
            source, copy = ROOT / name, self._tree / name
            if source.is_file():
                copy.parent.mkdir(parents=True, exist_ok=True)
                shutil.copyfile(source, copy)
        self._python = environment(folder / "env", self._tree)

    def fate_of(self, mutation: Mutation) -> str:
        """Return what the tests near a mutation say of it."""
        tests = near_tests(mutation.path)
        if not tests:
            return "no tests near it"
        source = (ROOT / mutation.path).read_bytes()
        # A test that fails anyway has noticed nothing. Without a failed test, none is run again.
        fate = "killed"
        again: tuple[str, ...] = ("--last-failed", "--last-failed-no-failures=none")
        try:
            self._write(mutation.path, mutation.applied_to(source))
            if self._pass(*tests):
                return "SURVIVED"
        except subprocess.TimeoutExpired:
            fate, again = "timed out", ()
        finally:
            self._write(mutation.path, source)
        try:
            return fate if self._pass(*again, *tests) else "its tests fail anyway"
        except subprocess.TimeoutExpired:
            return "its tests are slow"

    def _write(self, module: Path, source: bytes) -> None:
        (self._tree / module).write_bytes(source)
        # Python compares seconds and sizes, which may be those of the mutation before.
        for compiled in (self._tree / module.parent / "__pycache__").glob(f"{module.stem}.*"):
            compiled.unlink()

    def _pass(self, *arguments: str) -> bool:
        command = (self._python, "-m", "pytest", "-x", "-q", "-o", f"cache_dir={self._cache}")
        done = subprocess.run(
            (*command, *arguments), cwd=self._tree, timeout=self._limit, capture_output=True,
            check=False,
        )  # fmt: skip
        return done.returncode in (0, _NONE_RAN)


def environment(folder: Path, tree: Path) -> Path:
    """Make an environment with the packages of this one and the library of a tree.

    The processes that tests start find that library too, without any variable.
    """
    venv.create(folder, symlinks=True)
    python = folder / "bin" / "python"
    packages = Path(sysconfig.get_path("purelib", vars={"base": str(folder)}))
    paths = [*(tree / root for root in ("protos", *ROOTS)), sysconfig.get_path("purelib")]
    packages.joinpath("tree.pth").write_text("".join(f"{path}\n" for path in paths))
    for name, module in SCRIPTS.items():
        script = folder / "bin" / name
        script.write_text(f"#!{python}\nimport sys\nfrom {module} import main\nsys.exit(main())\n")
        script.chmod(0o755)
    return python


def try_all(mutations: list[Mutation], copies: list[Copy]) -> dict[Mutation, str]:
    """Return each mutation's fate, and print it when it is known."""
    free: SimpleQueue[Copy] = SimpleQueue()
    for copy in copies:
        free.put(copy)

    def fate(mutation: Mutation) -> str:
        copy = free.get()
        try:
            return copy.fate_of(mutation)
        finally:
            free.put(copy)

    fates = {}
    with ThreadPoolExecutor(len(copies)) as pool:
        for mutation, found in zip(mutations, pool.map(fate, mutations), strict=True):
            print(f"{found:22}{mutation}", flush=True)
            fates[mutation] = found
    return fates


def main() -> int:
    """Draw mutations and try them; survivors are no error, since some changes mean nothing."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("paths", nargs="*", type=Path, metavar="PATH", help="modules or folders")
    parser.add_argument("--base", help="commit since which code changed; default: a week old")
    parser.add_argument("--count", type=int, default=40, help="mutations to draw")
    parser.add_argument("--seed", type=int, default=0, help="seed of the draw")
    parser.add_argument("--limit", type=float, default=120, help="seconds for one mutation")
    parser.add_argument("--jobs", type=int, default=2, help="mutations at the same time")
    given = parser.parse_args()
    if given.paths:
        modules = modules_below(given.paths, deep=True)
    else:
        modules = changed_modules(given.base or week_old_commit())
    every = [each for path in modules for each in mutations_of(path, (ROOT / path).read_bytes())]
    draw = random.Random(given.seed)  # noqa: S311  # the same mutations for the same seed
    drawn = draw.sample(every, min(given.count, len(every)))
    print(f"{len(drawn)} of {len(every)} mutations in {len(modules)} modules, seed {given.seed}")
    began = time.monotonic()
    with tempfile.TemporaryDirectory(prefix="mutants-") as work:
        copies = [Copy(Path(work, str(number)), given.limit) for number in range(given.jobs)]
        fates = try_all(drawn, copies)
    counts = ", ".join(f"{count} {fate}" for fate, count in Counter(fates.values()).items())
    print(f"{counts or 'nothing to change'}; {time.monotonic() - began:.0f} s")
    for mutation, fate in fates.items():
        if fate not in NOTICED:
            print(f"  {mutation}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
