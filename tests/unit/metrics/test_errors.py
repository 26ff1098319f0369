"""What errors say of unknown names; what is deprecated is removed by the release it names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from importlib.metadata import version
from pathlib import Path

import pytest

from hallujudge.metrics import errors

_PACKAGES = Path(errors.__file__).parents[1]


def test_the_warning_names_the_removal_and_the_place_of_the_use() -> None:
    def old() -> None:
        errors.warn_deprecated("old()", removed_in="9.0", instead="new()")

    with pytest.warns(
        errors.HallujudgeDeprecationWarning,
        match=r"^old\(\) is deprecated, and hallujudge 9.0 removes it; use new\(\)$",
    ) as caught:
        old()
    assert caught[0].filename == __file__


@pytest.mark.parametrize(
    ("name", "step"),
    [
        ("accurcy", "did you mean 'accuracy'? Choose from accuracy, F1"),
        ("f1", "did you mean 'F1'? Choose from accuracy, F1"),
        ("recall", "choose from accuracy, F1"),
        # What a comparison in full would take minutes for.
        ("accuracy" * 10**6, "choose from accuracy, F1"),
        (3, "choose from accuracy, F1"),
    ],
)
def test_an_error_about_an_unknown_name_ends_with_what_is_meant(name: object, step: str) -> None:
    assert errors.choose_from(name, ["accuracy", "F1"]) == step


def _removals() -> Iterator[tuple[str, str]]:
    """Yield file and release of everything that is deprecated."""
    roots = {*_PACKAGES.glob("*"), *_PACKAGES.parents[1].glob("*/hallujudge/*")}
    for path in (path for root in roots for path in root.rglob("*.py")):
        if "warn_deprecated(" not in (text := path.read_text(encoding="utf-8")):
            continue
        for call in (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.Call)):
            if getattr(call.func, "id", "") == "warn_deprecated":
                [removed_in] = [word for word in call.keywords if word.arg == "removed_in"]
                yield path.name, ast.literal_eval(removed_in.value)


def test_nothing_outlives_the_release_that_removes_it() -> None:
    found = list(_removals())
    assert found
    now = tuple(map(int, version("hallujudge").split(".")[:2]))
    assert [each for each in found if tuple(map(int, each[1].split("."))) <= now] == []
