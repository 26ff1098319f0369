"""The public names, pinned: adding one is a decision, losing one is a break."""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from difflib import unified_diff
from importlib.util import module_from_spec, spec_from_file_location
from pathlib import Path
from types import ModuleType

import pytest

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture(scope="module")
def tool() -> ModuleType:
    """The module tools/public_api.py."""
    spec = spec_from_file_location("public_api", ROOT / "tools" / "public_api.py")
    assert spec is not None
    assert spec.loader is not None
    spec.loader.exec_module(made := module_from_spec(spec))
    return made


def test_the_public_api_is_its_snapshot(tool: ModuleType) -> None:
    changed = unified_diff(
        tool.SNAPSHOT.read_text(encoding="utf-8").splitlines(),
        tool.public_api().splitlines(),
        lineterm="",
        n=0,
    )
    assert list(changed) == [], "run tools/public_api.py --write if the change is meant"


def test_the_page_lists_the_public_modules(tool: ModuleType) -> None:
    page = (ROOT / "docs" / "reference" / "stability.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| (`hallujudge\.[^|]+) \|", page, re.MULTILINE)
    listed = [name for row in rows for name in re.findall(r"`([^`]+)`", row)]
    assert sorted(listed) == sorted(tool.PUBLIC_MODULES)


def test_dir_shows_the_public_names(tool: ModuleType) -> None:
    """A shell completes them, although most modules import a name when it is first used."""
    modules = {name: importlib.import_module(name) for name in tool.PUBLIC_MODULES}
    missing = {name: {*one.__all__} - {*dir(one)} for name, one in modules.items()}
    assert {name: names for name, names in missing.items() if names} == {}
    assert dir(modules["hallujudge.sdk"]) == sorted(modules["hallujudge.sdk"].__all__)


@pytest.mark.parametrize("name", ["Client", "AsyncClient"])
def test_signatures_name_public_types(name: str) -> None:
    """A type that a client's method takes or returns can be imported from the SDK."""
    loaded = importlib.import_module("hallujudge.sdk")
    methods = inspect.getmembers(getattr(loaded, name), inspect.isfunction)
    named = {
        word
        for method, function in methods
        if not method.startswith("_")
        for parameter in (*inspect.signature(function).parameters.values(), None)
        for word in re.findall(
            r"\b[A-Z][A-Za-z]+",
            str(
                parameter.annotation if parameter else inspect.signature(function).return_annotation
            ),
        )
    }
    assert named - {"Iterable", "Mapping", "None", "Path", "Sequence", "Self"} <= {*loaded.__all__}


def test_a_clients_arguments_are_the_fields_of_a_run() -> None:
    from hallujudge.sdk import AsyncClient, Client, ScoreRun

    fields = [field.name for field in dataclasses.fields(ScoreRun)]
    for method in (Client.score, AsyncClient.score, Client.judge, Client.estimate):
        assert list(inspect.signature(method).parameters)[1:] == fields


def test_client_and_async_client_have_the_same_methods() -> None:
    from hallujudge.sdk import AsyncClient, Client

    def public(cls: type) -> set[str]:
        return {name for name in dir(cls) if not name.startswith("_")}

    assert public(Client) == public(AsyncClient)
