"""API keys: the file of their hashes, and the keys of a running server.

A server reads the file again when it changes.
"""

from __future__ import annotations

import hashlib
import hmac
import json
import logging
import os
import re
import secrets
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..errors import InvalidInputError, NotFoundError, OutputError, UnauthenticatedError
from ..settings.connection import never_ends
from ..state_files import NewerFormatError, locked, replace_private
from ..tenancy import Limits
from . import MAX_LIMIT, Caller, Scope

_LOG = logging.getLogger(__name__)
KEY_PATTERN = re.compile(r"hj_(?P<id>[a-z2-7]{8})_(?P<secret>[A-Za-z0-9_-]{43})")
"""A key as callers send it: its id, by which it is looked up, and 256 random bits."""

# Base32 in lower case: no digits that look like letters.
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
# Of 40 bits, since an id is not a secret: it only has to differ from the others of one file.
_ID_LENGTH = 8
# 256 bits can't be guessed, so that a plain SHA-256 is kept of a key and no slow hash.
_SECRET_BYTES = 32
_VERSION = 1
# Tens of thousands of keys.
_MAX_FILE_BYTES = 16 << 20
# Names appear in logs, metrics and refusals.
_MAX_NAME = 80
_HASH = re.compile(r"[0-9a-f]{64}")
# Python reads more forms of ISO 8601 than other programs that read this file.
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?", re.ASCII)
_TEXTS = ("id", "name", "sha256", "created", "expires", "revoked", "old_sha256", "old_until")
_LEAST = {"calls_per_minute": 1, "max_concurrency": 1, "judge_calls_per_day": 0, "cost_per_day": 0}


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiKey:
    """A key without its secret."""

    id: str
    """What it is looked up by; not secret."""
    name: str
    """Whose key it is."""
    sha256: str
    """The hash of the secret."""
    scopes: tuple[Scope, ...]
    """What it may be used for."""
    created: str
    """When it was made (UTC)."""
    expires: str = ""
    """When it ends (UTC); empty for never."""
    revoked: str = ""
    """When it was revoked (UTC); empty if it was not."""
    limits: Limits = field(default_factory=Limits)
    """What may be used with it."""
    old_sha256: str = ""
    """The hash of the secret before this one; empty for none."""
    old_until: str = ""
    """When that secret ends (UTC)."""

    def state(self, moment: str = "") -> str:
        """Return ``revoked``, ``expired`` or ``valid``.

        Args:
            moment: The time, in the form of :func:`now`; empty for now.
        """
        if self.revoked:
            return "revoked"
        return "expired" if self.expires and self.expires <= (moment or now()) else "valid"

    def caller(self, secret: str) -> Caller:
        """Return the caller to whom this key belongs.

        Args:
            secret: The hash of the secret that it showed.
        """
        return Caller(
            id=f"key:{self.id}",
            name=f"key {self.id} ({self.name})",
            key_id=self.id,
            key_name=self.name or self.id,
            secret=secret,
            scopes=frozenset(self.scopes),
            limits=self.limits,
        )

    def check(self, secret: str) -> None:
        """Check that the key is valid now, with a secret that was its own.

        Args:
            secret: The hash of the secret.

        Raises:
            UnauthenticatedError: The key or the secret has ended.
        """
        if (state := self.state()) != "valid":
            raise _ended(self.id, f"the API key {self.id} is {state}", "another")
        if secret != self.sha256 and not (secret == self.old_sha256 and self.old_until > now()):
            raise _ended(
                self.id, f"the secret of the API key {self.id} was replaced", "the new one"
            )


def _ended(key_id: str, problem: str, remedy: str) -> UnauthenticatedError:
    return UnauthenticatedError(
        f"{problem}; ask the server's administrator for {remedy}", metadata={"key": key_id}
    )


