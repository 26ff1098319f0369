"""Starts a vLLM server, watches it, restarts it, and stops it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import secrets
import shlex
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path

from msgspec import Struct

from ..errors import HallujudgeError, InvalidInputError, MissingExtraError, UnavailableError
from ..settings.connection import Secret, masked
from ..settings.judge_settings import JudgeSettings, VllmSettings
from ..stopping import begun, cancel_all
from .circuits import Supervision
from .failures import CallFailedError
from .http import Endpoint, HttpEndpoint
from .vllm_serving import AUTO_LENGTH, AddedArguments, engine_arguments

# The last lines of a traceback, which name the cause.
_LOG_TAIL_BYTES = 2_000


class VllmRun(Struct, frozen=True, kw_only=True):
    """How ``vllm serve`` is run."""

    serving: VllmSettings
    """What it serves, and how. On a Unix socket, in a folder of this user's, no key is needed to
    keep others out: vLLM asks for its key on a part of its routes only."""
    data_folder: Path
    """Where its log is written."""
    host: str = "127.0.0.1"
    """Address that it listens at."""
    port: int = 0
    """Port that it listens at; 0 for a free one."""
    executable: tuple[str, ...] = ("vllm",)
    """The program, with what comes before ``serve``."""
    added: AddedArguments = AddedArguments()
    """A user's arguments."""
    startup_seconds: float = 1800.0
    """Time to load the model; a 70B model from a cold disk takes many minutes."""
    restarts: int = 5
    """Restarts in a row before the server gives up."""
    backoff_seconds: float = 2.0
    """Wait before the first restart; doubled each time, at most a minute."""
    stable_seconds: float = 300.0
    """Time of health after which earlier restarts are forgotten."""
    stop_seconds: float = 20.0
    """Time to stop before it is killed."""
    poll_seconds: float = 0.5
    """Time between two looks at its health while it starts."""
    probe_seconds: float = 5.0
    """Time between two looks at its health while it serves, and for the answer to one."""
    failed_probes: int = 6
    """Looks in a row without an answer after which it is taken to hang, and started again."""

    def arguments(self, port: int, socket: str = "") -> tuple[str, ...]:
        """Return the command line; the key is passed in the environment, not here.

        Args:
            port: The port to listen at.
            socket: The Unix socket to listen on instead; empty for the port.
        """
        own = self.serving
        if own.model.startswith("-"):
            raise InvalidInputError(f"{own.model!r} is not a model id: it begins with a dash")
        return (
            *(*self.executable, "serve", own.model),
            *(("--uds", socket) if socket else ("--host", self.host, "--port", str(port))),
            *engine_arguments(
                tensor_parallel_size=str(own.tensor_parallel_size),
                max_model_len=str(own.max_model_len or AUTO_LENGTH),
                quantization=own.quantization,
                structured_outputs=self.added.structured_outputs,
            ),
            *self.added.others,
        )


