"""Which of the servers on one database runs its jobs. The lock of a server that died is free."""

from __future__ import annotations

import fcntl
import os
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from sqlalchemy import func, select
from sqlalchemy.exc import SQLAlchemyError

from .faults import database_errors

if TYPE_CHECKING:
    from sqlalchemy import Connection, Engine

__all__ = ["FileLock", "RunnerLock", "ServerLock"]


class RunnerLock(Protocol):
    """A lock that at most one server holds. Every method blocks."""

    def acquire(self) -> bool:
        """Take the lock, or check that it is still held; return whether it is."""
        ...

    def release(self) -> None:
        """Let another server take the lock."""
        ...


class FileLock:
    """A lock beside a file; the system releases it when the process ends.

    Args:
        path: The lock's own file.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._descriptor: int | None = None

    def acquire(self) -> bool:
        """Take the lock, or check that it is still held; return whether it is."""
        if self._descriptor is not None:
            return True
        with database_errors():
            descriptor = os.open(self._path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            os.close(descriptor)
            return False
        self._descriptor = descriptor
        return True

    def release(self) -> None:
        """Let another server take the lock."""
        if self._descriptor is not None:
            os.close(self._descriptor)
            self._descriptor = None


class ServerLock:
    """A lock of a PostgreSQL server; it releases the lock when the connection ends.

    Args:
        engine: Makes connections.
        key: The lock's number.
    """

    def __init__(self, engine: Engine, key: int) -> None:
        self._engine = engine
        self._key = key
        self._connection: Connection | None = None

    def acquire(self) -> bool:
        """Take the lock, or check that it is still held; return whether it is."""
        if self._connection is not None:
            try:
                self._connection.execute(select(1))
                return True
            except SQLAlchemyError:
                # With the connection the server has released the lock.
                self.release()
        with database_errors():
            connection = self._engine.connect().execution_options(isolation_level="AUTOCOMMIT")
            # Out of the pool: no other user may get the connection that holds the lock.
            connection.detach()
            # Services may share a server, each with a schema of its own.
            schema = func.hashtext(func.current_schema())
            try:
                taken = connection.scalar(select(func.pg_try_advisory_lock(self._key, schema)))
            except BaseException:
                connection.close()
                raise
            if taken:
                self._connection = connection
                return True
            connection.close()
        return False

    def release(self) -> None:
        """Let another server take the lock."""
        connection, self._connection = self._connection, None
        if connection is not None:
            connection.close()
