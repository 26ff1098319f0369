"""Write what this release leaves behind into tests/data/upgrades, for the tests of later ones.

    python tools/write_upgrade_fixtures.py

The folder is named after the release, such as ``1.0``. Run this before a minor release is tagged,
and never again for that release.
"""

from __future__ import annotations

import asyncio
import json
import os
import shutil
import sqlite3
import sys
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import no_options  # noqa: F401 - answers --help

ROOT = Path(__file__).resolve().parent.parent
UPGRADES = ROOT / "tests" / "data" / "upgrades"
# Manifests name their inputs by full paths. Tests replace this one by where they copy the folder.
WORK = Path("/tmp/hallujudge-upgrade")  # noqa: S108  # it is removed at the end
sys.path.insert(0, str(ROOT / "tests"))

from support import scripted_llm as llm  # noqa: E402
from support.qa_samples import write_lines  # noqa: E402
from support.running import ServerProcess, here  # noqa: E402
from support.tri_he_samples import FALSE, SCENE, TRUE, answer, judge_step  # noqa: E402

from hallujudge.judge_service.access import Caller, Scope  # noqa: E402
from hallujudge.judge_service.access.key_store import create_key, read_keys  # noqa: E402
from hallujudge.judge_service.access.spending import Ledger  # noqa: E402
from hallujudge.judge_service.jobs.database import Database  # noqa: E402
from hallujudge.judge_service.tenancy import Hold, Limits  # noqa: E402
from hallujudge.sdk import Client, __version__  # noqa: E402

_SENTENCES = ("A dog and a cat.", "Two dogs near a table.", "A man on a bicycle.", "An umbrella.")
# A run writes its first batch when it has more items than this.
_LONG = 130
_PATIENCE = 60.0
_DAY = "2026-11-26"


class _StopError(Exception):
    """Ends a run after its first batch."""


def run(*arguments: str | Path, codes: tuple[int, ...] = (0,)) -> str:
    """Run a command; return what it printed."""
    ended = here(*arguments)
    if ended.returncode not in codes:
        raise SystemExit(f"{' '.join(map(str, arguments))}: {ended.returncode}: {ended.stderr}")
    return ended.stdout


def write_inputs() -> None:
    """Write responses and references; file names are relative, as manifests keep them."""
    for model, first in (("one", 0), ("two", 1)):
        texts = [_SENTENCES[(n + first) % len(_SENTENCES)] for n in range(24)]
        rows = [{"image_id": str(n), "caption": text} for n, text in enumerate(texts)]
        write_lines(Path(f"{model}.jsonl"), rows)
    many = [{"image_id": str(n), "caption": _SENTENCES[n % 4]} for n in range(_LONG)]
    write_lines(Path("long.jsonl"), many)
    objects = {str(n): ["dog"] for n in range(_LONG)}
    Path("objects.json").write_text(json.dumps(objects), encoding="utf-8")
    claims = [answer(str(n), TRUE, FALSE, question=f"{n}?") for n in range(4)]
    write_lines(Path("answers.jsonl"), claims)
    scenes = [{"image_id": str(n), "triplets": SCENE} for n in range(4)]
    write_lines(Path("graphs.jsonl"), scenes)


def write_runs() -> None:
    """Write two finished runs with labels and a calibration, and one that stopped."""
    for model in ("one", "two"):
        files = ("-r", f"{model}.jsonl", "-R", "objects.json")
        run("score", "chair", *files, "-o", f"chair-{model}")
    run("label", "plan", "chair-one", "--count", "12")
    lines = Path("chair-one/items.jsonl").read_text(encoding="utf-8").splitlines()
    labels = [
        {"item": row["id"], "claim": place, "label": "supported", "annotator": "ana"}
        for row in map(json.loads, lines[:12])
        for place, _ in enumerate(row["evidence"]["mentioned_spans"])
    ]
    write_lines(Path("given.jsonl"), labels)
    run("label", "import", "chair-one", "given.jsonl")
    run("calibrate", "chair-one")
    run("analyze", "chair-one")
    with Client.embedded() as client:
        try:
            client.score(
                "chair",
                responses="long.jsonl",
                references="objects.json",
                folder="stopped",
                on_batch=_stop_later(),
                workers=1,
            )
        except _StopError:
            return
    raise SystemExit("the run was not stopped")


