"""Print figures of the library's structure: modules, code lines, importers, names, rooms.

    python tools/count_modules.py [--list] [--families]

The figures are for reading, not a gate. Code lines leave out blank lines, comments, docstrings and
generated code. An import counts wherever it is: at the top, in a function, or for types alone.
A room is a folder or module directly below a source root; an arrow is an import from one room of a
source root into another. ``--list`` adds the modules with one importer and the recurring names.
``--families`` prints instead how many lines of code each family has in each layer; its messages
count as ``proto``. What it has in the rooms beside the core is counted apart, as are its analyses
and builders of questions. All benchmarks of a family are counted together; ``--list`` adds the
lines of each of its modules.
"""

from __future__ import annotations

import argparse
import ast
import io
import statistics
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from hallujudge.metrics.families import FAMILIES

ROOT = Path(__file__).resolve().parent.parent
PACKAGES = (
    "metrics",
    "synonym_graphs",
    "judge_service",
    "sdk",
    "asking",
    "integrations",
    "labels",
    "studies",
)
# Layout tokens and comments are on a line without making it a line of code.
SILENT = frozenset(
    {tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT,
     tokenize.ENCODING, tokenize.ENDMARKER}
)  # fmt: skip
# A family has a module of its name in each layer, and every package may have its own errors.
FREE_NAMES = frozenset({"__init__", "__main__", "errors"})


# Layer of a family's modules -> what its column is called; all others are counted apart.
LAYERS = {
    "metrics": "declared",
    "judge_service.engine": "engine",
    "sdk.archives": "reader",
    "sdk.cli": "command",
    "sdk.report": "report",
}
APART = ("_analyses", "_builder")
PROTOS = ROOT / "protos/hallujudge/judge/v1"


@dataclass(frozen=True, slots=True, kw_only=True)
class Module:
    """A module of the library."""

    name: str
    """Its dotted name; a package's is the name of the package."""
    base: str
    """The name of its file, without the ending."""
    lines: int
    """Its lines of code."""
    imports: frozenset[str]
    """The modules of the library that it imports."""

    @property
    def package(self) -> str:
        """The source root, such as ``sdk``."""
        return self.name.split(".")[1]

    @property
    def room(self) -> str:
        """The folder or module directly below the source root."""
        return ".".join(self.name.split(".")[:3])


def code_lines(text: str) -> int:
    """Return how many lines hold code: no blank lines, comments or docstrings."""
    documented: set[int] = set()
    for node in ast.walk(ast.parse(text)):
        # A string alone on its lines documents a module, class, function or field.
        value = node.value if isinstance(node, ast.Expr) else None
        if isinstance(value, ast.Constant) and isinstance(value.value, str):
            documented.update(range(value.lineno, (value.end_lineno or value.lineno) + 1))
    held: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(text).readline):
        if token.type not in SILENT:
            held.update(range(token.start[0], token.end[0] + 1))
    return len(held - documented)


def sources(root: Path) -> dict[str, Path]:
    """Return the library's modules by dotted name, without generated code."""
    found = {}
    for package in PACKAGES:
        base = root / package
        for path in sorted(base.rglob("*.py")):
            parts = list(path.relative_to(base).with_suffix("").parts)
            if "_pb2" not in path.name:
                found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def imported(name: str, path: Path, tree: ast.AST, known: set[str]) -> Iterator[str]:
    """Yield the modules of the library that a module imports."""
    package = name if path.stem == "__init__" else name.rpartition(".")[0]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names if alias.name in known)
        elif isinstance(node, ast.ImportFrom):
            above = package.split(".")[: len(package.split(".")) - node.level + 1]
            parts = (above if node.level else []) + (node.module.split(".") if node.module else [])
            origin = ".".join(parts)
            for alias in node.names:
                if (module := f"{origin}.{alias.name}") in known:
                    yield module
                elif origin in known:
                    yield origin


def read(root: Path = ROOT) -> list[Module]:
    """Return the library's modules."""
    paths = sources(root)
    modules = []
    for name, path in paths.items():
        text = path.read_text("utf-8")
        taken = frozenset(imported(name, path, ast.parse(text), set(paths))) - {name}
        module = Module(
            name=name,
            base=path.stem,
            lines=code_lines(text),
            imports=taken,
        )
        modules.append(module)
    return modules


def single_importers(modules: list[Module]) -> list[Module]:
    """Return the modules that exactly one other module imports."""
    counts = Counter(taken for module in modules for taken in module.imports)
    return [module for module in modules if counts[module.name] == 1 and module.base != "__init__"]


