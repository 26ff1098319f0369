"""The shape of the checkout: what would break an install or the layering, unseen by other tests."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from itertools import pairwise
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
PORTIONS = {
    "protos": "hallujudge/judge",
    "sdk": "hallujudge/sdk",
    "metrics": "hallujudge/metrics",
    "synonym_graphs": "hallujudge/synonym_graphs",
    "judge_service": "hallujudge/judge_service",
    "asking": "hallujudge/asking",
    "integrations": "hallujudge/integrations",
    "labels": "hallujudge/labels",
    "studies": "hallujudge/studies",
}
# What the light install can load; the service's own modules load their models lazily as well.
HEAVY = {"torch", "transformers", "sentence_transformers", "onnxruntime", "openai", "vllm", "ray"}
MAX_LINES = 500


def modules(*folders: str) -> list[Path]:
    """Returns our own modules, without the generated ones."""
    paths = (path for folder in folders or PORTIONS for path in (ROOT / folder).rglob("*.py"))
    return sorted(path for path in paths if "_pb2" not in path.name)


def show(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def parsed(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=show(path))


def nodes(path: Path, mention: str) -> Iterator[ast.AST]:
    """Yield the nodes of a module; of one whose text does not mention what is looked for, none."""
    text = path.read_text(encoding="utf-8")
    if re.search(mention, text):
        yield from ast.walk(ast.parse(text, filename=show(path)))


def is_type_checking(node: ast.stmt) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.dump(node.test)


def top_level(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yields the statements that run on import, those inside if, try, with and class included."""
    for node in body:
        yield node
        if is_type_checking(node) or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for name in ("body", "orelse", "finalbody"):
            yield from top_level(getattr(node, name, []))
        for handler in getattr(node, "handlers", []):
            yield from top_level(handler.body)


def imported(node: ast.stmt) -> set[str]:
    """Returns the top-level packages that a statement imports."""
    if isinstance(node, ast.Import):
        return {alias.name.partition(".")[0] for alias in node.names}
    if isinstance(node, ast.ImportFrom) and node.module and not node.level:
        return {node.module.partition(".")[0]}
    return set()


def code_run_from_data(path: Path) -> list[str]:
    """Returns the places in a module that could run code out of a file that it reads."""
    found = []
    for node in ast.walk(parsed(path)):
        called = node.func if isinstance(node, ast.Call) else None
        name = called.id if isinstance(called, ast.Name) else ""
        packages = imported(node) if isinstance(node, ast.stmt) else set()
        if name in {"eval", "exec", "compile", "__import__"}:
            found.append(f"{show(path)}:{called.lineno if called else 0} calls {name}")
        found += [f"{show(path)} imports {bad}" for bad in packages & {"pickle", "dill", "shelve"}]
    return found


def test_no_module_lies_directly_in_the_namespace() -> None:
    strays = [
        show(path) for folder in PORTIONS for path in (ROOT / folder / "hallujudge").glob("*.py")
    ]
    assert strays == [], "a module here hides the other folders under an editable install"


def test_source_roots_hold_nothing_else() -> None:
    strays = [show(path) for folder in PORTIONS for path in (ROOT / folder).glob("*.py")]
    assert strays == [], "the source roots are on sys.path: a module here can shadow a user's"


@pytest.mark.parametrize(("folder", "package"), PORTIONS.items())
def test_each_portion_is_a_typed_package(folder: str, package: str) -> None:
    portion = ROOT / folder / package
    assert (portion / "py.typed").is_file()
    assert (portion / "__init__.py").is_file()


def test_generated_code_is_there_and_not_ignored() -> None:
    sources = sorted((ROOT / "protos").rglob("*.proto"))
    generated = [
        source.with_name(f"{source.stem}_pb2{end}") for source in sources for end in (".py", ".pyi")
    ]
    assert sources
    assert [show(path) for path in generated if not path.is_file()] == [], "run `make protos`"
    if not (ROOT / ".git").exists():
        pytest.skip("not a git checkout, so nothing is ignored")
    command = ["git", "check-ignore", "--no-index", *map(show, generated)]
    ignored = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert ignored.stdout.split() == [], "ignored files silently leave the wheel"


def test_modules_stay_short() -> None:
    lengths = {show(path): len(path.read_text(encoding="utf-8").splitlines()) for path in modules()}
    assert {name: count for name, count in lengths.items() if count > MAX_LINES} == {}


def test_no_input_can_become_code() -> None:
    assert [place for path in modules() for place in code_run_from_data(path)] == []


def test_tasks_begin_where_their_errors_are_retrieved() -> None:
    """Otherwise asyncio may log "Task exception was never retrieved"."""
    begins = re.compile(r"\b(create_task|ensure_future)\(")
    found = [show(path) for path in modules() if begins.search(path.read_text(encoding="utf-8"))]
    assert found == ["judge_service/hallujudge/judge_service/stopping.py"]


def text_of(node: ast.AST, package: str) -> str:
    """Return a text; of one with ``{__package__}`` the text with the package's name, else empty."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else ""
    if not isinstance(node, ast.JoinedStr):
        return ""
    parts = [
        part.value if isinstance(part, ast.Constant) else package
        for part in node.values
        if isinstance(part, ast.Constant) or "'__package__'" in ast.dump(part)
    ]
    return "".join(map(str, parts)) if len(parts) == len(node.values) else ""


def package_of(path: Path) -> str:
    root = next(root for root in PORTIONS if path.is_relative_to(ROOT / root))
    return ".".join(path.parent.relative_to(ROOT / root).parts)


def texts_of(path: Path) -> Iterator[str]:
    """Yield the texts of a module that has one with our packages' name."""
    package = package_of(path)
    found = nodes(path, r"""["']hallujudge\.|__package__""")
    return filter(None, (text_of(node, package) for node in found))


