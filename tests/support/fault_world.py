"""The world of a fault schedule: a server that dies and comes back, and all that it needs."""

from __future__ import annotations

import asyncio
import fcntl
import json
import os
import re
import resource
import shutil
import signal
import sqlite3
import tempfile
from collections.abc import Callable, Mapping
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import grpc
from support.fault_judge import FaultyJudge
from support.fault_life import Nursery
from support.fault_schedule import Fault
from support.threads import until

from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge.v1.judge_service_pb2_grpc import JudgeServiceStub
from hallujudge.judge_service.access.key_store import revoke_key

__all__ = ["AT_ONCE", "OUTPUT", "World"]

AT_ONCE = 4
"""Calls to the judge at the same time."""
OUTPUT = "output-"
"""How the names of folders begin that callers write to."""

_DATABASES = ("jobs", "verdicts", "spending")
# Prices that make a call of the scripted judge cost about a thousandth.
_SETTINGS = {
    "port": 0, "metrics.port": 0, "llm.model": "m", "llm.max_concurrency": AT_ONCE,
    "llm.price_prompt": 10.0, "llm.price_completion": 10.0,
    # In a life's seconds: no step of a schedule is to meet them on a busy machine.
    "llm.timeout_seconds": 3000.0, "limits.first_message_seconds": 3000.0,
    "limits.idle_seconds": 20_000.0,
    "drain_seconds": 500.0, "self_check_seconds": 0.0, "workers": 1,
}  # fmt: skip
_PAUSE = 0.01
_QUIET = 0.25
_STARTS = 400


class Life:
    """One process of the server.

    Attributes:
        pid: The process.
        address: Where it serves; empty if it ended before.
        log: What it wrote to standard error.
        dead: Set when it has ended.
        ended_well: Whether it ended by itself, and said so.
        is_ending: Whether it got a signal.
    """

    def __init__(self) -> None:
        self.pid = 0
        self.address = ""
        self.log = bytearray()
        self.dead = asyncio.Event()
        self.ended_well = False
        self.is_ending = False
        self._asked = asyncio.Lock()
        self._done = asyncio.Event()
        self._announced = asyncio.Event()
        self._from_log, self._to_log = os.pipe()
        os.set_blocking(self._from_log, False)

    async def begin(self, nursery: Nursery, settings: dict[str, Any]) -> None:
        """Start the process, and wait until it serves or has ended."""
        end = nursery.launch(settings, self._to_log)
        self.read_log()
        reader, self._writer = await asyncio.open_connection(sock=end)
        self._following = asyncio.create_task(self._follow(reader))
        await self._announced.wait()

    async def _follow(self, reader: asyncio.StreamReader) -> None:
        with suppress(ConnectionError):
            async for line in reader:
                said = json.loads(line)
                self.pid = said.get("pid", self.pid)
                self.ended_well |= "ended" in said
                if "done" in said:
                    self._done.set()
                if "address" in said:
                    self.address = said["address"]
                    self._announced.set()
        self.dead.set()
        self._announced.set()
        self._done.set()

    async def ask(self, **values: Any) -> None:
        """Let the process do something to itself, unless it is dead."""
        async with self._asked:
            if self.dead.is_set():
                return
            self._done.clear()
            with suppress(ConnectionError):
                self._writer.write(json.dumps(values).encode() + b"\n")
                await self._writer.drain()
            await self._done.wait()

    def signal(self, number: int) -> None:
        """Send a signal, unless it is dead."""
        self.is_ending = True
        if not self.dead.is_set():
            with suppress(ProcessLookupError):
                os.kill(self.pid, number)

    def read_log(self) -> None:
        """Begin to read standard error again."""
        asyncio.get_running_loop().add_reader(self._from_log, self._read)

    def block_log(self) -> None:
        """Read standard error no more, and fill its pipe."""
        asyncio.get_running_loop().remove_reader(self._from_log)
        fcntl.fcntl(self._from_log, fcntl.F_SETPIPE_SZ, 4096)
        filler = os.open(f"/dev/fd/{self._to_log}", os.O_WRONLY | os.O_NONBLOCK)
        with suppress(BlockingIOError):
            while True:
                os.write(filler, b"." * 1023 + b"\n")
        os.close(filler)

    def _read(self) -> None:
        with suppress(BlockingIOError):
            self.log += os.read(self._from_log, 1 << 16)

    async def bury(self) -> None:
        """Read the rest of the log, and close what belongs to a dead process."""
        await self._following
        self._writer.close()
        asyncio.get_running_loop().remove_reader(self._from_log)
        os.close(self._to_log)
        with os.fdopen(self._from_log, "rb") as rest:
            self.log += rest.read() or b""


