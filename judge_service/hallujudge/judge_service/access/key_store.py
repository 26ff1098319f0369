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
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from ..errors import InvalidInputError, NotFoundError, OutputError, UnauthenticatedError
from ..state_files import create_folder, create_private
from .caller import MAX_LIMIT, Caller, Limits, Scope

try:
    import fcntl
except ImportError:  # Windows: two administrators must not change keys at the same moment
    fcntl = None  # type: ignore[assignment]  # checked where it is used

_LOG = logging.getLogger(__name__)
KEY_PATTERN = re.compile(r"hj_(?P<id>[a-z2-7]{8})_(?P<secret>[A-Za-z0-9_-]{43})")
"""A key as callers send it: its id, by which it is looked up, and 256 random bits."""

# Base32 in lower case: no digits that look like letters.
_ALPHABET = "abcdefghijklmnopqrstuvwxyz234567"
_ID_LENGTH = 8
_SECRET_BYTES = 32
_VERSION = 1
# Tens of thousands of keys.
_MAX_FILE_BYTES = 16 << 20
_MAX_NAME = 80
_HASH = re.compile(r"[0-9a-f]{64}")
_MOMENT = re.compile(r"\d{4}-\d\d-\d\d(T\d\d:\d\d:\d\dZ)?", re.ASCII)
_TEXTS = ("id", "name", "sha256", "created", "expires", "revoked")
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

    def state(self, moment: str = "") -> str:
        """Return ``revoked``, ``expired`` or ``valid``.

        Args:
            moment: The time, in the form of :func:`now`; empty for now.
        """
        if self.revoked:
            return "revoked"
        return "expired" if self.expires and self.expires <= (moment or now()) else "valid"

    def caller(self) -> Caller:
        """Return the caller to whom this key belongs."""
        return Caller(
            id=f"key:{self.id}",
            name=f"key {self.id} ({self.name})",
            key_id=self.id,
            key_name=self.name or self.id,
            scopes=frozenset(self.scopes),
            limits=self.limits,
        )


