"""Fixtures that more than one kind of test uses."""

from __future__ import annotations

import gc
import logging
import os
import re
import signal
from collections.abc import Generator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import grpc
import pytest
from support.running import ServerProcess

if TYPE_CHECKING:
    from hallujudge.judge_service.matchers import MatcherSettings
    from hallujudge.judge_service.matchers.model_folders import ModelFolder

# What the suite takes over from where it is started. All else would change what is tested, such as
# PYTHONUNBUFFERED, COLUMNS, PGHOST, a proxy or a key of OpenAI. Here, before modules are collected:
# some read variables when they are imported, and some set one.
_TAKEN_OVER = re.compile(
    r"PATH|HOME|TMPDIR|LD_LIBRARY_PATH|CI|WHEEL_RUN_CHECKOUT"
    r"|HALLUJUDGE_(GOLDENS|MPNET|GOLDEN_ALL|EXAMPLES|FAULT_\w+|FUZZ_\w+)"
    r"|JUDGE_SERVERS"
    r"|(COVERAGE|COV_CORE|PYTEST|OPENBLAS|CUDA|NVIDIA)_\w+"
)
for _name in [name for name in os.environ if not _TAKEN_OVER.fullmatch(name)]:
    del os.environ[_name]

pytest_plugins = ["support.sizes", "support.skips", "support.jobs", "support.llm_fixtures"]

_REPO = Path(__file__).resolve().parent.parent


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Generator[None, object, object]:
    """Collect tests without the garbage collector, which would find next to nothing.

    It would go through a million objects again and again, and those that stay until the end of the
    run would be gone through with each later collection.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        # Errors in what is garbage by now are still seen.
        gc.collect()
        gc.freeze()


@pytest.fixture(scope="session", autouse=True)
def grpc_stays() -> None:
    """Keep gRPC's asyncio side up until the end.

    It shuts down with the last object that uses it, and waits for open operations then. Where the
    garbage collector ends that object, in the middle of another test, the wait had no end.
    """
    grpc.aio.init_grpc_aio()


@pytest.fixture(scope="session", autouse=True)
def _no_events_of_other_loops() -> None:
    """Keep events of loops that earlier tests closed out of the log of a later test.

    gRPC has one poller for all loops of a process. It reports, in the loop that runs now, each
    event of a call whose loop is closed.
    """
    asyncio_log = logging.getLogger("asyncio")
    asyncio_log.addFilter(lambda record: "PollerCompletionQueue" not in record.getMessage())


@pytest.fixture(scope="session", autouse=True)
def _own_environment() -> Iterator[None]:
    """Let servers and pytest itself work as on a developer's machine, in CI too."""
    with pytest.MonkeyPatch.context() as patch:
        # In CI pytest compares what differs line by line and word by word, however long it is. Of
        # the files of two runs that takes longer than the whole suite may.
        patch.delenv("CI", raising=False)
        # Servers start faster without worker processes; tests of those ask for them.
        patch.setenv("HALLUJUDGE_WORKERS", "1")
        yield


@pytest.fixture(scope="session", autouse=True)
def _one_encoder() -> Iterator[None]:
    """Load each sentence encoder once in this process, not for every client and command."""
    from hallujudge.judge_service.matchers import matcher_models

    opened: dict[object, object] = {}
    open_encoder = matcher_models.open_encoder

    def opened_once(model: ModelFolder, settings: MatcherSettings) -> object:
        # Thresholds and the cache of vectors are not the encoder's.
        key = (
            *(model.path, model.sha256, Path.home()),
            *(settings.backend, settings.device, settings.threads, settings.cache_folder),
        )
        if key not in opened:
            opened[key] = open_encoder(model, settings)
        return opened[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(matcher_models, "open_encoder", opened_once)
        yield


@pytest.fixture(scope="session", autouse=True)
def _ctrl_c() -> Iterator[None]:
    """Let processes that tests start heed Ctrl-C: background jobs of a shell ignore it."""
    before = signal.getsignal(signal.SIGINT)
    if before is not signal.SIG_IGN:
        yield
        return
    signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture(scope="session")
def goldens() -> Path:
    """The folder of real inputs with expected numbers; the test skips where it is absent."""
    folder = Path(os.environ.get("HALLUJUDGE_GOLDENS") or _REPO.parent / "shared" / "goldens")
    if not folder.is_dir():
        pytest.skip("golden data is absent: set HALLUJUDGE_GOLDENS to its folder")
    return folder


@pytest.fixture(scope="session")
def server() -> Iterator[str]:
    """The address of a running server with default settings, which all tests share."""
    running = ServerProcess()
    yield running.address
    code, errors = running.stop()
    assert code == 0, errors
    assert "Traceback" not in errors