class World:
    """Everything around the callers; an async context manager.

    Attributes:
        judge: The judge.
        life: The process that serves now, or is about to.
        log: What dead processes wrote to standard error.
        troubled: The databases that had a fault, in any life.
        revoking: Callers whose keys were revoked.
        revoked: Callers whose keys were revoked, with the calls about their own claims until then.
        cache_troubled: Whether the verdict cache had a fault in this life.
        ends: How often a process ended.
        kills: How often it was killed.
        was_refused: Whether each start with an emptied database was refused.
        sockets_at_start: The sockets of a process before its first call.
        on_death: Called between two lives.
        serving: Set while there is a process to call.
    """

    def __init__(
        self, nursery: Nursery, folder: Path, keys: Path, by_caller: Mapping[str, str] | None = None
    ) -> None:
        self.folder = folder
        self._by_caller = by_caller or {}
        self.judge = FaultyJudge(AT_ONCE)
        self.log = bytearray()
        self.troubled: set[str] = set()
        self.revoked: dict[str, int] = {}
        self.revoking: set[str] = set()
        self.cache_troubled = False
        self.ends = 0
        self.kills = 0
        self.was_refused = True
        self.sockets_at_start = 0
        self.serving = asyncio.Event()
        self.on_death: Callable[[], None] = lambda: None
        self._keys = keys
        self._nursery = nursery
        self._faults: set[asyncio.Task[None]] = set()
        self._jumped = 0.0
        self._is_full = False
        self._is_broken = False

    async def __aenter__(self) -> World:
        shutil.copy(self._keys, self.folder / "keys.json")
        await self.judge.start()
        await self._start()
        return self

    async def __aexit__(self, *_: object) -> None:
        for task in self._faults:
            task.cancel()
        await asyncio.gather(*self._faults, return_exceptions=True)
        self.life.signal(signal.SIGKILL)
        await self._ended()
        await self.judge.stop()

    async def _start(self) -> None:
        """Start the server, again and again as a service manager does."""
        for _ in range(_STARTS):
            await self._begin_life()
            if self.life.address:
                self.sockets_at_start = sum(one.startswith("socket:") for one in self.open_files())
                self._channel = grpc.aio.insecure_channel(
                    self.life.address, options=[("grpc.use_local_subchannel_pool", 1)]
                )
                self._limit_files()
                self.serving.set()
                return
            await self._ended()
            await asyncio.sleep(_PAUSE)
        raise AssertionError(f"the server does not start: {self.log.decode()[-2000:]}")

    async def _begin_life(self) -> None:
        self.judge.server_starts()
        self.life = Life()
        settings = _SETTINGS | {
            "data_folder": str(self.folder),
            "access.keys_file": str(self.folder / "keys.json"),
            "llm.url": self.judge.url,
            "jumped": self._jumped,
            "full": self._is_full,
        }
        await self.life.begin(self._nursery, settings)

    @property
    def channel(self) -> grpc.aio.Channel:
        """The connection to the life that serves now."""
        return self._channel

    async def _ended(self) -> None:
        await self.life.dead.wait()
        await self.life.bury()
        self.log += self.life.log
        self.judge.drop()
        # What it sent is in the judge's books before the next life begins.
        await until(lambda: not self.judge.connections)

    async def suffer(self, fault: Fault) -> None:
        """Let a fault happen after some calls, or when no more calls come; it ends by itself."""
        await self._calls(fault.after)
        happens = getattr(self, f"_{fault.kind}")
        if fault.kind in ("kill", "stop", "forget", "jump", "empty", "revoke", "delete"):
            await happens(fault)
            return
        begun = asyncio.Event()

        async def last() -> None:
            try:
                await happens(fault, begun)
            finally:
                begun.set()

        task = asyncio.create_task(last())
        self._faults.add(task)
        await begun.wait()

    async def heal(self) -> None:
        """Wait until all faults are over."""
        await asyncio.gather(*self._faults)
        self._faults.clear()

    async def _calls(self, count: int) -> None:
        """Wait until the judge got so many more calls, or gets none for a while."""
        loop = asyncio.get_running_loop()
        wanted, seen, since = self.judge.chats + count, self.judge.chats, loop.time()
        while self.judge.chats < wanted and loop.time() - since < _QUIET:
            if seen < self.judge.chats:
                seen, since = self.judge.chats, loop.time()
            await asyncio.sleep(_PAUSE)

    async def _kill(self, fault: Fault) -> None:
        self.kills += 1
        if fault.what:
            self.judge.holds = True
            await self._calls(AT_ONCE)
            self.life.signal(signal.SIGKILL)
            self.judge.holds = False
        else:
            self.life.signal(signal.SIGKILL)
        await self._next_life()

    async def _stop(self, _fault: Fault) -> None:
        self.life.signal(signal.SIGTERM)
        await self._next_life()

    async def _forget(self, _fault: Fault) -> None:
        """Kill the server and delete its verdicts, which no schedule of a seed does."""
        self.life.signal(signal.SIGKILL)
        await self._next_life(forgets=True)

    async def _empty(self, fault: Fault) -> None:
        """Kill, empty a database, see the next start refused, and put the database back."""
        self.kills += 1
        self.life.signal(signal.SIGKILL)
        await self._next_life(empties=fault.what)

    async def _refused_start(self, name: str) -> None:
        known = self.folder / "databases.json"
        path = self.folder / f"{name}.sqlite"
        if not known.exists() or str(path) not in known.read_text("utf-8"):
            return  # it was killed before it used the database
        away = self.folder / "away"
        away.mkdir()
        for file in self.folder.glob(f"{name}.sqlite*"):
            file.rename(away / file.name)
        path.touch()
        await self._begin_life()
        self.was_refused &= not self.life.address and b"accept_new_state" in self.life.log
        self.life.signal(signal.SIGKILL)
        await self._ended()
        for file in self.folder.glob(f"{name}.sqlite*"):
            file.unlink()
        for file in away.iterdir():
            file.rename(self.folder / file.name)
        away.rmdir()

    async def _next_life(self, *, forgets: bool = False, empties: str = "") -> None:
        channel = self._channel
        await self._ended()
        if forgets:
            for file in self.folder.glob("verdicts.sqlite*"):
                file.unlink()
        self.serving.clear()
        self.on_death()
        self.ends += 1
        await channel.close()
        self.cache_troubled = self._is_full or self._is_broken
        if empties:
            await self._refused_start(empties)
        await self._start()

    async def _lock(self, fault: Fault, begun: asyncio.Event) -> None:
        path = self.folder / f"{fault.what}.sqlite"
        if not path.exists():
            return
        self._trouble(fault.what)
        with closing(sqlite3.connect(path, timeout=0.5, isolation_level=None)) as other:
            with suppress(sqlite3.OperationalError):
                other.execute("BEGIN EXCLUSIVE")
            begun.set()
            await asyncio.sleep(fault.lasts)

    async def _fill(self, full: bool) -> None:
        self._is_full = full
        await self.life.ask(full=full)

    async def _full(self, fault: Fault, begun: asyncio.Event) -> None:
        self._trouble(*_DATABASES)
        await self._fill(True)
        begun.set()
        await asyncio.sleep(fault.lasts)
        await self._fill(False)

    async def _broken(self, fault: Fault, begun: asyncio.Event) -> None:
        self._trouble(*_DATABASES)
        self._is_broken = True
        self._limit_files()
        begun.set()
        await asyncio.sleep(fault.lasts)
        self._is_broken = False
        self._limit_files()

    def _limit_files(self) -> None:
        """Let no file of the process grow, or let them grow again."""
        most = 0 if self._is_broken else resource.RLIM_INFINITY
        with suppress(ProcessLookupError):
            resource.prlimit(self.life.pid, resource.RLIMIT_FSIZE, (most, resource.RLIM_INFINITY))

    def _trouble(self, *databases: str) -> None:
        self.troubled.update(databases)
        self.cache_troubled |= "verdicts" in databases

    async def _judge(self, fault: Fault, begun: asyncio.Event) -> None:
        self.judge.fault = fault.what
        begun.set()
        await asyncio.sleep(fault.lasts)
        self.judge.fault = ""
        self.judge.drop()

    async def _poison(self, fault: Fault, begun: asyncio.Event) -> None:
        caller, kind = fault.what.split()
        self.judge.poisons[caller] = kind
        begun.set()
        await asyncio.sleep(fault.lasts)
        self.judge.poisons.pop(caller, None)

    async def _limit(self, fault: Fault, begun: asyncio.Event) -> None:
        self.judge.limited.add(fault.what)
        begun.set()
        await asyncio.sleep(fault.lasts)
        self.judge.limited.discard(fault.what)

    async def _delete(self, _fault: Fault) -> None:
        """Delete what callers write to now, whole at one moment: a caller that is done reads it."""
        for folder in self.folder.glob(f"{OUTPUT}*"):
            gone = folder.rename(tempfile.mkdtemp(prefix="deleted-", dir=self.folder))
            await asyncio.to_thread(shutil.rmtree, gone, ignore_errors=True)

    async def _revoke(self, fault: Fault) -> None:
        """Revoke a key, and wait until the server that lives knows it."""
        self.revoking.add(fault.what)
        key, life = self._by_caller[fault.what], self.life
        await asyncio.to_thread(revoke_key, self.folder / "keys.json", key.split("_")[1])
        while not life.dead.is_set() and await self._knows(key):
            await asyncio.sleep(_PAUSE)
        self.revoked[fault.what] = self.judge.sent_for(fault.what)

    async def _knows(self, key: str) -> bool:
        """Return whether the server that lives takes a key for valid."""
        stub: Any = JudgeServiceStub(self._channel)
        try:
            await stub.GetServerInfo(
                pb.GetServerInfoRequest(), metadata=(("authorization", f"Bearer {key}"),)
            )
        except grpc.RpcError as err:
            return err.code() is not grpc.StatusCode.UNAUTHENTICATED
        return True

    async def _jump(self, fault: Fault) -> None:
        self._jumped += float(fault.what)
        await self.life.ask(jumped=self._jumped)

    async def _log(self, fault: Fault, begun: asyncio.Event) -> None:
        life = self.life
        life.block_log()
        begun.set()
        await asyncio.sleep(fault.lasts)
        if not life.dead.is_set():
            life.read_log()

    def database(self, name: str) -> sqlite3.Connection:
        """Return a connection to a copy of a database, as it is on the disk now."""
        copies = self.folder / "copies"
        copies.mkdir(exist_ok=True)
        for end in ("", "-wal"):
            source = self.folder / f"{name}.sqlite{end}"
            target = copies / source.name
            target.unlink(missing_ok=True)
            if source.exists():
                shutil.copy(source, target)
        (copies / f"{name}.sqlite-shm").unlink(missing_ok=True)
        return sqlite3.connect(copies / f"{name}.sqlite")

    async def metrics(self) -> dict[str, float]:
        """Return the numbers of the metrics page, summed over labels."""
        pattern = re.compile(rb"metrics at http://127.0.0.1:(\d+)/metrics")
        await until(lambda: bool(pattern.search(self.life.log)))
        found = pattern.search(self.life.log)
        assert found is not None
        reader, writer = await asyncio.open_connection("127.0.0.1", int(found[1]))
        writer.write(b"GET /metrics HTTP/1.0\r\nHost: 127.0.0.1\r\n\r\n")
        page = (await reader.read()).decode()
        writer.close()
        await writer.wait_closed()
        sums: dict[str, float] = {}
        for line in page.splitlines():
            if line.startswith("hallujudge_"):
                name = re.split(r"[{ ]", line)[0]
                sums[name] = sums.get(name, 0.0) + float(line.rpartition(" ")[2])
        return sums

    def open_files(self) -> list[str]:
        """Return what the process has open: names of files, and kinds of the rest."""
        found = []
        for link in Path(f"/proc/{self.life.pid}/fd").iterdir():
            with suppress(OSError):
                found.append(str(link.readlink()))
        return found

    async def disconnect(self) -> None:
        """Close the callers' connections and the judge's."""
        await self._channel.close()
        self.judge.disconnect()

    async def end(self) -> None:
        """Stop the server for good, as a service manager does."""
        self.life.signal(signal.SIGTERM)
        await self.life.dead.wait()
