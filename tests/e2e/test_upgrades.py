"""Files and databases that earlier releases wrote are read, and newer ones are refused.

`tools/write_upgrade_fixtures.py` wrote the folders, each with the release that it is named after.
"""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from support.running import ServerProcess, here, read_rows

from hallujudge.judge_service.access.key_store import KeyStore, read_keys
from hallujudge.judge_service.access.spending import Ledger, Spent
from hallujudge.judge_service.llm.cache_file import CacheFile
from hallujudge.sdk import Client, __version__, read_run, recompute
from hallujudge.sdk.cli.viewer import find_runs

_UPGRADES = Path(__file__).resolve().parents[1] / "data" / "upgrades"
# Where the folders were written; their manifests name the inputs by full paths.
_WRITTEN_AT = "/tmp/hallujudge-upgrade"
_RESULTS = {"chair-one", "chair-two", "tri-he"}


@pytest.fixture(params=sorted(path.name for path in _UPGRADES.iterdir() if path.is_dir()))
def old(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A copy of what an earlier release wrote."""
    folder = tmp_path / "old"
    shutil.copytree(_UPGRADES / request.param, folder)
    for path in folder.glob("*/manifest*.json"):
        _change(path, _WRITTEN_AT, str(folder))
    return folder


def _change(path: Path, before: str, after: str) -> None:
    text = path.read_text(encoding="utf-8")
    assert before in text
    path.write_text(text.replace(before, after), encoding="utf-8")


def _facts(folder: Path) -> dict[str, Any]:
    facts: dict[str, Any] = json.loads((folder / "facts.json").read_text(encoding="utf-8"))
    return facts


def test_runs_are_reported_compared_and_computed_again(old: Path) -> None:
    run = read_run(old / "chair-one")
    assert recompute(run.folder).scores == run.report.scores
    printed = here("report", run.folder, "--format", "json")
    assert json.loads(printed.stdout)["signature"] == run.signature
    assert here("report", run.folder, "--format", "html").returncode == 0
    assert (run.folder / "report.html").stat().st_size > 10_000
    compared = here("compare", run.folder, old / "chair-two", "--format", "json")
    assert compared.returncode == 0, compared.stderr
    assert {found.name for found in find_runs(old) if not found.problem} == {*_RESULTS, "stopped"}


def test_labels_and_calibrations_are_read(old: Path) -> None:
    before = json.loads((old / "chair-one" / "calibration.json").read_text())["scores"]
    assert "corrected" in here("report", old / "chair-one").stdout
    extended = here("label", "plan", old / "chair-one", "--count", "4")
    assert extended.returncode == 0, extended.stderr
    again = here("calibrate", old / "chair-one")
    assert again.returncode == 0, again.stderr
    after = json.loads((old / "chair-one" / "calibration.json").read_text())["scores"]
    assert {name: score["raw"] for name, score in after.items()} == {
        name: score["raw"] for name, score in before.items()
    }


def test_a_stopped_run_is_resumed_by_its_own_release_only(old: Path) -> None:
    arguments = ("score", "chair", "-r", old / "long.jsonl", "-R", old / "objects.json")
    resume = (*arguments, "--out", old / "stopped", "--resume")
    manifest = old / "stopped" / "manifest.partial.json"
    release = _facts(old)["release"]
    _change(manifest, f'"release": "{release}"', '"release": "0.9.0"')
    refused = here(*resume)
    assert refused.returncode == 2
    assert f"release: 0.9.0 → {__version__}" in refused.stderr
    _change(manifest, '"release": "0.9.0"', f'"release": "{__version__}"')
    resumed = here(*resume)
    assert resumed.returncode == 0, resumed.stderr
    assert "64 of 130 items were scored before" in resumed.stderr
    assert len(read_rows(old / "stopped" / "items.jsonl")) == 130
    fresh = old.parent / "fresh"
    assert here(*arguments, "-o", fresh).returncode == 0
    assert (fresh / "items.jsonl").read_bytes() == (old / "stopped" / "items.jsonl").read_bytes()


def test_cached_verdicts_are_read(old: Path) -> None:
    # Which calls they answer depends on the prompts, which a release may change.
    with closing(CacheFile(old / "tri-he" / "verdicts.sqlite", busy_seconds=1)) as cache:
        rows = cache.rows()
        known = [cache.get(row.key.hex()) for row in rows]
    assert len(known) == 2
    assert all(known)


def test_keys_and_spending_are_read(old: Path) -> None:
    facts = _facts(old)
    caller = KeyStore(old / "keys.json").caller(facts["key"])
    assert (caller.key_name, caller.limits.cost_per_day) == ("ana", 2.5)
    ledger = Ledger(old / "spending.sqlite", day=lambda: facts["day"])
    [key] = read_keys(old / "keys.json")
    assert ledger.spent(key.id) == Spent(calls=1, cost=0.25)
    ledger.close()


@pytest.fixture
def served(old: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """The address of a server with the jobs, keys and spending of an earlier release."""
    monkeypatch.setenv("HALLUJUDGE_API_KEY", _facts(old)["key"])
    server = ServerProcess(
        HALLUJUDGE_JOBS_DATABASE=str(old / "jobs.sqlite"),
        HALLUJUDGE_KEYS_FILE=str(old / "keys.json"),
        HALLUJUDGE_SPENDING_FILE=str(old / "spending.sqlite"),
    )
    yield server.address
    assert server.stop()[0] == 0


def test_a_server_goes_on_with_the_jobs(old: Path, served: str) -> None:
    jobs = _facts(old)["jobs"]
    for state, job in jobs.items():
        out = old / state
        fetched = here("fetch", job, "--server", served, "-o", out, "--wait")
        assert fetched.returncode == 0, fetched.stderr
        assert len(read_rows(out / "items.jsonl")) == 24
    assert read_run(old / "done").report.scores == read_run(old / "chair-one").report.scores
    assert read_run(old / "waiting").report.variant == "corrected"


def _newer(kind: str) -> tuple[str, str]:
    return f"hallujudge.{kind}/1", f"hallujudge.{kind}/2"


def _newer_database(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("PRAGMA user_version = 2")


def _newer_journal(path: Path) -> None:
    content = path.read_bytes()
    path.write_bytes(content[:3] + b"\2" + content[4:])


def _newer_jobs(path: Path) -> None:
    with closing(sqlite3.connect(path)) as file:
        file.execute("UPDATE hallujudge_jobs_version SET version = 2")
        file.commit()


def _written(**content: object) -> Callable[[Path], None]:
    """Return what writes a file of a kind that the older release left none of."""

    def write(path: Path) -> None:
        path.parent.mkdir(exist_ok=True)
        path.write_text(json.dumps(content) + "\n", encoding="utf-8")

    return write


def _asked(path: Path) -> None:
    _written(schema="hallujudge.asked/2")(path)
    path.with_name("asked.jsonl").write_text("", encoding="utf-8")
    question = {"question_id": 1, "image": "1.jpg", "text": "Is there a dog?", "label": "yes"}
    _written(**question)(path.with_name("questions.jsonl"))
    path.with_name("1.jpg").write_bytes(b"\xff\xd8\xff")


_JUDGED = (
    *("score", "tri-he", "--claims", "answers.jsonl", "-R", "graphs.jsonl", "-o", "judged"),
    *("--llm-url", "http://127.0.0.1:1/v1", "--llm-model", "m"),
)
_ITEM = _written(schema="hallujudge.item/2", id="1", outcome="scored", evidence={"objects": {}})
_REPORT = ("report", "chair-one")
_NEWER: dict[str, tuple[tuple[str, ...], str, Callable[[Path], None]]] = {
    "report": (_REPORT, "chair-one/report.json", lambda path: _change(path, *_newer("report"))),
    "items": (
        ("compare", "chair-one", "chair-two"),
        "chair-one/items.jsonl",
        lambda path: _change(path, *_newer("item")),
    ),
    "items-analyze": (
        ("analyze", "chair-one"),
        "chair-one/items.jsonl",
        lambda path: _change(path, *_newer("item")),
    ),
    "items-suggest": (
        (
            *("graph", "suggest", "coco", "--items", "items.jsonl"),
            *("--kind", "objects", "-o", "patch.json"),
        ),
        "items.jsonl",
        _ITEM,
    ),
    "items-keywords": (
        ("score", "mementos", "-r", "items.jsonl", "-R", "items.jsonl", "-o", "scored"),
        "items.jsonl",
        _ITEM,
    ),
    "label-scores": (
        ("compare", "chair-one", "chair-two"),
        "chair-one/labels.json",
        _written(schema="hallujudge.label-scores/2"),
    ),
    "analysis": (
        (*_REPORT, "--format", "html"),
        "chair-one/analysis.json",
        _written(schema="hallujudge.analysis/2"),
    ),
    "overview": (
        ("leaderboard", "scores"),
        "scores/overview.json",
        _written(schema="hallujudge.overview/2", runs=[]),
    ),
    "asked": (
        (
            *("ask", "pope", "-R", "questions.jsonl", "--images", ".", "-o", "asked.jsonl"),
            *("--url", "http://127.0.0.1:1/v1", "--model", "m"),
        ),
        "asked.asked.json",
        _asked,
    ),
    "degraded": (
        ("build", "infact", "--manifest", "degraded.jsonl", "-o", "degraded"),
        "degraded.jsonl",
        _written(schema="hallujudge.degraded/2"),
    ),
    "cascade": (
        (*_JUDGED, "--judge", "llm", "--cascade", "cascade.json"),
        "cascade.json",
        _written(schema="hallujudge.cascade/2"),
    ),
    "panel": (
        (*_JUDGED, "--panel", "llm,matcher", "--panel-weights", "panel.json"),
        "panel.json",
        _written(schema="hallujudge.judge-panel/2"),
    ),
    "card": (
        (*_JUDGED, "--judge", "llm", "--card", "card.json"),
        "card.json",
        _written(schema="hallujudge.judge-card/2"),
    ),
    "graph": (
        ("graph", "stats", "graph.json"),
        "graph.json",
        _written(format="hallujudge-synonyms/2", added=1),
    ),
    "patch": (
        ("graph", "merge", "coco", "patch.json", "-o", "merged.json"),
        "patch.json",
        _written(format="hallujudge-graph-patch/2"),
    ),
    "jobs": (
        ("serve", "--port", "0", "--jobs-database", "jobs.sqlite"),
        "jobs.sqlite",
        _newer_jobs,
    ),
    "manifest": (
        _REPORT,
        "chair-one/manifest.json",
        lambda path: _change(path, '"format": 1', '"format": 2'),
    ),
    "calibration": (
        _REPORT,
        "chair-one/calibration.json",
        lambda path: _change(path, *_newer("calibration")),
    ),
    "labels": (
        ("calibrate", "chair-one"),
        "chair-one/labels.jsonl",
        lambda path: _change(path, *_newer("label")),
    ),
    "plan": (
        ("calibrate", "chair-one"),
        "chair-one/label-plan.json",
        lambda path: _change(path, *_newer("label-plan")),
    ),
    "journal": (("merge", "chair-one", "-o", "merged"), "chair-one/journal.bin", _newer_journal),
    "verdicts": (
        ("rescore", "tri-he", "-o", "again", "--variant", "corrected"),
        "tri-he/verdicts.sqlite",
        _newer_database,
    ),
    "keys": (
        ("keys", "list", "--file", "keys.json"),
        "keys.json",
        lambda path: _change(path, '"version": 1', '"version": 2'),
    ),
}


# Files whose content travels to a server are named by the option, the database of jobs by its use.
_OPTIONS = {
    "cascade": ("cascade can't be read",),
    "panel": ("--panel-weights can't be read",),
    "card": ("card can't be read",),
    "graph": ("synonym graph graph",),
    "jobs": ("the database of jobs",),
}


@pytest.mark.parametrize("name", _NEWER)
def test_a_newer_file_is_refused_with_a_sentence(old: Path, name: str) -> None:
    command, file, change = _NEWER[name]
    change(old / file)
    refused = here(*command, cwd=old)
    assert refused.returncode in (1, 2)
    assert refused.stderr.startswith("error: ")
    assert "update hallujudge" in refused.stderr.lower()
    assert any(named in refused.stderr for named in (Path(file).name, *_OPTIONS.get(name, ())))
    assert refused.stderr.count("\n") == 1


def test_one_score_needs_no_file_of_the_old_release(old: Path) -> None:
    with Client.embedded() as client:
        again = client.score("chair", responses=old / "one.jsonl", references=old / "objects.json")
    assert again.scores == read_run(old / "chair-one").report.scores