class VllmServer:
    """Runs ``vllm serve`` in a process group of its own and keeps it running.

    Args:
        settings: How it is run.
        environ: Its environment, to which a key for this run is added; by default that of this
            process, without a key.
        progress: Receives one line for each event.
    """

    def __init__(
        self,
        settings: VllmRun,
        *,
        environ: Mapping[str, str] | None = None,
        progress: Callable[[str], None] = lambda _line: None,
    ) -> None:
        self.settings = settings
        self.log_path = settings.data_folder / "vllm.log"
        self._key = Secret(secrets.token_urlsafe(32) if environ is not None else "")
        self._environ = None if environ is None else {**environ, "VLLM_API_KEY": self._key.reveal()}
        self._progress = progress
        self._port = settings.port
        self._folder: tempfile.TemporaryDirectory[str] | None = None
        self._process: asyncio.subprocess.Process | None = None
        self._group: int | None = None
        self._watcher: asyncio.Task[None] | None = None
        self._stopping = False
        self.starts = 0
        self._supervision = Supervision("vllm", settings.startup_seconds)

    @property
    def endpoint(self) -> Endpoint:
        """Where it can be reached once it is started."""
        url = f"http://{self.settings.host}:{self._port}/v1"
        return Endpoint(
            url="http://localhost/v1" if self._socket else url,
            socket=self._socket,
            key=self._key,
            supervision=self._supervision,
        )

    @property
    def _socket(self) -> str:
        return str(Path(self._folder.name, "vllm.sock")) if self._folder is not None else ""

    @property
    def pid(self) -> int | None:
        """The id of the process that was started last."""
        return self._process.pid if self._process is not None else None

    @property
    def running(self) -> bool:
        """Whether the process runs."""
        return self._process is not None and self._process.returncode is None

    async def start(self) -> None:
        """Start it and wait until it is healthy.

        Raises:
            MissingExtraError: The program is not installed.
            UnavailableError: It does not get healthy; the message ends with the end of its log.
        """
        self._stopping = False
        if self.settings.serving.socket and self._folder is None:
            # Only this user may enter it.
            self._folder = tempfile.TemporaryDirectory(prefix="hallujudge-")
        try:
            await self._start_with_retries()
        except BaseException:
            await self.stop()
            raise
        self._watcher = begun(self._watch())

    async def stop(self) -> None:
        """Stop it and the processes that it started."""
        self._stopping = True
        watcher, self._watcher = self._watcher, None
        if watcher is not None:
            watcher.cancel()
            await asyncio.gather(watcher, return_exceptions=True)
        await self._end_group()
        if self._folder is not None:
            self._folder.cleanup()
            self._folder = None

    async def _start_with_retries(self) -> None:
        wait = self.settings.backoff_seconds
        for restart in range(self.settings.restarts + 1):
            await self._spawn(self.settings.port or _free_port(self.settings.host))
            problem = await self._until_healthy()
            if not problem:
                return
            await self._end_group()
            if restart < self.settings.restarts:
                self._progress(f"vllm {problem}; starting it again in {wait:.0f} s")
                await asyncio.sleep(wait)
                wait = min(60.0, wait * 2)
        again = f", {self.starts} times" if self.starts > 1 else ""
        raise UnavailableError(
            f"vllm serve {self.settings.serving.model} {problem}{again}; its log is "
            f"{self.log_path} and ends:\n{self._log_tail()}",
            reason="JUDGE_UNREACHABLE",
        )

    async def _spawn(self, port: int) -> None:
        self._port = port
        arguments = self.settings.arguments(port, self._socket)
        if self._socket:
            # A killed process leaves its socket, and vLLM takes no name that exists.
            Path(self._socket).unlink(missing_ok=True)
        self.settings.data_folder.mkdir(parents=True, exist_ok=True)
        with self.log_path.open("ab") as log:
            try:
                self._process = await asyncio.create_subprocess_exec(
                    *arguments,
                    stdin=asyncio.subprocess.DEVNULL,
                    stdout=log,
                    stderr=log,
                    env=self._environ,
                    # A process group of its own, which can be ended as a whole.
                    start_new_session=True,
                )
            except FileNotFoundError as err:
                raise MissingExtraError.of(f"the program {arguments[0]!r}", "vllm") from err
            except OSError as err:
                raise UnavailableError(
                    f"{arguments[0]!r} cannot be started: {err.strerror}",
                    reason="JUDGE_UNREACHABLE",
                ) from err
        # The id of a process group is that of its first process, and stays valid while one runs.
        self._group = self._process.pid
        self.starts += 1
        model = self.settings.serving.model
        self._progress(f"vllm serve {model} starts; its log is {self.log_path}")

    async def _until_healthy(self) -> str:
        """Waits until it is healthy; returns what is wrong, empty if nothing is."""
        began = time.monotonic()
        reported = began
        http = HttpEndpoint(self._health_endpoint(), 1)
        try:
            while (waited := time.monotonic() - began) < self.settings.startup_seconds:
                if not self.running:
                    return f"ended with status {self._status()} while it started"
                if await _healthy(http):
                    self._progress(f"vllm is healthy after {waited:.0f} s")
                    return ""
                if time.monotonic() - reported >= 10:
                    reported = time.monotonic()
                    self._progress(f"vllm starts, {waited:.0f} s; {self._last_line()}")
                await asyncio.sleep(self.settings.poll_seconds)
        finally:
            await http.close()
        return f"was not healthy after {self.settings.startup_seconds:.0f} s"

    async def _watch(self) -> None:
        """Restarts it whenever it ends or hangs, until it does so too often."""
        wait, healthy_since, restarts = self.settings.backoff_seconds, time.monotonic(), 0
        problem = ""
        while not self._stopping:
            how = problem or await self._until_it_fails()
            self._supervision.began(how)
            # A server that ran for long is not caught in a loop of restarts: count from zero.
            stable = time.monotonic() - healthy_since > self.settings.stable_seconds
            if stable and not problem:
                wait, restarts = self.settings.backoff_seconds, 0
            restarts += 1
            await self._end_group()
            if restarts > self.settings.restarts:
                self._give_up(how)
                return
            self._progress(f"vllm {how}; starting it again in {wait:.0f} s")
            await asyncio.sleep(wait)
            wait = min(60.0, wait * 2)
            if not (problem := await self._start_again()):
                # The time in which it starts does not count as healthy.
                healthy_since = time.monotonic()
                self._supervision.ended()

    async def _start_again(self) -> str:
        """Starts it and waits until it is healthy; returns what is wrong, empty if nothing is."""
        try:
            # The same port again, because clients use it.
            await self._spawn(self._port)
            return await self._until_healthy()
        except HallujudgeError as err:
            return f"can't be started: {err}"

    def _give_up(self, how: str) -> None:
        most = self.settings.restarts
        told = f"vllm {how}, and is given up after {most} restart{'' if most == 1 else 's'}"
        self._supervision.gives_up(f"{told}; see {self.log_path}, and start the server again")
        self._progress(f"{told}; see {self.log_path}")

    async def _until_it_fails(self) -> str:
        """Waits until it ends, or does not answer for long; returns which of them, in words."""
        assert self._process is not None
        ended, failed = begun(self._process.wait()), 0
        http = HttpEndpoint(self._health_endpoint(self.settings.probe_seconds), 1)
        try:
            while failed < self.settings.failed_probes:
                await asyncio.wait({ended}, timeout=self.settings.probe_seconds)
                if ended.done():
                    return f"ended with status {self._status()}"
                if await _healthy(http):
                    failed = 0
                    self._supervision.looked()
                else:
                    failed += 1
        finally:
            await cancel_all(ended)
            await http.close()
        # One that is stopped or blocked does not end by a request to.
        if self._group is not None:
            _signalled(self._group, signal.SIGKILL)
        return f"did not answer {failed} looks at its health in a row"

    async def _end_group(self) -> None:
        """Ends the process and its group: vLLM's engine and workers are processes of their own."""
        process, group, self._group = self._process, self._group, None
        if process is None or group is None:
            return
        _signalled(group, signal.SIGTERM)
        deadline = time.monotonic() + self.settings.stop_seconds
        # vLLM's workers are not children of this process, so their end can't be awaited.
        while _signalled(group, 0) and time.monotonic() < deadline:
            if process.returncode is None:
                with contextlib.suppress(TimeoutError):
                    await asyncio.wait_for(process.wait(), 0.1)
            else:
                await asyncio.sleep(0.05)
        _signalled(group, signal.SIGKILL)
        await process.wait()

    def _health_endpoint(self, seconds: float = 5.0) -> Endpoint:
        # Without the key: another program may listen at the port.
        return replace(self.endpoint, key=Secret(""), timeout_seconds=seconds, connect_seconds=2.0)

    def _status(self) -> int | None:
        return self._process.returncode if self._process is not None else None

    def _log_tail(self) -> str:
        with contextlib.suppress(OSError), self.log_path.open("rb") as log:
            log.seek(0, os.SEEK_END)
            log.seek(max(0, log.tell() - _LOG_TAIL_BYTES))
            return self._key.scrubbed(log.read().decode("utf-8", "replace")).strip()
        return ""

    def _last_line(self) -> str:
        return (self._log_tail().splitlines() or [""])[-1][:160]