def started_modules(path: Path) -> Iterator[str]:
    """Yield what commands of a module run by ``-m``."""
    for node in nodes(path, """["']-m["']"""):
        if isinstance(node, ast.List | ast.Tuple):
            words = [text_of(each, package_of(path)) for each in node.elts]
            yield from (word for mark, word in pairwise(words) if mark == "-m")


def test_processes_are_started_from_modules_that_run() -> None:
    started = {name for path in modules() for name in started_modules(path)}
    assert started
    for name in started:
        # A module that runs misses its arguments, or ends at once.
        command = [sys.executable, "-P", "-m", name]
        ran = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        assert "No module named" not in ran.stderr
        assert "argv" in ran.stderr, f"{name} does nothing when it is run: {ran.stderr}"


def test_modules_that_are_named_in_texts_exist() -> None:
    """The process from which workers are forked, for one, is started by its module's name."""
    ours = re.compile(rf"hallujudge\.(?:{'|'.join(PORTIONS.keys() - {'protos'})})(?:\.\w+)*")
    named = {text for path in modules() for text in texts_of(path) if ours.fullmatch(text)}
    assert "hallujudge.judge_service.forked_workers" in named
    assert [name for name in sorted(named) if find_spec(name) is None] == []


def test_light_layers_load_no_models() -> None:
    heavy = {
        show(path): sorted(names)
        for path in modules(*PORTIONS.keys() - {"judge_service"})
        if (names := set().union(*map(imported, top_level(parsed(path).body))) & HEAVY)
    }
    assert heavy == {}


def private_imports(path: Path) -> list[str]:
    """Return the private modules and names of other packages that a module imports."""
    found = []
    for node in ast.walk(parsed(path)):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names if alias.name.startswith("hallujudge.")]
        elif isinstance(node, ast.ImportFrom) and node.level != 1:
            names = [f"{node.module or ''}.{alias.name}" for alias in node.names]
            names = [name for name in names if node.level or name.startswith("hallujudge.")]
        else:
            continue
        private = [name for name in names if re.search(r"(^|\.)_(?!_)", name)]
        found += [f"{show(path)}:{node.lineno} imports {name}" for name in private]
    return found


def test_commands_know_neither_the_table_of_commands_nor_each_other_by_text() -> None:
    """import-linter sees no import by text, so only the whole command line may have any."""
    for path in modules("sdk/hallujudge/sdk/cli"):
        if path.name == "command_line.py":
            continue
        for node in nodes(path, "import"):
            if isinstance(node, ast.ImportFrom):
                assert "import_module" not in [alias.name for alias in node.names], show(path)
                assert (node.level, node.module) != (1, None), show(path)


def test_no_package_imports_what_is_private_to_another() -> None:
    assert [place for path in modules() for place in private_imports(path)] == []


def test_no_machine_is_named() -> None:
    names = (
        "pyproject.toml",
        "constraints.txt",
        "Makefile",
        ".ci/run",
        *(str(path.relative_to(ROOT)) for path in (ROOT / "deploy").rglob("*.*ml")),
        "deploy/Dockerfile",
    )
    pattern = re.compile(r"/work/|/root/|/opt/wheels|index-url|pypi", re.IGNORECASE)
    assert [
        name for name in names if pattern.search((ROOT / name).read_text(encoding="utf-8"))
    ] == []


def test_linter_sees_forbidden_code(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(globals(), "ROOT", tmp_path)
    module = tmp_path / "m.py"
    module.write_text("try:\n    import torch\nexcept ImportError:\n    import pickle\neval('1')\n")
    (tmp_path / "n.py").write_text("from ..a import _b\nfrom hallujudge.sdk._c import d\n")
    assert private_imports(tmp_path / "n.py") == [
        "n.py:1 imports a._b",
        "n.py:2 imports hallujudge.sdk._c.d",
    ]
    assert code_run_from_data(module) == ["m.py:5 calls eval", "m.py imports pickle"]
    assert set().union(*map(imported, top_level(parsed(module).body))) == {"torch", "pickle"}


def test_unit_and_integration_tests_mirror_the_packages() -> None:
    for kind in ("unit", "integration"):
        folders = [path.parent for path in (ROOT / "tests" / kind).rglob("test_*.py")]
        assert folders
        for folder in folders:
            room = folder.relative_to(ROOT / "tests" / kind)
            package, *rest = room.parts
            assert (ROOT / package / "hallujudge" / Path(package, *rest)).is_dir(), room


def test_unit_tests_start_no_process_and_open_no_socket() -> None:
    opened = re.compile(r"^(?:import|from) (?:subprocess|socket)|ServerProcess|ScriptedLlm", re.M)
    found = [
        p for p in (ROOT / "tests" / "unit").rglob("*.py") if opened.search(p.read_text("utf-8"))
    ]
    assert found == []


def test_test_files_are_named_by_what_they_test() -> None:
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert names
    assert not [name for name in names if re.search("review|misc|issue", name)]
