"""Open connections: how many there may be, and which are closed when there are too many."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import resource
import socket
import stat
import threading
import time
from collections import Counter, OrderedDict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from ..settings.server_settings import LimitSettings
from .authentication import network_of, peer_of

_LOG = logging.getLogger(__name__)

# What the process has open: names that are the files' numbers, on Linux and macOS.
_FILES = "/dev/fd"
# For databases, judges' connections, models, workers' pipes: a quarter of all, in these bounds.
_LEAST_RESERVE, _MOST_RESERVE = 64, 1024
# In place of "unlimited", for the arithmetic of limits.
_ENDLESS = 1 << 20
# A burst between two looks may bring an eighth more connections than are kept.
_BURST = 8
_LOOK_SECONDS = 0.1
# While a look finds something to close, the next one comes sooner: the burst goes on.
_SOON_SECONDS = 0.02
_WARNING_SECONDS = 60.0
# How much longer than a look the pause after it is: looks take a tenth of a core at most.
_PAUSE = 10
_NO_FILES = (errno.EMFILE, errno.ENFILE)


def raise_file_limit() -> None:
    """Let this process, and those that it starts, open as many files as the system allows."""
    _, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    # Some systems have a lower limit than the one that they name.
    with contextlib.suppress(OSError, ValueError):
        resource.setrlimit(resource.RLIMIT_NOFILE, (hard, hard))


def open_file_limit() -> int:
    """Return how many files this process may open."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return _ENDLESS if soft == resource.RLIM_INFINITY else soft