def recurring(modules: list[Module]) -> dict[str, int]:
    """Return the base names that more than three modules have, families' names apart."""
    metrics = [module for module in modules if module.room.startswith("hallujudge.metrics.")]
    rooms = {module.room.rpartition(".")[2] for module in metrics}
    families = rooms - {"framework", "answers", "calibration", "families"} | {"vidhal"}
    counts = Counter(module.base for module in modules)
    return {
        base: count
        for base, count in counts.most_common()
        if count > 3 and base not in families | FREE_NAMES
    }


def arrows(modules: list[Module]) -> dict[str, tuple[int, int]]:
    """Return how many rooms each source root has, and how many arrows between them."""
    rooms: defaultdict[str, set[str]] = defaultdict(set)
    between: defaultdict[str, set[tuple[str, str]]] = defaultdict(set)
    by_name = {module.name: module for module in modules}
    for module in modules:
        if module.lines and module.name.count(".") > 1:
            rooms[module.package].add(module.room)
        for taken in (by_name[name] for name in module.imports):
            apart = taken.room != module.room and taken.package == module.package
            if apart and taken.name.count(".") > 1:
                between[module.package].add((module.room, taken.room))
    return {name: (len(rooms[name]), len(between[name])) for name in PACKAGES}


def family_lines(modules: list[Module], families: list[str]) -> dict[str, Counter[str]]:
    """Return family -> layer -> lines of code; ``total`` leaves out what is counted apart."""
    counts = {family: Counter[str]() for family in families}
    for module in modules:
        parts = module.name.split(".")[1:]
        if family := family_of(module, families):
            layer = LAYERS.get(".".join(parts[: 1 if parts[0] == "metrics" else 2]))
            special = layer is None or module.base.endswith(APART)
            counts[family]["apart" if special else str(layer)] += module.lines
    for family, found in counts.items():
        found["proto"] = proto_lines(PROTOS / f"{family}.proto")
        found["total"] = found.total() - found["apart"]
    return counts


def family_of(module: Module, families: list[str]) -> str:
    """Return the family that a module, its package or the beginning of its name is called by."""
    parts = [part for part in module.name.split(".") if part not in families]
    of_beginnings = (each for part in parts for each in families if part.startswith(f"{each}_"))
    named = next((part for part in module.name.split(".") if part in families), "")
    return named or next(of_beginnings, "")


def proto_lines(path: Path) -> int:
    """Return how many lines of a .proto file are neither blank nor comments; 0 without one."""
    lines = path.read_text("utf-8").splitlines() if path.exists() else []
    return sum(bool(text := line.strip()) and not text.startswith("//") for line in lines)


def print_families(modules: list[Module], families: list[str], *, listed_too: bool) -> None:
    """Print the lines of code of each family, the largest first, and those of its modules."""
    counts = family_lines(modules, families)
    columns = (*LAYERS.values(), "proto", "total", "apart")
    print(f"{'family':<16}", *(f"{name:>9}" for name in columns))
    for family, found in sorted(counts.items(), key=lambda each: -each[1]["total"]):
        print(f"{family:<16}", *(f"{found[name]:>9}" for name in columns))
        for module in modules if listed_too else ():
            if module.lines and family_of(module, families) == family:
                print(f"    {module.lines:>4} {module.name.removeprefix('hallujudge.')}")


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--list", action="store_true", help="name the modules behind the figures")
    parser.add_argument("--families", action="store_true", help="print each family's lines")
    options = parser.parse_args()
    modules = read()
    if options.families:
        print_families(modules, FAMILIES, listed_too=options.list)
        return
    lines = [module.lines for module in modules]
    single, names = single_importers(modules), recurring(modules)
    print(f"modules {len(modules)}, code lines {sum(lines)}, median {statistics.median(lines):.0f}")
    print(f"modules with one importer {len(single)}, under 40 lines {sum(n < 40 for n in lines)}")
    print("names more than three modules have:", ", ".join(f"{n} {c}" for n, c in names.items()))
    for package, (rooms, count) in arrows(modules).items():
        held = sum(module.lines for module in modules if module.package == package)
        print(f"{package}: {held} code lines, {rooms} rooms, {count} arrows between them")
    if options.list:
        print(*(f"one importer: {module.name} ({module.lines})" for module in single), sep="\n")


if __name__ == "__main__":
    main()
