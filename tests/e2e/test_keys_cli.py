"""``hallujudge keys``, and scoring at a server that wants a key."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from support.messages import expected_message
from support.running import assert_refused, here
from support.threads import eventually

from hallujudge.judge_service.access import Caller
from hallujudge.judge_service.access.key_store import now, read_keys
from hallujudge.judge_service.access.spending import Ledger
from hallujudge.judge_service.server.server import start
from hallujudge.judge_service.settings.server_settings import AccessSettings, ServerSettings
from hallujudge.judge_service.tenancy import Hold, Limits

_CREATE = ("create", "ana", "--scope", "score")


def later(**left: int) -> str:
    return (datetime.now(UTC) + timedelta(**left)).strftime("%Y-%m-%dT%H:%M:%SZ")


@pytest.fixture
def keys(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    path = tmp_path / "keys.json"
    monkeypatch.setenv("HALLUJUDGE_KEYS_FILE", str(path))
    return path


@pytest.fixture
def locked(keys: Path) -> Iterator[str]:
    """The address of a server that wants a key."""
    here("keys", "create", "root", "--scope", "admin", "--file", keys)
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever)
    thread.start()
    settings = ServerSettings(port=0, access=AccessSettings(keys_file=str(keys)))
    server = asyncio.run_coroutine_threadsafe(start(settings), loop).result()
    yield server.address
    asyncio.run_coroutine_threadsafe(server.stop(0), loop).result()
    loop.call_soon_threadsafe(loop.stop)
    thread.join()
    loop.close()


def test_a_key_is_shown_once_listed_and_revoked(keys: Path) -> None:
    made = here(
        *("keys", "create", "ana", "--scope", "score,judge", "--expires", "90d"),
        *("--judge-calls-per-day", "150", "--cost-per-day", "2.5"),
        *("--weight", "3"),
    )
    assert (made.returncode, made.stdout[:3]) == (0, "hj_")
    key = made.stdout.strip()
    assert (
        expected_message("sdk.cli.server_commands:only-time-that-the-key-is-shown") in made.stderr
    )
    listed = here("keys", "list").stdout
    assert "ana  valid  score,judge" in listed
    assert expected_message("sdk.cli.server_commands:judge-calls-per-day-cost-per-day") in listed
    assert key not in listed
    assert here("keys", "revoke", key[3:11]).stdout == f"revoked {key[3:11]} (ana)\n"
    assert "ana  revoked" in here("keys", "list").stdout
    # ``serve`` names the same file so.
    assert "ana  revoked" in here("keys", "list", "--keys-file", keys).stdout


def test_a_budget_in_which_no_call_fits_is_told(
    keys: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    create = ("keys", "create", "ana", "--scope", "judge", "--cost-per-day")
    assert "note: --cost-per-day" not in here(*create, "0.000001").stderr
    monkeypatch.setenv("HALLUJUDGE_LLM_PRICE_PROMPT", "1")
    monkeypatch.setenv("HALLUJUDGE_LLM_PRICE_COMPLETION", "2")
    made = here(*create, "0.0001")
    assert made.returncode == 0
    assert "note: --cost-per-day 0.0001 is less than one call of the judge may cost" in made.stderr
    assert "--cost-per-day" not in here(*create, "1").stderr
    edited = here("keys", "edit", made.stdout[3:11], "--cost-per-day", "0")
    assert "note: --cost-per-day 0 is less" in edited.stderr


def test_a_key_is_edited_and_rotated(keys: Path) -> None:
    old = here("keys", "create", "ana", "--scope", "score", "--cost-per-day", "2").stdout.strip()
    id = old[3:11]
    edited = here(
        *("keys", "edit", id, "--name", "Ana B.", "--scope", "score,judge", "--expires", "90d"),
        *("--no-limit", "cost-per-day", "--calls-per-minute", "60", "--weight", "2"),
    )
    assert edited.returncode == 0, edited.stderr
    line = edited.stdout.strip()
    assert line.startswith(f"{id}  Ana B.  valid  score,judge  created ")
    assert line.endswith("  calls per minute 60  weight 2")
    assert here("keys", "list").stdout.strip() == line
    assert "never ends" in here("keys", "edit", id, "--expires", "never").stdout
    rotated = here("keys", "rotate", id, "--old-until", "2h")
    assert (rotated.returncode, rotated.stdout[:12]) == (0, old[:12]), rotated.stderr
    assert rotated.stdout.strip() != old
    assert expected_message("sdk.cli.server_commands:until-then-the-old-secret") in rotated.stderr
    assert "old secret until 2" in here("keys", "list").stdout
    assert here("keys", "rotate", id, "--old-until", "10m").returncode == 0
    [minutes] = [key for key in read_keys(keys) if key.id == id]
    assert now() < minutes.old_until < later(minutes=11)
    again = here("keys", "rotate", id, "--old-until", "now")
    assert expected_message("sdk.cli.server_commands:the-old-secret-has-ended") in again.stderr
    assert "old secret" not in here("keys", "list").stdout


async def test_what_a_key_spent_is_found_beside_the_file_of_keys(keys: Path) -> None:
    id = here("keys", "create", "ana", "--scope", "score").stdout[3:11]
    before = here("keys", "list")
    assert (before.returncode, id in before.stdout) == (0, True)
    assert "name its file of spending with HALLUJUDGE_SPENDING_FILE" in before.stderr
    ledger = Ledger(keys.with_name("spending.sqlite"))
    ana = Caller(id=f"key:{id}", name="ana", key_id=id, limits=Limits(judge_calls_per_day=9))
    hold = await ledger.take(ana, 0.0, priced=False)
    assert isinstance(hold, Hold)
    ledger.settle(hold, 0.25)
    ledger.close()
    after = here("keys", "list")
    assert "today 1 judge calls, cost 0.2500" in after.stdout
    assert after.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("edit", "ID"), "nothing to change"),
        (("edit", "ID", "--no-limit", "money"), "choose from calls-per-minute"),
        (("edit", "ID", "--no-limit", "weight"), "choose from calls-per-minute"),
        (("edit", "ID", "--scope", "all"), "choose from score, extract, judge, admin"),
        (("edit", "ID", "--expires", "soon"), "write 90d, 12h, 10m, or a day"),
        (("edit", "ID", "--cost-per-day", "2", "--no-limit", "cost-per-day"), "give one of them"),
        (("edit", "aaaaaaaa", "--name", "b"), "hallujudge keys list shows the ids"),
        (("rotate", "ID", "--old-until", "0h"), "--old-until 0h"),
        (("rotate", "ID", "--old-until", "yesterday"), "--old-until 'yesterday'"),
        (("rotate", "aaaaaaaa"), "hallujudge keys list shows the ids"),
    ],
)
def test_mistakes_of_changes_are_told(keys: Path, arguments: tuple[str, ...], said: str) -> None:
    id = here("keys", "create", "ana", "--scope", "score").stdout[3:11]
    before = keys.read_bytes()
    assert_refused(here("keys", *(id if part == "ID" else part for part in arguments)), said)
    assert keys.read_bytes() == before


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (("create", "ana", "--scope", "all"), "choose from score, extract, judge, admin"),
        ((*_CREATE, "--expires", "soon"), "write 90d, 12h, 10m, or a day"),
        ((*_CREATE, "--expires", "-1d"), "write 90d, 12h, 10m, or a day"),
        ((*_CREATE, "--expires", "0d"), "--expires 0d: such a key is never valid"),
        ((*_CREATE, "--expires", "00h"), "--expires 00h: such a key is never valid"),
        ((*_CREATE, "--expires", "1999-12-31"), "00:00 UTC), which is past; give a later end"),
        ((*_CREATE, "--expires", "9999999d"), "that is more than 36500 days"),
        ((*_CREATE, "--expires", "9999-12-31"), "leave --expires out for a key without an end"),
        ((*_CREATE, "--cost-per-day", "inf"), "'inf'; give 2147483647 or less"),
        ((*_CREATE, "--cost-per-day", "nan"), "'nan'; give a number"),
        ((*_CREATE, "--cost-per-day", "nan"), "--cost-per-day is 'nan'"),
        ((*_CREATE, "--cost-per-day", "-1"), "'-1'; give 0 or more"),
        ((*_CREATE, "--judge-calls-per-day", "9" * 30), "give 2147483647 or less"),
        ((*_CREATE, "--calls-per-minute", "0"), "'0'; give 1 or more"),
        ((*_CREATE, "--max-concurrency", "9" * 30), "give 2147483647 or less"),
        (("revoke", "aaaaaaaa"), "can't be read"),
        (("list", "--file", "/no/such/file"), "hallujudge keys create"),
    ],
)
def test_mistakes_are_told(keys: Path, arguments: tuple[str, ...], said: str) -> None:
    run = here("keys", *arguments)
    assert run.returncode == 2
    assert said in run.stderr
    assert not keys.exists()


def test_scoring_takes_the_key_from_a_file_or_the_environment(
    locked: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "captions.jsonl").write_text('{"image_id": 1, "caption": "A dog."}\n')
    (tmp_path / "references.json").write_text('{"1": ["dog"]}')
    arguments = (
        *("score", "chair", "-r", tmp_path / "captions.jsonl", "-R", tmp_path / "references.json"),
        *("--server", locked, "-q"),
    )
    run = here(*arguments, "-o", tmp_path / "a")
    assert (run.returncode, "HALLUJUDGE_API_KEY" in run.stderr) == (1, True)
    key = here("keys", "create", "ana", "--scope", "score").stdout
    (tmp_path / "key").write_text(key)
    # The server looks at its file regularly.
    known = ("-o", tmp_path / "b", "--api-key-file", tmp_path / "key")
    assert eventually(lambda: here(*arguments, *known).returncode == 0)
    monkeypatch.setenv("HALLUJUDGE_API_KEY", key)
    assert here(*arguments, "-o", tmp_path / "c").returncode == 0
    assert here("doctor", "--server", locked).stdout.count(f"at {locked}") > 5
