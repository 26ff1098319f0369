"""Reports in experiment trackers: what is logged, and how each tracker is called."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from support.comparison_runs import chair_run
from support.packages import install

from hallujudge.sdk import RunReport, read_run
from hallujudge.sdk.cli import main
from hallujudge.sdk.errors import InvalidInputError, MissingExtraError
from hallujudge.sdk.trackers import LoggedReport


@pytest.fixture(scope="module")
def report(tmp_path_factory: pytest.TempPathFactory) -> RunReport:
    return chair_run(tmp_path_factory.mktemp("runs") / "run", 0.5, images=8, missing=("2",))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory, report: RunReport) -> Path:
    return report.save(tmp_path_factory.mktemp("runs") / "saved")


def test_a_report_and_its_folder_log_the_same(report: RunReport, folder: Path) -> None:
    found: list[LoggedReport] = []
    files: list[dict[str, str]] = []

    def tracker(logged: LoggedReport) -> None:
        found.append(logged)
        files.append({path.name: path.read_text(encoding="utf-8") for path in logged.files})

    report.log_to(tracker, step=3)
    read_run(folder).log_to(tracker, step=3)
    assert found[0].numbers == found[1].numbers
    score = report.scores["chair_i"]
    names = ("chair/chair_i", "chair/chair_i_ci_low", "chair/chair_i_ci_high")
    assert [found[0].numbers[name] for name in names] == [score.value, score.ci_low, score.ci_high]
    assert (found[0].numbers["chair/items"], found[0].numbers["chair/unscored"]) == (8, 1)
    assert found[0].tags == found[1].tags
    assert found[0].tags["hallujudge.signature"] == report.signature
    assert json.loads(files[0]["report.json"]) == json.loads(files[1]["report.json"])
    assert all(one["report.html"].startswith("<!doctype html>") for one in files)
    assert [one.step for one in found] == [3, 3]


def test_a_score_that_is_undefined_is_left_out() -> None:
    found: list[LoggedReport] = []
    chair_run(None, 0.5, images=1, missing=("0",)).log_to(found.append)
    assert found[0].numbers == {"chair/items": 1, "chair/unscored": 1}


class Calls:
    """A tracker's module that only notes its calls."""

    def __init__(self, **results: Any) -> None:
        self.made: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = []
        self.config: Any = None if "config" in results else Calls(config=None)
        self._results = results

    def __getattr__(self, name: str) -> Any:
        def called(*args: Any, **kwargs: Any) -> Any:
            self.made.append((name, args, kwargs))
            return self._results.get(name)

        return called

    def of(self, name: str) -> list[tuple[Any, ...]]:
        return [args for called, args, _ in self.made if called == name]


class Entered:
    """A run that is left."""

    def __enter__(self) -> Entered:
        return self

    def __exit__(self, *_: object) -> None:
        pass


@pytest.mark.parametrize("active", [None, "run"])
def test_mlflow(monkeypatch: pytest.MonkeyPatch, folder: Path, active: str | None) -> None:
    fake = Calls(active_run=active, start_run=Entered())
    monkeypatch.setitem(sys.modules, "mlflow", fake)
    assert main(["report", str(folder), "--to", "mlflow:captions", "-f", "csv"]) == 0
    assert fake.of("set_experiment") == ([] if active else [("captions",)])
    assert len(fake.of("start_run")) == (active is None)
    [(numbers,)] = fake.of("log_metrics")
    assert numbers["chair/chair_i"] == read_run(folder).report["chair_i"].value
    [(tags,)] = fake.of("set_tags")
    assert tags["hallujudge.signature"] == read_run(folder).signature
    assert [Path(path).name for (path,) in fake.of("log_artifact")] == [
        "report.json",
        "report.html",
    ]


@pytest.mark.parametrize("active", [False, True])
def test_wandb(monkeypatch: pytest.MonkeyPatch, report: RunReport, active: bool) -> None:
    artifact, run = Calls(), Calls()
    fake = SimpleNamespace(
        run=run if active else None,
        init=lambda **_: run,
        Artifact=lambda *_, **__: artifact,
    )
    monkeypatch.setitem(sys.modules, "wandb", fake)
    report.log_to("wandb", step=7)
    [(name, (numbers,), keywords)] = [call for call in run.made if call[0] == "log"]
    assert (name, keywords) == ("log", {"step": 7})
    assert numbers["chair/chair_i"] == report.chair_i
    assert run.config.of("update")[0][0]["hallujudge.signature"] == report.signature
    assert len(artifact.of("add_file")) == 2
    assert len(run.of("finish")) == (not active)


@pytest.mark.parametrize("wrong", ["tensorboard", "excel", ""])
def test_a_wrong_tracker_is_refused(report: RunReport, wrong: str) -> None:
    with pytest.raises(InvalidInputError) as told:
        report.log_to(wrong)
    assert "tensorboard" in str(told.value).lower()


@pytest.mark.parametrize("name", ["mlflow", "wandb", "tensorboard:runs"])
def test_a_tracker_that_is_absent_is_named(
    monkeypatch: pytest.MonkeyPatch, report: RunReport, name: str
) -> None:
    package = name.partition(":")[0]
    monkeypatch.setitem(sys.modules, package, None)
    monkeypatch.setitem(sys.modules, f"{package}.compat", None)
    with pytest.raises(MissingExtraError) as told:
        report.log_to(name)
    assert told.value.metadata == {"feature": package}


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        ("missing_of_tests:tracker", "can't be loaded: No module named 'missing_of_tests'"),
        ("added_trackers:absent", "can't be loaded: module 'added_trackers' has no attribute"),
        ("added_trackers:NUMBER", "must be a function that returns a function of a report"),
        ("added_trackers:nothing", "must be a function that returns a function of a report"),
    ],
)
def test_a_tracker_of_another_package_that_is_none_is_refused(
    value: str,
    problem: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    report: RunReport,
) -> None:
    (tmp_path / "added_trackers.py").write_text(
        "NUMBER = 5\ndef nothing(place, **_): return None\n"
    )
    install(tmp_path, monkeypatch, "hallujudge.trackers", f"mine = {value}")

    with pytest.raises(InvalidInputError, match=problem):
        report.log_to("mine")


def test_a_tracker_that_two_packages_register_names_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, report: RunReport
) -> None:
    for name in ("one", "other"):
        (tmp_path / name).mkdir()
        entry = f"mine = {name}_trackers:tracker"
        install(tmp_path / name, monkeypatch, "hallujudge.trackers", entry, name=name)

    with pytest.raises(InvalidInputError) as refused:
        report.log_to("mine")
    assert str(refused.value) == (
        "the tracker mine is registered by one (one_trackers:tracker) and other "
        "(other_trackers:tracker); uninstall all but one of them"
    )


def test_two_runs_are_not_logged(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["report", str(folder), str(folder), "--to", "mlflow"]) == 2
    assert "--to" in capsys.readouterr().err
