"""The file of API keys."""

from __future__ import annotations

import json
import os
import re
import resource
import stat
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message
from support.threads import PATIENCE

from hallujudge.judge_service.access import MAX_LIMIT, Scope
from hallujudge.judge_service.access.key_store import (
    KeyStore,
    create_key,
    edit_key,
    read_keys,
    revoke_key,
    rotate_key,
)
from hallujudge.judge_service.errors import InvalidInputError, NotFoundError, UnauthenticatedError
from hallujudge.judge_service.tenancy import Limits


def test_the_file_has_no_secret_and_only_its_owner_reads_it(tmp_path: Path) -> None:
    path = tmp_path / "new" / "keys.json"
    key = create_key(path, "ana", scopes=[Scope.SCORE], limits=Limits(cost_per_day=1.5))
    assert re.fullmatch(r"hj_[a-z2-7]{8}_[A-Za-z0-9_-]{43}", key)
    assert key[12:] not in path.read_text()
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    (stored,) = read_keys(path)
    assert (stored.id, stored.name, stored.limits) == (key[3:11], "ana", Limits(cost_per_day=1.5))
    caller = KeyStore(path).caller(key)
    assert (caller.id, caller.scopes) == (f"key:{key[3:11]}", frozenset({Scope.SCORE}))


def test_a_weight_that_is_out_of_range_is_told(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    create_key(path, "ana", scopes=[Scope.SCORE], limits=Limits(weight=3))
    assert read_keys(path)[0].limits.weight == 3
    path.write_text(path.read_text().replace('"weight": 3', '"weight": 0'))
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.tenancy:the-weight-is-not-from-to"),
    ):
        read_keys(path)