async def _healthy(http: HttpEndpoint) -> bool:
    try:
        await http.get("/health")
    except CallFailedError:
        return False
    return True


def _free_port(host: str) -> int:
    with socket.socket() as probe:
        probe.bind((host, 0))
        return int(probe.getsockname()[1])


def _signalled(group: int, number: int) -> bool:
    """Send a signal to a process group, if any of its processes lives; 0 only asks whether."""
    with contextlib.suppress(ProcessLookupError, PermissionError):
        os.killpg(group, number)
        return True
    return False


def vllm_server(
    settings: JudgeSettings,
    *,
    environ: Mapping[str, str],
    data_folder: Path,
    progress: Callable[[str], None],
) -> VllmServer:
    """Return the vLLM server that the settings describe; it is not started.

    Args:
        settings: The settings of the judges.
        environ: The server's environment, to which ``vllm.download`` and ``vllm.batch_invariant``
            add variables: without the first, the model hub is disabled.
        data_folder: The folder for its log.
        progress: Called with one line for each event.

    Raises:
        InvalidInputError: ``llm.url`` is set as well.
    """
    if settings.llm.url:
        raise InvalidInputError(
            f"vllm.model is {settings.vllm.model!r}, which starts a server, and llm.url is "
            f"{masked(settings.llm.url)!r}, which names a running one; set only one of them"
        )
    # Without it vLLM asks the hub for newer files, also of a model that is on this machine.
    offline = {} if settings.vllm.download else {"HF_HUB_OFFLINE": "1"}
    invariant = {"VLLM_BATCH_INVARIANT": "1"} if settings.vllm.batch_invariant else {}
    run = VllmRun(
        serving=settings.vllm,
        data_folder=data_folder,
        executable=tuple(shlex.split(settings.vllm.command)) or ("vllm",),
        added=AddedArguments.of(settings.vllm.arguments),
    )
    return VllmServer(run, environ={**environ, **offline, **invariant}, progress=progress)