def now() -> str:
    """Return the time (UTC) as key files have it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


def secret_hash(secret: str) -> str:
    """Return the hash of a secret.

    A plain hash is enough: no attacker can try 2^256 secrets, so salt and slowness add nothing.
    """
    return hashlib.sha256(secret.encode()).hexdigest()


def same_hash(one: str, other: str) -> bool:
    """Compare hashes in constant time."""
    return hmac.compare_digest(one, other)


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
    _check(name, scopes)
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
    try:
        _check_values(key)
    except ValueError as err:
        raise InvalidInputError(str(err)) from err
    _change(path, lambda keys: [*keys, key], missing_ok=True)
    return f"hj_{key_id}_{secret}"


def revoke_key(path: Path, key_id: str) -> ApiKey:
    """Revoke a key; running servers refuse it within a second.

    Raises:
        NotFoundError: The file has no such key.
        InvalidInputError: The file is not a file of keys.
    """
    moment = now()

    def revoked(keys: list[ApiKey]) -> list[ApiKey]:
        if key_id not in {key.id for key in keys}:
            raise NotFoundError(
                f"{path} has no key {key_id!r:.80}; hallujudge keys list shows the ids",
                metadata={"key": key_id},
            )
        return [
            replace(key, revoked=key.revoked or moment) if key.id == key_id else key for key in keys
        ]

    changed = _change(path, revoked)
    return next(key for key in changed if key.id == key_id)


def read_keys(path: Path) -> list[ApiKey]:
    """Return the keys of a file.

    Raises:
        InvalidInputError: The file can't be read, or is not a file of keys.
    """
    try:
        with path.open("rb") as stream:
            data = stream.read(_MAX_FILE_BYTES + 1)
    except OSError as err:
        raise InvalidInputError(
            f"the key file {path} can't be read: {err.strerror or err}; make one with hallujudge "
            "keys create"
        ) from err
    try:
        return _keys(data)
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
    if content.get("version") != _VERSION:
        found = content.get("version")
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
    if not _HASH.fullmatch(key.sha256):
        raise ValueError(f"sha256 of the key {key.id!r:.40} is not 64 hexadecimal digits")
    if key.expires and not _is_moment(key.expires):
        raise ValueError(
            f"the key {key.id!r:.40} expires {key.expires!r:.40}; write 2027-01-31T00:00:00Z"
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


def _check(name: str, scopes: Sequence[Scope]) -> None:
    if not name.strip() or len(name) > _MAX_NAME or not name.isprintable():
        raise InvalidInputError(
            f"the name {name!r:.100} is not valid; give a key the name of its user, at most "
            f"{_MAX_NAME} printable characters"
        )
    if not scopes:
        raise InvalidInputError(
            f"the key has no scope; choose from {', '.join(scope.value for scope in Scope)}"
        )


def _change(
    path: Path, change: Callable[[list[ApiKey]], list[ApiKey]], *, missing_ok: bool = False
) -> list[ApiKey]:
    with locked(path):
        keys = [] if missing_ok and not path.exists() else read_keys(path)
        changed = change(keys)
        content = {"version": _VERSION, "keys": [asdict(key) for key in changed]}
        replace_private(path, json.dumps(content, indent=1, ensure_ascii=False) + "\n")
    return changed


# Compared for unknown ids, so that they take as long as known ones.
_NO_HASH = secret_hash("")


class KeyStore:
    """Identifies callers by their keys.

    Args:
        path: The file of keys.

    Raises:
        InvalidInputError: The file can't be read, or is not a file of keys.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._seen = _stamp(path)
        self._keys = _by_id(path)

    def look(self) -> None:
        """Read the file again if it changed; keep the keys if it can't be read."""
        if (stamp := _stamp(self._path)) == self._seen:
            return
        self._seen = stamp
        try:
            self._keys = _by_id(self._path)
            _LOG.info("keys read again from %s: %d keys", self._path, len(self._keys))
        except InvalidInputError as err:
            _LOG.error("the keys stay as they were: %s", err)

    def caller(self, text: str) -> Caller:
        """Return the caller to whom a key belongs.

        Only the owner of the secret learns that a key is expired or revoked. All others get the
        same answer, whether the id exists or not, in the same time.

        Raises:
            UnauthenticatedError: The key is not valid.
        """
        match = KEY_PATTERN.fullmatch(text)
        known = self._keys.get(match["id"]) if match else None
        key, caller = known or (None, None)
        right = same_hash(
            secret_hash(match["secret"] if match else ""), key.sha256 if key else _NO_HASH
        )
        if not right or key is None or caller is None:
            raise UnauthenticatedError("the API key is not valid; check it, or ask for another")
        _check_state(key)
        return caller

    def check(self, caller: Caller) -> None:
        """Check that the key of a caller, which was valid when its call began, still is.

        Raises:
            UnauthenticatedError: It is not.
        """
        known = self._keys.get(caller.key_id)
        if known is None:
            raise UnauthenticatedError(
                f"the API key {caller.key_id} is no longer known; ask the server's "
                "administrator for another",
                metadata={"key": caller.key_id},
            )
        _check_state(known[0])


def _check_state(key: ApiKey) -> None:
    if (state := key.state()) != "valid":
        raise UnauthenticatedError(
            f"the API key {key.id} is {state}; ask the server's administrator for another",
            metadata={"key": key.id},
        )


def _stamp(path: Path) -> tuple[int, ...]:
    try:
        status = os.stat(path)  # noqa: PTH116 - half the time of Path.stat, once a second
    except OSError:
        return ()
    return (status.st_ino, status.st_size, status.st_mtime_ns)


def _by_id(path: Path) -> dict[str, tuple[ApiKey, Caller]]:
    return {key.id: (key, key.caller()) for key in read_keys(path)}


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Let one process at a time change a file, by a lock on a file next to it.

    Raises:
        OutputError: The folder can't be written.
    """
    try:
        lock = path.with_name(f".{path.name}.lock")
        create_folder(path.parent)
        create_private(lock)
        holder = lock.open("a")
    except OSError as err:
        raise _unwritable(path, err) from err
    with holder:
        if fcntl is not None:
            fcntl.flock(holder, fcntl.LOCK_EX)
        yield


def replace_private(path: Path, text: str) -> None:
    """Replace a file at once; only its owner may read it.

    Raises:
        OutputError: The file can't be written.
    """
    fresh = path.with_name(f".{path.name}.new")
    try:
        # An earlier writer may have died; its file may have other permissions.
        fresh.unlink(missing_ok=True)
        with os.fdopen(os.open(fresh, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as stream:
            stream.write(text)
            stream.flush()
            os.fsync(stream.fileno())
        fresh.replace(path)
    except OSError as err:
        raise _unwritable(path, err) from err


def _unwritable(path: Path, err: OSError) -> OutputError:
    return OutputError(f"{path} can't be written: {err.strerror or err}; check its folder")
