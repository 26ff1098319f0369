"""Print the public Python API: every public name with its parameters, fields and methods.

    python tools/public_api.py                  # print it
    python tools/public_api.py --write          # write tests/data/public_api.txt
    python tools/public_api.py --since v1.0.0   # breaking changes since a tag, by griffe

The names are those of ``__all__`` of :data:`PUBLIC_MODULES`.
"""

from __future__ import annotations

import argparse
import enum
import importlib
import inspect
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

ROOT = Path(__file__).resolve().parent.parent
SNAPSHOT = ROOT / "tests" / "data" / "public_api.txt"
PUBLIC_MODULES: Final = (
    "hallujudge.sdk",
    "hallujudge.sdk.analysis",
    "hallujudge.sdk.archives",
    "hallujudge.sdk.audit",
    "hallujudge.sdk.calibration",
    "hallujudge.sdk.comparison",
    "hallujudge.sdk.errors",
    "hallujudge.sdk.harness_adapters",
    "hallujudge.sdk.harness_scores",
    "hallujudge.sdk.pytest_plugin",
    "hallujudge.sdk.rewards",
    "hallujudge.sdk.schemas",
    "hallujudge.sdk.trackers",
    "hallujudge.metrics",
    "hallujudge.synonym_graphs",
    "hallujudge.synonym_graphs.tools",
    "hallujudge.judge_service.engine",
)
"""What users import from. Other modules may change in any release."""

PACKAGES = (
    "hallujudge.sdk",
    "hallujudge.metrics",
    "hallujudge.synonym_graphs",
    "hallujudge.judge_service",
    "hallujudge.asking",
    "hallujudge.integrations",
    "hallujudge.labels",
    "hallujudge.studies",
)
SOURCES = (
    "protos",
    "metrics",
    "synonym_graphs",
    "judge_service",
    "sdk",
    "asking",
    "integrations",
    "labels",
    "studies",
)
_PLAIN = (bool, int, float, str, type(None))


def public_api() -> str:
    """Return the snapshot: a line for each public name and each public member of it."""
    lines: list[str] = []
    known: dict[int, str] = {}
    for name in PUBLIC_MODULES:
        module = importlib.import_module(name)
        for public in sorted(module.__all__):
            path, value = f"{name}.{public}", getattr(module, public)
            # Several modules export some classes; one description of each is enough.
            first = known.setdefault(id(value), path)
            lines += _described(path, value) if first == path else [f"{path} = {first}"]
    return "".join(f"{line}\n" for line in lines)


def _described(path: str, value: object) -> Iterator[str]:
    if inspect.isclass(value):
        yield f"{path}{_bases(value)}{'' if issubclass(value, enum.Enum) else _signature(value)}"
        for name, member in sorted(_members(value).items()):
            yield f"{path}.{name}{_signature(member) if callable(member) else ''}"
    elif callable(value) and inspect.isfunction(inspect.unwrap(value)):
        yield f"{path}{_signature(value)}"
    else:
        yield path


def _bases(kind: type) -> str:
    own = [base.__name__ for base in kind.__mro__[1:] if base.__module__.startswith("hallujudge")]
    return f"[{', '.join(own)}]" if own else ""


def _members(kind: type) -> dict[str, object]:
    """Return what a class of ours defines or inherits from another one, but fields."""
    if issubclass(kind, enum.Enum):
        return dict.fromkeys(kind.__members__)
    found: dict[str, object] = {}
    for base in reversed(kind.__mro__):
        if base.__module__.startswith("hallujudge"):
            found |= {name: each for name, each in vars(base).items() if not name.startswith("_")}
    unwrapped = {name: getattr(each, "__func__", each) for name, each in found.items()}
    # Fields are in the class's own signature, and slots are how they are kept.
    fields = (*getattr(kind, "__dataclass_fields__", ()), *getattr(kind, "__struct_fields__", ()))
    return {name: each for name, each in unwrapped.items() if name not in fields}


