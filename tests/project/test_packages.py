"""The two packages of a release: hallujudge-client, and hallujudge with the rest."""

from __future__ import annotations

import ast
import re
import runpy
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from support.client_alone import REQUIRED, files_of_client, make_site, run_alone

ROOT = Path(__file__).resolve().parents[2]
ROOTS = (
    "protos",
    "sdk",
    "metrics",
    "synonym_graphs",
    "judge_service",
    "asking",
    "integrations",
    "labels",
    "studies",
)


def pyproject(folder: Path) -> dict[str, Any]:
    return tomllib.loads((folder / "pyproject.toml").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tree from which hallujudge is built for a release."""
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so its files are not known")
    folder = tmp_path_factory.mktemp("whole")
    runpy.run_path(str(ROOT / "tools/build_packages.py"))["write_whole"](folder)
    return folder


def source_files(tree: Path) -> set[Path]:
    found = (path for root in ROOTS for path in (tree / root).rglob("*") if path.is_file())
    return {path.relative_to(tree) for path in found if path.suffix != ".pyc"}


def test_the_packages_share_no_file_and_hold_all_together(whole: Path) -> None:
    client, rest = set(files_of_client()), source_files(whole)
    assert client & rest == set()
    assert client | rest == source_files(ROOT)
    assert len(client) > 200
    assert len(rest) > 300


def test_hallujudge_requires_its_client_of_the_same_version(whole: Path) -> None:
    released, here, client = pyproject(whole), pyproject(ROOT), pyproject(ROOT / "client")
    version = here["project"]["version"]
    assert client["project"]["version"] == version
    wanted = released["project"]["dependencies"]
    assert set(wanted) - set(here["project"]["dependencies"]) == {f"hallujudge-client=={version}"}
    assert not (whole / "client").exists()


def test_the_client_requires_a_part_with_the_same_ranges() -> None:
    client, here = pyproject(ROOT / "client")["project"], pyproject(ROOT)["project"]
    assert set(client["dependencies"]) < set(here["dependencies"])
    assert client["requires-python"] == here["requires-python"]
    names = {re.split("[<>=]", line)[0] for line in client["dependencies"]}
    assert names & {"numpy", "networkx", "nltk", "textblob", "click", "rich"} == set()


def test_both_have_the_licence() -> None:
    assert (ROOT / "client/LICENSE").read_bytes() == (ROOT / "LICENSE").read_bytes()


def module_of(path: Path) -> str:
    parts = path.with_suffix("").parts[1:]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def imports_of(path: Path) -> Iterator[str]:
    """Yield the modules that a module imports when it is imported itself."""
    package = module_of(path) if path.name == "__init__.py" else module_of(path.parent / "x")[:-2]
    for node in _at_import(ast.parse((ROOT / path).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                above = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*above, *filter(None, [base])])
            yield from (f"{base}.{alias.name}" for alias in node.names)


def _at_import(tree: ast.AST) -> Iterator[ast.AST]:
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)):
            continue
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        yield node
        yield from _at_import(node)


def test_the_client_imports_what_it_has() -> None:
    """Else importing a module of it fails where hallujudge is not installed."""
    files = [path for path in files_of_client() if path.suffix == ".py"]
    known = {module_of(path) for path in files}
    everywhere = sys.stdlib_module_names | set(REQUIRED)
    lacking = [
        f"{path} imports {name}"
        for path in files
        for name in imports_of(path)
        if name.partition(".")[0] not in everywhere
        # A name of a package may be a module, or what its __init__ defines.
        and not (name in known or (name.rpartition(".")[0] in known and not _is_module(name)))
    ]
    assert lacking == [], "add the module to the list in client/pyproject.toml, or import it later"


def _is_module(name: str) -> bool:
    parts = name.split(".")
    places = (ROOT / root / Path(*parts) for root in ROOTS)
    return any(place.with_suffix(".py").is_file() or place.is_dir() for place in places)


def test_every_module_of_the_client_is_imported_alone(tmp_path: Path) -> None:
    modules = [module_of(path) for path in files_of_client() if path.suffix == ".py"]
    code = "import sys, importlib\nfor name in sys.argv[1:]: importlib.import_module(name)"
    done = run_alone(make_site(tmp_path), "-c", code, *modules)
    assert done.returncode == 0, done.stderr


def test_pytest_finds_a_package_at_the_top_of_the_whole() -> None:
    """Where none begins there, pytest takes ``__main__`` for the plug-in's module, and warns."""
    name: str = pyproject(ROOT)["project"]["entry-points"]["pytest11"]["hallujudge"]
    assert name.count(".") == 1
    file = Path("integrations", *name.split("."), "__init__.py")
    assert (ROOT / file).is_file()
    assert file not in map(Path, files_of_client())