def now() -> str:
    """Return the time (UTC) as key files have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def secret_hash(secret: str) -> str:
    """Return the hash of a secret.

    A plain hash is enough: no attacker can try 2^256 secrets, so salt and slowness add nothing.
    """
    return hashlib.sha256(secret.encode()).hexdigest()


def create_key(
    path: Path,
    name: str,
    *,
    scopes: Sequence[Scope],
    expires: str = "",
    limits: Limits | None = None,
) -> str:
    """Add a key to a file, which is made if it is missing, and return the key.

    The file has only the hash of its secret: the key can't be shown again.

    Args:
        path: The file.
        name: Whose key it is.
        scopes: What it may be used for.
        expires: When it ends (UTC); empty for never.
        limits: What may be used with it.

    Raises:
        InvalidInputError: A value is invalid, or the file is not a file of keys.
    """
    key_id = "".join(secrets.choice(_ALPHABET) for _ in range(_ID_LENGTH))
    secret = secrets.token_urlsafe(_SECRET_BYTES)
    key = ApiKey(
        id=key_id,
        name=name,
        sha256=secret_hash(secret),
        scopes=tuple(scopes),
        created=now(),
        expires=expires,
        limits=limits or Limits(),
    )
    _check_new(key)
    _change(path, lambda keys: [*keys, key], missing_ok=True)
    return f"hj_{key_id}_{secret}"


def revoke_key(path: Path, key_id: str) -> ApiKey:
    """Revoke a key; running servers refuse it within a second.

    Raises:
        NotFoundError: The file has no such key.
        InvalidInputError: The file is not a file of keys.
    """
    return _change_one(path, key_id, lambda key: replace(key, revoked=key.revoked or now()))


def edit_key(
    path: Path, key_id: str, *, limits: Mapping[str, Any] | None = None, **more: Any
) -> ApiKey:
    """Change a key; its secret, jobs and spending stay. Running servers learn of it in a second.

    Args:
        path: The file.
        key_id: The key.
        limits: Limits to change by name; None for no limit.
        more: Other fields to change: ``name``, ``scopes`` and ``expires``.

    Raises:
        NotFoundError: The file has no such key.
        InvalidInputError: The key is revoked, a value is invalid, or the file is not of keys.
    """

    def edited(key: ApiKey) -> ApiKey:
        try:
            changed = replace(key.limits, **limits or {})
        except ValueError as err:
            raise InvalidInputError(str(err)) from err
        return _revised(key, limits=changed, **more)

    return _change_one(path, key_id, edited)


def rotate_key(path: Path, key_id: str, *, old_until: str = "") -> str:
    """Give a key another secret, and return the key; its jobs, budgets and name stay.

    Args:
        path: The file.
        key_id: The key.
        old_until: When the old secret ends (UTC); empty for now.

    Raises:
        NotFoundError: The file has no such key.
        InvalidInputError: The key is revoked, or the file is not a file of keys.
    """
    secret = secrets.token_urlsafe(_SECRET_BYTES)

    def rotated(key: ApiKey) -> ApiKey:
        old = {"old_sha256": key.sha256, "old_until": old_until or now()}
        return _revised(key, sha256=secret_hash(secret), **old)

    _change_one(path, key_id, rotated)
    return f"hj_{key_id}_{secret}"


def _revised(key: ApiKey, **changes: Any) -> ApiKey:
    if key.revoked:
        raise InvalidInputError(
            f"the key {key.id} ({key.name}) is revoked; create another key",
            metadata={"key": key.id},
        )
    changed = replace(key, **changes)
    _check_new(changed)
    return changed


def read_keys(path: Path) -> list[ApiKey]:
    """Return the keys of a file.

    Raises:
        InvalidInputError: The file can't be read, or is not a file of keys.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(_MAX_FILE_BYTES + 1)
    except OSError as err:
        step = "name a file in it" if path.is_dir() else "make one with hallujudge keys create"
        raise InvalidInputError(
            f"the key file {path} can't be read: {err.strerror or err}; {step}"
        ) from err
    try:
        return _keys(data)
    except NewerFormatError as err:
        raise InvalidInputError(f"the key file {path} can't be used: {err}") from err
    except (ValueError, KeyError, TypeError, RecursionError) as err:
        detail = str(err) if type(err) is ValueError else "a key in it is not complete"
        raise InvalidInputError(
            f"the key file {path} is not a file of keys ({detail[:200]}); restore it, or make "
            "another with hallujudge keys create"
        ) from err