@dataclass(frozen=True, slots=True, kw_only=True)
class ConnectionLimits:
    """How many connections may stay open."""

    files: int
    """How many files the process may open."""
    total: int
    """Connections in all."""
    by_address: int
    """Connections of one address; of IPv6, of one network (/64)."""

    @classmethod
    def of(cls, settings: LimitSettings, files: int) -> ConnectionLimits:
        """Return the limits of the settings for a process that may open so many files.

        No address has more than three quarters, so that there is room for another one.
        """
        reserve = min(max(_LEAST_RESERVE, files // 4), _MOST_RESERVE)
        total = max(1, min(settings.max_connections, files - reserve))
        by_address = min(settings.max_connections_by_address, total - total // 4)
        return cls(files=files, total=total, by_address=by_address)

    @property
    def burst(self) -> int:
        """At how many connections gRPC closes further ones as they come."""
        return self.total + max(1, self.total // _BURST)


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """A connection that a client opened."""

    file: int
    """The number of its file."""
    inode: int
    """Distinguishes it from a later connection with the same number."""
    peer: str
    """The client's address, in gRPC's notation."""
    network: str
    """The address or network that it counts for."""


def surplus(
    connections: Sequence[Connection],
    calls: Mapping[str, int],
    limits: ConnectionLimits,
    heard: Callable[[Connection], bool],
) -> list[Connection]:
    """Return the connections to close. One with a running call is never closed.

    Silent ones go first, then those on which no known caller ever called. Of both, the oldest go
    before the others: a new connection has time for its first call. The others follow, the longest
    unused one first.

    Args:
        connections: All connections, the oldest first.
        calls: The number of running calls by peer; the peer that called last is the last one.
        limits: How many may stay open.
        heard: Returns whether the client of a connection has sent anything.
    """
    counts = Counter(one.network for one in connections)
    if counts.total() <= limits.total and max(counts.values(), default=0) <= limits.by_address:
        return []
    used = {peer: place for place, peer in enumerate(calls, 1)}
    idle = [one for one in connections if not calls.get(one.peer)]
    # Silent ones have -1, those without a known caller 0, and used ones the place of their last
    # call.
    idle.sort(key=lambda one: used.get(one.peer) or -1 + heard(one))
    closed: list[Connection] = []
    kept: list[Connection] = []
    for one in idle:
        many = counts[one.network] > limits.by_address
        counts[one.network] -= many
        (closed if many else kept).append(one)
    return closed + kept[: max(0, counts.total() - limits.total)]


class SpareFile:
    """A file that is kept open, so that its number is there when all others are used."""

    def __init__(self) -> None:
        self._file: int | None = None

    def keep(self) -> None:
        """Open the file."""
        with contextlib.suppress(OSError):
            self._file = os.open(os.devnull, os.O_RDONLY)

    def close(self) -> None:
        """Close the file."""
        if self._file is not None:
            os.close(self._file)
            self._file = None

    @contextmanager
    def lent(self) -> Iterator[None]:
        """Let the block use the number."""
        self.close()
        try:
            yield
        finally:
            self.keep()


class ConnectionGuard:
    """Closes idle connections before they lock others out, or take the process's last files.

    gRPC's core accepts connections in threads of its own, without a callback. The guard therefore
    looks at the files of the process, in a thread; a call costs two counts. It shuts a connection
    down, which the owner of the connection, gRPC or asyncio, takes for the end of the client.

    Args:
        limits: How many connections may stay open.
        clock: A monotonic clock, in seconds.
    """

    def __init__(
        self, limits: ConnectionLimits, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self.limits = limits
        self._clock = clock
        self._calls: OrderedDict[str, int] = OrderedDict()
        self._known: dict[int, Connection] = {}
        self._closing: set[int] = set()
        self._closed = 0
        self._warned_at = -_WARNING_SECONDS
        self._ports: frozenset[int] = frozenset()
        # One for each thread that lends it: that of the guard, and that of the event loop.
        self._spare, self._accepting = SpareFile(), SpareFile()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._run, name="connections", daemon=True)

    def entered(self, peer: str) -> None:
        """Count a call of a known caller; :meth:`left` ends it."""
        calls = self._calls
        calls[peer] = calls.get(peer, 0) + 1
        # Ordered by use. The peer is never missing: the guard's thread may look at any moment.
        calls.move_to_end(peer)
        if len(calls) > 2 * self.limits.burst:
            self._forget()

    def left(self, peer: str) -> None:
        """Record that a call has ended."""
        self._calls[peer] -= 1

    def _forget(self) -> None:
        """Forget half of the peers without a running call: most have gone."""
        idle = [peer for peer, calls in self._calls.items() if not calls]
        for peer in idle[: -(-len(idle) // 2)]:
            del self._calls[peer]

    def begin(self, ports: Collection[int]) -> None:
        """Watch the connections to some ports."""
        self._ports = frozenset(ports)
        self._spare.keep()
        self._accepting.keep()
        self._thread.start()

    def end(self) -> None:
        """Stop watching."""
        self._ended.set()
        if self._thread.ident is not None:
            self._thread.join(_WARNING_SECONDS)
        self._spare.close()
        self._accepting.close()

    def _run(self) -> None:
        seconds = _LOOK_SECONDS
        while not self._ended.wait(seconds):
            # Processor time, because a look lasts longer on a busy machine without doing more.
            began = time.thread_time()
            try:
                seconds = _SOON_SECONDS if self.look() else _LOOK_SECONDS
            except Exception as err:  # such as a system without a list of open files
                _LOG.warning("connections can't be counted: %s", err)
                seconds = _WARNING_SECONDS
            seconds = max(seconds, _PAUSE * (time.thread_time() - began))

    def look(self) -> int:
        """Close the connections that are too many; return how many these are."""
        with self._spare.lent():
            files = [int(name) for name in os.listdir(_FILES)]  # noqa: PTH208 - for speed
            # Half of the limit, so that the order of connections is known before one is closed.
            if len(files) <= self.limits.by_address // 2:
                return 0
            connections = self._connections(files)
            many = surplus(connections, dict(self._calls), self.limits, _heard)
            closed = [one for one in many if _shut(one)]
        self._closing.update(one.inode for one in closed)
        self._closed += len(closed)
        if self._closed and self._clock() >= self._warned_at + _WARNING_SECONDS:
            self._warn(connections)
        return len(closed)

    def _connections(self, files: Iterable[int]) -> list[Connection]:
        """Return the open connections, the oldest first."""
        sockets = _sockets(files)
        known = {n: one for n, one in self._known.items() if sockets.get(n) == one.file}
        for inode, file in sockets.items():
            if inode not in known:
                peer = self._peer(file)
                network = network_of(peer)
                known[inode] = Connection(file=file, inode=inode, peer=peer, network=network)
        self._known = known
        self._closing &= known.keys()
        return [one for n, one in known.items() if one.peer and n not in self._closing]

    def _peer(self, file: int) -> str:
        """Return the client at the other end of a socket, or an empty text."""
        # Of a copy: closing the object must not close the connection.
        with contextlib.suppress(OSError), socket.socket(fileno=os.dup(file)) as one:
            inet = one.family in (socket.AF_INET, socket.AF_INET6)
            if inet and one.getsockname()[1] in self._ports:
                return peer_of(one.getpeername()[:2])
        return ""

    def _warn(self, connections: Sequence[Connection]) -> None:
        counts = Counter(one.network for one in connections)
        address, most = next(iter(counts.most_common(1)), ("anybody", 0))
        _LOG.warning(
            "closed %d idle connections: %d were open, %d of them from %s, and %d in all and %d of "
            "one address may be; see limits.max_connections, limits.max_connections_by_address and "
            "ulimit -n (%d)",
            self._closed,
            len(connections),
            most,
            address,
            self.limits.total,
            self.limits.by_address,
            self.limits.files,
        )
        self._closed, self._warned_at = 0, self._clock()

    def accept(self, accepting: Callable[[], tuple[socket.socket, Any]]) -> Any:
        """Return the next connection of a listening socket that the event loop accepts from.

        One that would take one of the last files is closed. asyncio would log a traceback for each
        connection that it has no file for, thousands a second.

        Args:
            accepting: Accepts a connection.

        Raises:
            BlockingIOError: There is none, or it was closed.
        """
        try:
            one, address = accepting()
            if one.fileno() < self.limits.files - _LEAST_RESERVE // 2:
                return one, address
            one.close()
        except OSError as err:
            if err.errno not in _NO_FILES:
                raise
            with self._accepting.lent(), contextlib.suppress(OSError):
                accepting()[0].close()
        self._closed += 1
        # asyncio takes this for no connection at all, and waits for the next one.
        raise BlockingIOError


def _sockets(files: Iterable[int]) -> dict[int, int]:
    """Return the numbers of open sockets by inode."""
    found = {}
    for file in files:
        with contextlib.suppress(OSError):  # closed meanwhile
            status = os.fstat(file)
            if stat.S_ISSOCK(status.st_mode):
                found[status.st_ino] = file
    return found


def _heard(connection: Connection) -> bool:
    """Return whether bytes came over a connection; False if the system does not tell."""
    missing = contextlib.suppress(AttributeError, OSError)
    with missing, socket.socket(fileno=os.dup(connection.file)) as one:
        # bytes_received of Linux's struct tcp_info.
        return any(one.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, 136)[128:])
    return False


def _shut(connection: Connection) -> bool:
    """Shut a connection down, unless its number belongs to another file by now."""
    with contextlib.suppress(OSError), socket.socket(fileno=os.dup(connection.file)) as one:
        if os.fstat(one.fileno()).st_ino == connection.inode:
            one.shutdown(socket.SHUT_RDWR)
            return True
    return False