def _signature(value: object) -> str:
    try:
        signature = inspect.signature(value)  # type: ignore[arg-type]  # any callable, or an error
    except (TypeError, ValueError):
        return ""
    # Structs have evaluated types, whose modules are no part of what is public.
    written = _written_types(value) if hasattr(value, "__struct_fields__") else {}
    parts: list[str] = []
    for name, found in signature.parameters.items():
        parameter = found.replace(annotation=written.get(name, found.annotation))
        starred = any(part.startswith("*") for part in parts)
        if parameter.kind is parameter.KEYWORD_ONLY and not starred:
            parts.append("*")
        parts.append(_parameter(parameter))
    return f"({', '.join(parts)})"


def _written_types(kind: object) -> dict[str, str]:
    """Return the types of a Struct's fields as its classes write them."""
    classes = reversed(inspect.getmro(kind))  # type: ignore[arg-type]  # a Struct is a class
    return {n: text for one in classes for n, text in vars(one).get("__annotations__", {}).items()}


def _parameter(parameter: inspect.Parameter) -> str:
    text = parameter.name
    if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
        text = ("*" if parameter.kind is parameter.VAR_POSITIONAL else "**") + text
    if parameter.annotation is not parameter.empty:
        hint = parameter.annotation
        text += f": {hint if isinstance(hint, str) else inspect.formatannotation(hint)}"
    if parameter.default is parameter.empty:
        return text
    default = parameter.default
    return f"{text} = {default!r}" if type(default) in _PLAIN else f"{text} = …"


def breaking_changes(tag: str) -> int:
    """Print what broke since a tag; return how many changes that are."""
    command = ("git", "show", f"{tag}:{SNAPSHOT.relative_to(ROOT)}")
    before = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=True).stdout
    after = set(SNAPSHOT.read_text(encoding="utf-8").splitlines())
    changed = "".join(f"{line}\n" for line in before.splitlines() if line not in after)
    # Without a change the packages need not be read, which takes a minute.
    return _broken(tag, list(dict.fromkeys(_names(changed)))) if changed else 0


def _broken(tag: str, names: list[str]) -> int:
    import griffe  # of the documentation's environment, or of one that is made for this

    with tempfile.TemporaryDirectory() as work:
        archive = Path(work, "sources.zip")
        command = ("git", "archive", "-o", archive, tag, *SOURCES)
        subprocess.run(command, cwd=ROOT, check=True)
        shutil.unpack_archive(archive, work)
        held = (_held(_loaded(root), names) for root in (Path(work), ROOT))
        changes = list(griffe.find_breaking_changes(*held))
    for change in changes:
        print(change.explain(griffe.ExplanationStyle.ONE_LINE))
    return len(changes)


def _held(modules: Any, names: list[str]) -> Any:
    """Return one module that has these names; griffe compares what modules have."""
    import griffe

    held = griffe.Module("public", filepath=ROOT / "public.py")
    for name in names:
        if found := _found(modules, name):
            held.set_member(name.replace(".", "_"), found)
    return held


def _found(modules: Any, name: str) -> Any:
    """Return an object of a public name; None if it is not there any more."""
    try:
        found = modules[name]
    except KeyError:
        return None
    return found.final_target if found.is_alias else found


def _loaded(root: Path) -> Any:
    """Return the modules of a checkout, by path."""
    import griffe

    loader = griffe.GriffeLoader(
        search_paths=[root / source for source in SOURCES], allow_inspection=False
    )
    for package in PACKAGES:
        loader.load(package)
    loader.resolve_aliases()
    return loader.modules_collection


def _names(snapshot: str) -> Iterator[str]:
    """Yield the public names of lines of a snapshot, or whose members they are about."""
    for line in snapshot.splitlines():
        name = re.split(r"[^\w.]", line, maxsplit=1)[0]
        module = max((m for m in PUBLIC_MODULES if name.startswith(f"{m}.")), key=len)
        yield f"{module}.{name.removeprefix(f'{module}.').partition('.')[0]}"


def main() -> int:
    """Print or write the API, or compare it with a tag."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--write", action="store_true", help=f"write {SNAPSHOT.relative_to(ROOT)}")
    parser.add_argument("--since", metavar="TAG", help="print breaking changes since a tag")
    options = parser.parse_args()
    if options.since:
        return min(breaking_changes(options.since), 1)
    if options.write:
        SNAPSHOT.write_text(public_api(), encoding="utf-8")
    else:
        print(public_api(), end="")
    return 0


if __name__ == "__main__":
    sys.exit(main())