def _keys(data: bytes) -> list[ApiKey]:
    if len(data) > _MAX_FILE_BYTES:
        raise ValueError(f"it is larger than {_MAX_FILE_BYTES} bytes")
    try:
        content = json.loads(data)
    except (ValueError, RecursionError) as err:
        raise ValueError("it is not JSON") from err
    if not isinstance(content, dict) or not isinstance(content.get("keys"), list):
        raise ValueError("it has no list of keys")  # noqa: TRY004 - one kind for the caller
    if (found := content.get("version")) != _VERSION:
        if type(found) is int and found > _VERSION:
            raise NewerFormatError(found, _VERSION)
        problem = "it has no version" if found is None else f"its version is {found!r:.40}"
        raise ValueError(f"{problem}, not {_VERSION}")
    keys = [_key(row) for row in content["keys"]]
    for key_id, count in Counter(key.id for key in keys).items():
        if count > 1:
            raise ValueError(f"it has {count} keys with the id {key_id!r:.40}")
    return keys


def _key(row: Mapping[str, Any]) -> ApiKey:
    limits = Limits(**row.get("limits", {}))
    scopes = tuple(Scope(scope) for scope in row["scopes"])
    key = ApiKey(**{**row, "scopes": scopes, "limits": limits})
    _check_values(key)
    return key


# People edit the file. A value that can't be read as it was meant must not become no limit at all.


def _check_values(key: ApiKey) -> None:
    _check_texts(key)
    _check_limits(key)


def _check_texts(key: ApiKey) -> None:
    for name in _TEXTS:
        value = getattr(key, name)
        if type(value) is not str:
            raise ValueError(f"{name} of a key is {value!r:.40}, not a text")
    if not _HASH.fullmatch(key.sha256) or not _HASH.fullmatch(key.old_sha256 or key.sha256):
        raise ValueError(f"sha256 of the key {key.id!r:.40} is not 64 hexadecimal digits")
    for ends, moment in (("expires", key.expires), ("'s old secret ends", key.old_until)):
        if moment and not _is_moment(moment):
            raise ValueError(
                f"the key {key.id!r:.40} {ends} {moment!r:.40}; write 2027-01-31T00:00:00Z"
            )


def _is_moment(text: str) -> bool:
    with suppress(ValueError):
        return bool(_MOMENT.fullmatch(text) and datetime.fromisoformat(text))
    return False


def _check_limits(key: ApiKey) -> None:
    for name, least in _LEAST.items():
        value = getattr(key.limits, name)
        kinds = (int, float) if name == "cost_per_day" else (int,)
        if value is not None and (type(value) not in kinds or not least <= value <= MAX_LIMIT):
            raise ValueError(
                f"{name} of the key {key.id!r:.40} is {value!r:.40}; give {least} to {MAX_LIMIT}, "
                "or leave it out for no limit"
            )


def _check_new(key: ApiKey) -> None:
    """Check a key that is to be written.

    Raises:
        InvalidInputError: A value is invalid.
    """
    if not key.name.strip() or len(key.name) > _MAX_NAME or not key.name.isprintable():
        raise InvalidInputError(
            f"the name {key.name!r:.100} is not valid; give a key the name of its user, at most "
            f"{_MAX_NAME} printable characters"
        )
    if not key.scopes:
        raise InvalidInputError(
            f"the key has no scope; choose from {', '.join(scope.value for scope in Scope)}"
        )
    try:
        _check_values(key)
    except ValueError as err:
        raise InvalidInputError(str(err)) from err