def _stop_later() -> Callable[[object], None]:
    """Return a callback that ends a run when its first batch is written."""
    batches = 0

    def on_batch(_batch: object) -> None:
        nonlocal batches
        batches += 1
        if batches > 1:
            raise _StopError

    return on_batch


def write_judged_run() -> None:
    """Write a run with a verdict cache."""
    model = llm.ScriptedLlm(judge_step)
    stop = model.in_thread()
    try:
        judge = ("--judge", "llm", "--llm-url", model.url, "--llm-model", "m")
        files = ("--claims", "answers.jsonl", "-R", "graphs.jsonl")
        run("score", "tri-he", *files, "-o", "tri-he", *judge)
    finally:
        stop()


def write_keys() -> str:
    """Write a key file and what its key spent; return the key."""
    limits = Limits(calls_per_minute=600, judge_calls_per_day=50, cost_per_day=2.5)
    path = Path("keys.json")
    key = create_key(path, "ana", scopes=[Scope.SCORE, Scope.JUDGE], limits=limits)
    [entry] = read_keys(path)
    caller = Caller(id=f"key:{entry.id}", name="ana", key_id=entry.id, limits=limits)

    async def spend() -> None:
        ledger = Ledger(Path("spending.sqlite"), day=lambda: _DAY)
        hold = await ledger.take(caller, 0.5, priced=True)
        if not isinstance(hold, Hold):
            raise SystemExit(f"nothing was spent: {hold}")
        ledger.settle(hold, 0.25)
        await ledger.written()
        ledger.close()

    asyncio.run(spend())
    return key


def write_jobs(key: str) -> dict[str, str]:
    """Write a database with a key's job that is done and one that waits; return their ids."""
    database = Path("jobs.sqlite")
    settings = {
        "HALLUJUDGE_JOBS_DATABASE": str(database.resolve()),
        "HALLUJUDGE_KEYS_FILE": str(Path("keys.json").resolve()),
    }
    os.environ["HALLUJUDGE_API_KEY"] = key
    given = ("chair", "-r", "one.jsonl", "-R", "objects.json")
    server = ServerProcess(**settings)
    done = run("submit", *given, "--server", server.address).strip()
    run("jobs", "watch", done, "--server", server.address)
    server.stop()
    with closing(Database(str(database))) as held:
        lock = held.runner_lock()
        until = time.monotonic() + _PATIENCE
        while not lock.acquire():
            if time.monotonic() > until:
                raise SystemExit("another server runs the jobs")
        server = ServerProcess(**settings)
        more = ("--variant", "corrected", "--server", server.address)
        waiting = run("submit", *given, *more).strip()
        server.stop()
        lock.release()
    Path("jobs.sqlite.lock").unlink()
    return {"done": done, "waiting": waiting}


def pack() -> None:
    """Leave each database as one small file."""
    for path in Path().rglob("*.sqlite"):
        with closing(sqlite3.connect(path)) as file:
            file.execute("PRAGMA journal_mode = DELETE")
            file.execute("PRAGMA page_size = 1024")
            file.execute("VACUUM")
        for other in path.parent.glob(f"{path.name}-*"):
            other.unlink()
    for path in Path().rglob("*.lock"):
        path.unlink()


def main() -> int:
    """Write the folder of this release."""
    name = ".".join(__version__.split(".")[:2])
    shutil.rmtree(WORK, ignore_errors=True)
    WORK.mkdir()
    try:
        os.chdir(WORK)
        os.environ["XDG_STATE_HOME"] = str(WORK / "state")
        write_inputs()
        write_runs()
        write_judged_run()
        key = write_keys()
        facts = {"release": __version__, "key": key, "day": _DAY, "jobs": write_jobs(key)}
        Path("facts.json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
        pack()
        shutil.rmtree(WORK / "state", ignore_errors=True)
        shutil.rmtree(UPGRADES / name, ignore_errors=True)
        shutil.copytree(WORK, UPGRADES / name)
    finally:
        os.chdir(ROOT)
        shutil.rmtree(WORK)
    size = sum(path.stat().st_size for path in (UPGRADES / name).rglob("*") if path.is_file())
    print(f"{UPGRADES / name}: {size:,} bytes")
    return 0


if __name__ == "__main__":
    sys.exit(main())
