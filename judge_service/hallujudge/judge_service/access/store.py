"""The keys of a running server, read again when their file changes."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable
from pathlib import Path

from ..errors import InvalidInputError, UnauthenticatedError
from .caller import Caller
from .keys import KEY_PATTERN, ApiKey, read_keys, same_hash, secret_hash

__all__ = ["KeyStore"]

_LOG = logging.getLogger(__name__)

LOOK_SECONDS = 1.0
"""How often the file is looked at."""
_NO_HASH = secret_hash("")


class KeyStore:
    """Tells callers by their keys.

    Args:
        path: The file of keys.
        clock: Seconds on a clock that never goes back.

    Raises:
        InvalidInputError: The file can't be read, or is not a file of keys.
    """

    def __init__(self, path: Path, clock: Callable[[], float] = time.monotonic) -> None:
        self._path = path
        self._clock = clock
        self._looked = clock()
        self._seen = _stamp(path)
        self._keys = _by_id(path)

    def caller(self, text: str) -> Caller:
        """Return the caller who has a key.

        Only who has the secret learns that a key is expired or revoked. Everybody else gets the
        same answer, whether the id exists or not, in the same time.

        Raises:
            UnauthenticatedError: The key is not valid.
        """
        self._look()
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
        self._look()
        known = self._keys.get(caller.key_id)
        if known is None:
            raise UnauthenticatedError(
                f"the API key {caller.key_id} is no longer known; ask the server's "
                "administrator for another",
                metadata={"key": caller.key_id},
            )
        _check_state(known[0])

    def _look(self) -> None:
        """Read the file again if it changed; keep the keys if it can't be read."""
        if self._clock() - self._looked < LOOK_SECONDS:
            return
        self._looked = self._clock()
        if (stamp := _stamp(self._path)) == self._seen:
            return
        self._seen = stamp
        try:
            self._keys = _by_id(self._path)
            _LOG.info("keys read again from %s: %d keys", self._path, len(self._keys))
        except InvalidInputError as err:
            _LOG.error("the keys stay as they were: %s", err)


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