def _change(
    path: Path, change: Callable[[list[ApiKey]], list[ApiKey]], *, missing_ok: bool = False
) -> None:
    try:
        with locked(path):
            keys = [] if missing_ok and not path.exists() else read_keys(path)
            content = {"version": _VERSION, "keys": [asdict(key) for key in change(keys)]}
            replace_private(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    except OSError as err:
        raise OutputError(
            f"{path} can't be written: {err.strerror or err}; check its folder"
        ) from err


def _change_one(path: Path, key_id: str, change: Callable[[ApiKey], ApiKey]) -> ApiKey:
    """Change one key of a file, and return it."""
    made: list[ApiKey] = []

    def changed(keys: list[ApiKey]) -> list[ApiKey]:
        made.extend(change(key) for key in keys if key.id == key_id)
        if not made:
            raise NotFoundError(
                f"{path} has no key {key_id!r:.80}; hallujudge keys list shows the ids",
                metadata={"key": key_id},
            )
        return [made[0] if key.id == key_id else key for key in keys]

    _change(path, changed)
    return made[0]


# Compared for unknown ids, so that they take as long as known ones.
_NOBODY = Caller(id="", name="", secret=secret_hash(""))


class KeyStore:
    """Identifies callers by their keys.

    Args:
        path: The file of keys.

    Raises:
        InvalidInputError: The file can't be read, or is not a file of keys.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = self._failed = _stamp(path)
        self._keys = _by_id(path)

    def look(self) -> None:
        """Read the file again if it changed; keep the keys if it can't be read."""
        if (stamp := _stamp(self._path)) == self._seen:
            self._failed = stamp
            return
        try:
            self._keys = _by_id(_checked(self._path))
            _LOG.info("keys read again from %s: %d keys", self._path, len(self._keys))
        except InvalidInputError as err:
            if stamp != self._failed:
                _LOG.error("the keys stay as they were: %s", err)
            self._failed = stamp
            if isinstance(err.__cause__, OSError):  # the next look may be able to read it
                return
        self._seen = stamp

    def caller(self, text: str) -> Caller:
        """Return the caller to whom a key belongs.

        Only the owner of the secret learns that a key is expired or revoked. All others get the
        same answer, whether the id exists or not, in the same time.

        Raises:
            UnauthenticatedError: The key is not valid.
        """
        match = KEY_PATTERN.fullmatch(text)
        key, callers = self._keys.get(match["id"] if match else "", (None, (_NOBODY, _NOBODY)))
        shown = secret_hash(match["secret"] if match else "")
        # Both are compared in any case, in constant time.
        right = [one for one in callers if hmac.compare_digest(shown, one.secret)]
        if not right or key is None:
            raise UnauthenticatedError("the API key is not valid; check it, or ask for another")
        key.check(shown)
        return right[0]

    def check(self, caller: Caller) -> None:
        """Check that the key of a caller, which was valid when its call began, still is.

        Raises:
            UnauthenticatedError: It is not.
        """
        self._known(caller).check(caller.secret)

    def current(self, caller: Caller) -> Caller:
        """Return a caller with the scopes and limits that its key has now.

        A job has no secret: its caller showed it when the job was created.

        Raises:
            UnauthenticatedError: The key, or the secret of the caller's call, has ended.
        """
        key = self._known(caller)
        key.check(caller.secret or key.sha256)
        return replace(caller, scopes=frozenset(key.scopes), limits=key.limits)

    def _known(self, caller: Caller) -> ApiKey:
        if (known := self._keys.get(caller.key_id)) is None:
            id = caller.key_id
            raise _ended(id, f"the API key {id} is no longer known", "another")
        return known[0]


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        status = os.stat(path)  # noqa: PTH116 - half the time of Path.stat, once a second
    except OSError:  # missing, or not readable now: it differs from what was seen, and is logged
        return ()
    return (status.st_ino, status.st_size, status.st_mtime_ns)


def _checked(path: Path) -> Path:
    """Return the path of a file that can be read without waiting.

    Raises:
        InvalidInputError: It is a pipe or a terminal. One that is waited for stops all later looks,
            so that revoked keys stayed valid.
    """
    if never_ends(path):
        raise InvalidInputError(
            f"the key file {path} is not a regular file, but a pipe or a device; put a file there"
        )
    return path


def _by_id(path: Path) -> dict[str, tuple[ApiKey, tuple[Caller, Caller]]]:
    """Return each key with its caller by the secret, and by the one before."""
    return {
        key.id: (key, (key.caller(key.sha256), key.caller(key.old_sha256 or _NOBODY.secret)))
        for key in read_keys(path)
    }