def test_a_running_store_learns_of_new_and_revoked_keys(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    first = create_key(path, "ana", scopes=[Scope.SCORE])
    store = KeyStore(path)
    second = create_key(path, "ben", scopes=[Scope.SCORE])
    revoke_key(path, first[3:11])
    assert store.caller(first).key_id == first[3:11]
    store.look()
    assert store.caller(second).name == f"key {second[3:11]} (ben)"
    with pytest.raises(UnauthenticatedError, match=f"{first[3:11]} is revoked"):
        store.caller(first)


_FUTURE, _PAST = "2999-01-01T00:00:00Z", "2001-01-01T00:00:00Z"


def _moved_end(path: Path, end: str) -> None:
    """Change when an old secret ends, as time would."""
    path.write_text(path.read_text().replace(f'"old_until": "{_FUTURE}"', f'"old_until": "{end}"'))


def test_a_rotated_key_keeps_everything_but_its_secret(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    old = create_key(path, "ana", scopes=[Scope.SCORE], limits=Limits(cost_per_day=1.5))
    before = KeyStore(path).caller(old)
    new = rotate_key(path, old[3:11], old_until=_FUTURE)
    assert (new[:12], new != old) == (old[:12], True)
    store = KeyStore(path)
    assert store.caller(new) == store.caller(old) == before
    _moved_end(path, _PAST)
    store.look()
    assert store.caller(new) == before
    with pytest.raises(
        UnauthenticatedError,
        match=expected_message("judge_service.access.key_store:the-secret-was-replaced"),
    ):
        store.caller(old)
    with pytest.raises(UnauthenticatedError, match="is not valid"):
        store.caller(f"{old[:12]}{'A' * 43}")


def test_calls_under_way_end_with_the_secret_that_they_showed(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    first = create_key(path, "ana", scopes=[Scope.SCORE])
    second = rotate_key(path, first[3:11], old_until=_FUTURE)
    store = KeyStore(path)
    old, new = store.caller(first), store.caller(second)
    store.check(old)
    _moved_end(path, _PAST)
    store.look()
    store.check(new)
    with pytest.raises(UnauthenticatedError):
        store.check(old)
    # Without a time, the old secret ends at once.
    rotate_key(path, first[3:11])
    store.look()
    for caller in (old, new):
        with pytest.raises(UnauthenticatedError):
            store.check(caller)


def test_an_edited_key_keeps_what_is_not_named(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    key = create_key(
        path, "ana", scopes=[Scope.SCORE], limits=Limits(cost_per_day=1.5, max_concurrency=2)
    )
    (before,) = read_keys(path)
    edited = edit_key(path, key[3:11], name="Ana B.", limits={"cost_per_day": 3, "weight": 2})
    assert edited == read_keys(path)[0]
    assert edited == replace(
        before, name="Ana B.", limits=Limits(cost_per_day=3, max_concurrency=2, weight=2)
    )
    edited = edit_key(
        path, key[3:11], scopes=(Scope.JUDGE,), expires=_FUTURE, limits={"cost_per_day": None}
    )
    assert (edited.scopes, edited.expires) == ((Scope.JUDGE,), _FUTURE)
    assert edited.limits == Limits(max_concurrency=2, weight=2)
    assert KeyStore(path).caller(key).name == f"key {key[3:11]} (Ana B.)"


def test_what_can_not_be_edited_or_rotated_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    id = create_key(path, "ana", scopes=[Scope.SCORE])[3:11]
    before = path.read_bytes()
    changes: list[dict[str, Any]] = [{"name": " "}, {"scopes": ()}, {"limits": {"weight": 0}}]
    for change in changes:
        with pytest.raises(InvalidInputError):
            edit_key(path, id, **change)
    for work in (edit_key, rotate_key):
        with pytest.raises(NotFoundError):
            work(path, "aaaaaaaa")
    assert path.read_bytes() == before
    revoke_key(path, id)
    for work in (edit_key, rotate_key):
        with pytest.raises(
            InvalidInputError,
            match=expected_message("judge_service.access.key_store:create-another-key"),
        ):
            work(path, id)


def test_edits_at_the_same_time_are_all_kept(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    ids = [create_key(path, f"user {n}", scopes=[Scope.SCORE])[3:11] for n in range(8)]
    together = threading.Barrier(len(ids))

    def work(key_id: str) -> None:
        together.wait(PATIENCE)
        edit_key(path, key_id, name=f"{key_id} edited")

    with ThreadPoolExecutor(len(ids)) as threads:
        list(threads.map(work, ids))
    assert [key.name for key in read_keys(path)] == [f"{key_id} edited" for key_id in ids]


def test_a_store_keeps_its_keys_while_the_file_is_broken(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "keys.json"
    key = create_key(path, "ana", scopes=[Scope.SCORE])
    store = KeyStore(path)
    path.write_text("{")
    store.look()
    assert store.caller(key).key_id == key[3:11]
    assert (
        expected_message("judge_service.access.key_store:the-keys-stay-as-they-were") in caplog.text
    )


@contextmanager
def no_file_opens() -> Iterator[None]:
    """Let this process open no file, as one with too many open files."""
    limits = resource.getrlimit(resource.RLIMIT_NOFILE)
    resource.setrlimit(resource.RLIMIT_NOFILE, (0, limits[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, limits)


def test_a_store_reads_again_what_it_could_not_read_once(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    path = tmp_path / "keys.json"
    key = create_key(path, "ana", scopes=[Scope.SCORE])
    store = KeyStore(path)
    revoke_key(path, key[3:11])
    with no_file_opens():
        store.look()
        store.look()
    assert store.caller(key).key_id == key[3:11]
    stayed = expected_message("judge_service.access.key_store:the-keys-stay-as-they-were")
    assert caplog.text.count(stayed) == 1
    store.look()
    with pytest.raises(UnauthenticatedError):
        store.caller(key)


def test_a_store_does_not_wait_for_a_pipe_in_the_place_of_its_file(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    key = create_key(path, "ana", scopes=[Scope.SCORE])
    store = KeyStore(path)
    kept = path.rename(tmp_path / "kept.json")
    os.mkfifo(path)
    looking = threading.Thread(target=store.look, daemon=True)
    looking.start()
    looking.join(PATIENCE)
    assert not looking.is_alive()
    assert store.caller(key).key_id == key[3:11]
    # What it missed meanwhile counts as soon as there is a file.
    kept.replace(path)
    revoke_key(path, key[3:11])
    store.look()
    with pytest.raises(UnauthenticatedError):
        store.caller(key)


def test_only_its_owner_learns_that_a_key_has_expired(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    key = create_key(path, "ana", scopes=[Scope.SCORE], expires="2001-01-01T00:00:00Z")
    store = KeyStore(path)
    with pytest.raises(UnauthenticatedError, match="is expired"):
        store.caller(key)
    with pytest.raises(UnauthenticatedError, match="is not valid"):
        store.caller(f"{key[:12]}{'A' * 43}")


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("", "it is not JSON"),
        ("[]", "it has no list of keys"),
        ("{}", "it has no list of keys"),
        ('{"version": "2", "keys": []}', "its version is '2', not 1"),
        ('{"version": 1, "keys": [{}]}', "a key in it is not complete"),
        ("[" * 100_000, "it is not JSON"),
    ],
)
def test_a_file_that_is_not_of_keys_is_refused(tmp_path: Path, text: str, told: str) -> None:
    path = tmp_path / "keys.json"
    path.write_text(text)
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.access.key_store:is-not-file-of-keys", told),
    ):
        KeyStore(path)


def test_a_file_of_a_newer_release_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    path.write_text('{"version": 2, "keys": []}')
    with pytest.raises(InvalidInputError, match="update hallujudge"):
        KeyStore(path)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("expires", "tomorrow"),
        ("expires", "31.12.2026"),
        ("expires", "2026-31-12"),
        ("expires", 20261231),
        ("expires", None),
        ("revoked", 0),
        ("sha256", "zz"),
        ("sha256", "ü" * 64),
        ("calls_per_minute", "3"),
        ("calls_per_minute", 0),
        ("max_concurrency", True),
        ("judge_calls_per_day", "5"),
        ("judge_calls_per_day", 5.5),
        ("cost_per_day", float("nan")),
        ("cost_per_day", "20"),
        ("cost_per_day", -1),
        ("cost_per_day", float("inf")),
        ("cost_per_day", 10**400),
        ("judge_calls_per_day", 2**63),
        ("judge_calls_per_day", -1),
        ("calls_per_minute", 10**400),
        ("calls_per_minute", float("inf")),
        ("max_concurrency", 0),
        ("max_concurrency", 2**31),
    ],
)
def test_a_value_that_a_file_can_not_mean_is_refused(
    tmp_path: Path, field: str, value: object
) -> None:
    path = tmp_path / "keys.json"
    create_key(path, "ana", scopes=[Scope.SCORE], expires="2027-01-31")
    content = json.loads(path.read_text())
    [key] = content["keys"]
    assert read_keys(path)[0].expires == "2027-01-31"
    (key if field in key else key["limits"])[field] = value
    path.write_text(json.dumps(content))
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.access.key_store:is-not-file-of-keys-2", field[:6]),
    ):
        read_keys(path)


@pytest.mark.parametrize(
    "limits",
    [
        Limits(cost_per_day=float("inf")),
        Limits(cost_per_day=float("nan")),
        Limits(judge_calls_per_day=2**63),
        Limits(calls_per_minute=0),
    ],
)
def test_a_key_that_a_server_would_refuse_is_not_written(tmp_path: Path, limits: Limits) -> None:
    path = tmp_path / "keys.json"
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.access.key_store:per-of-the-key-is-give-to"),
    ):
        create_key(path, "ana", scopes=[Scope.SCORE], limits=limits)
    with pytest.raises(InvalidInputError, match="expires 'tomorrow'; write 2027-01-31T00:00:00Z"):
        create_key(path, "ana", scopes=[Scope.SCORE], expires="tomorrow")
    assert not path.exists()


def test_limits_may_be_at_their_ends(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    most = Limits(
        calls_per_minute=MAX_LIMIT,
        max_concurrency=MAX_LIMIT,
        judge_calls_per_day=MAX_LIMIT,
        cost_per_day=MAX_LIMIT,
    )
    least = Limits(calls_per_minute=1, max_concurrency=1, judge_calls_per_day=0, cost_per_day=0.0)
    for limits in (most, least):
        create_key(path, "ana", scopes=[Scope.SCORE], limits=limits)
    assert [key.limits for key in read_keys(path)] == [most, least]


def test_two_keys_with_one_id_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "keys.json"
    key = create_key(path, "ana", scopes=[Scope.SCORE])
    revoke_key(path, key[3:11])
    content = json.loads(path.read_text())
    content["keys"].append({**content["keys"][0], "revoked": ""})
    path.write_text(json.dumps(content))
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.access.key_store:keys-with-the-id", key[3:11]),
    ):
        read_keys(path)


def test_names_and_scopes_are_checked(tmp_path: Path) -> None:
    for name in ("", "a\nb", "x" * 81):
        with pytest.raises(InvalidInputError, match="the name"):
            create_key(tmp_path / "k", name, scopes=[Scope.SCORE])
    with pytest.raises(InvalidInputError, match="has no scope"):
        create_key(tmp_path / "k", "ana", scopes=[])
    create_key(tmp_path / "k", "ana", scopes=[Scope.SCORE])
    with pytest.raises(
        NotFoundError, match=expected_message("judge_service.access.key_store:has-no-key-aaaaaaaa")
    ):
        revoke_key(tmp_path / "k", "aaaaaaaa")
    assert json.loads((tmp_path / "k").read_text())["version"] == 1
