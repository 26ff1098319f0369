"""How the server program starts, and what it refuses before it listens."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest
from support import scripted_vllm
from support.messages import expected_message
from support.running import BIN, ServerProcess, cli, here, unmeasured
from support.sizes import further
from support.tri_he_samples import FALSE, TRUE, answer, report_of, score

from hallujudge.sdk import Client

SECRET = "sk-never-to-be-seen-1234567890"


def start(
    *arguments: str, program: str = "hallujudge-server", **environment: str
) -> subprocess.CompletedProcess[str]:
    """Run a server program until it ends by itself. One that serves is stopped at once."""
    with (
        # A file, not a pipe: a pipe that is not read fills up and stops the program.
        tempfile.TemporaryFile("w+", encoding="utf-8") as errors,
        subprocess.Popen(
            [BIN / program, *arguments],
            env={**os.environ, "HALLUJUDGE_PORT": "0", **environment},
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        ) as process,
    ):
        assert process.stdout is not None
        printed = []
        for line in process.stdout:
            printed.append(line)
            if "serves at" in line:
                process.terminate()
        code = process.wait()
        errors.seek(0)
        return subprocess.CompletedProcess(process.args, code, "".join(printed), errors.read())


def test_help_is_printed_and_nothing_is_served() -> None:
    run = start("--help")
    assert run.returncode == 0
    assert "hallujudge config show" in run.stdout
    assert "serves at" not in run.stdout


SETTINGS = "test_settings_that_cannot_work_are_refused_at_start"


@pytest.mark.parametrize(
    ("environment", "said"),
    [
        ({"HALLUJUDGE_FALLBACK_URL": "foo", "HALLUJUDGE_FALLBACK_MODEL": "m"}, "'foo'"),
        ({"HALLUJUDGE_CONFIG": "/nonexistent/settings.toml"}, "/nonexistent/settings.toml"),
        further(SETTINGS, {"HALLUJUDGE_LLM_URL": "foo", "HALLUJUDGE_LLM_MODEL": "m"}, "'foo'"),
        further(SETTINGS, {"HALLUJUDGE_JUDGE_ORDER": "llm,oracle"}, "oracle"),
        further(SETTINGS, {"HALLUJUDGE_VERDICT_CACHE": "/nonexistent/cache"}, "/nonexistent/cache"),
    ],
)
def test_settings_that_cannot_work_are_refused_at_start(
    environment: dict[str, str], said: str
) -> None:
    run = start(**environment)
    assert run.returncode == 2, run.stdout + run.stderr
    assert run.stderr.startswith("error: ")
    assert said in run.stderr
    assert "Traceback" not in run.stderr
    assert "serves at" not in run.stdout


def test_serve_refuses_a_file_of_settings_that_is_missing() -> None:
    run = start("serve", "--config", "nowhere.toml", program="hallujudge")
    assert (run.returncode, run.stdout) == (2, "")
    assert run.stderr.startswith("error: ")
    assert "nowhere.toml" in run.stderr
    assert run.stderr.count("\n") == 1


def test_a_file_that_is_not_a_cache_is_refused_at_start(tmp_path: Path) -> None:
    file = tmp_path / "cache.sqlite"
    file.write_text("this is not a database, however long it is" * 50)
    run = start(HALLUJUDGE_VERDICT_CACHE=str(file))
    assert run.returncode == 2, run.stdout + run.stderr
    assert str(file) in run.stderr
    assert file.read_text().startswith("this is not a database")


def test_a_file_that_is_not_a_database_of_jobs_is_refused_at_start(tmp_path: Path) -> None:
    file = tmp_path / "jobs.sqlite"
    file.write_text("this is not a database, however long it is" * 50)
    run = start(HALLUJUDGE_JOBS_DATABASE=str(file), HALLUJUDGE_HTTP_PORT="0")
    assert run.returncode == 2, run.stdout + run.stderr
    # No warning, and no traceback of a server that had begun to serve.
    assert run.stderr.splitlines() == [
        expected_message("judge_service.jobs.database:error-jobs-database-cant-be-used-file", file)
    ]


def test_config_show_writes_a_file_that_config_reads(tmp_path: Path) -> None:
    file = tmp_path / "settings.toml"
    first = here("config", "show", "--format", "toml")
    assert first.returncode == 0
    file.write_text(first.stdout.replace("port = 50051", "port = 50052"), encoding="utf-8")
    again = here("config", "show", "--config", file)
    assert again.returncode == 0, again.stderr
    assert f"port = 50052  # file {file}" in again.stdout


def test_files_that_others_could_use_are_mended_at_start(tmp_path: Path) -> None:
    folder = tmp_path / "state"
    folder.mkdir()
    here("keys", "create", "ana", "--scope", "score", "--file", folder / "keys.json")
    files = [folder / "spending.sqlite", folder / "jobs.sqlite", folder / "keys.json"]
    for file in files:
        file.touch()
        file.chmod(0o644)
    folder.chmod(0o755)
    environment = {
        "HALLUJUDGE_DATA_FOLDER": str(folder),
        "HALLUJUDGE_KEYS_FILE": str(folder / "keys.json"),
    }
    run = start(**environment)
    assert run.returncode == 0, run.stderr
    for path, mode in ((folder, 0o700), *((file, 0o600) for file in files)):
        assert path.stat().st_mode & 0o777 == mode
        assert f"{path} (mode" in run.stderr
    assert "its mode is now" not in start(**environment).stderr


def stand_in(tmp_path: Path) -> str:
    """A folder for the path with a program of vLLM's name."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "vllm"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" "{scripted_vllm.__file__}" "$@"\n')
    program.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


VLLM = "test_serve_starts_vllm_and_stops_it"
NO_VLLM = "test_serve_does_not_begin_with_a_vllm_that_answers_no_call"


@pytest.mark.parametrize("number", [signal.SIGTERM, further(VLLM, signal.SIGINT)])
def test_serve_starts_vllm_and_stops_it(tmp_path: Path, number: int) -> None:
    data = tmp_path / "data"
    server = ServerProcess(
        *("--vllm", "some/model", "--tensor-parallel-size", "2", "--data-folder", str(data)),
        PATH=stand_in(tmp_path),
        HALLUJUDGE_FALLBACK_API_KEY=SECRET,
    )
    run = score(tmp_path, [answer("a", TRUE, FALSE)], "--judge", "llm", "--server", server.address)
    code, said = server.stop(number)
    assert run.returncode == 0, run.stderr
    assert (code, "Traceback" in said) == (0, False), said
    assert "vllm is healthy" in said
    assert "judge:some/model (vllm 0.32.0)" in report_of(tmp_path / "out")["signature"]
    log = (data / "vllm.log").read_text()
    called = json.loads(log.split("called with ", 1)[1].splitlines()[0])
    assert called[:2] == ["serve", "some/model"]
    assert called[called.index("--tensor-parallel-size") + 1] == "2"
    assert "--enable-prefix-caching" in called
    assert SECRET not in log + said
    assert not Path(called[called.index("--uds") + 1]).parent.exists()


@pytest.mark.parametrize(
    ("environment", "code", "said"),
    [
        ({"STAND_IN_ERROR": "501"}, 2, "HTTP 501: no such thing"),
        further(NO_VLLM, {"STAND_IN_ERROR": "400"}, 2, "HTTP 400: no such thing"),
        ({"HALLUJUDGE_VLLM_ARGUMENTS": f"--api-key {SECRET}"}, 2, "--api-key"),
        ({"HALLUJUDGE_VLLM_ARGUMENTS": "--served-model-name a"}, 0, ""),
    ],
)
def test_serve_does_not_begin_with_a_vllm_that_answers_no_call(
    tmp_path: Path, environment: dict[str, str], code: int, said: str
) -> None:
    more = {"PATH": stand_in(tmp_path), "HALLUJUDGE_DATA_FOLDER": str(tmp_path / "data")}
    run = start(HALLUJUDGE_VLLM="some/model", **more, **environment)
    assert (run.returncode, "serves at" in run.stdout) == (code, not code), run.stderr
    assert said in run.stderr
    assert SECRET not in run.stderr
    assert "Traceback" not in run.stderr


def test_serve_says_what_is_missing(tmp_path: Path) -> None:
    with pytest.raises(AssertionError) as caught:
        ServerProcess("--vllm", "m", "--data-folder", str(tmp_path), PATH=str(tmp_path))
    assert "'vllm>=" in str(caught.value)
    assert "Traceback" not in str(caught.value)
    run = cli("serve", "--port", "0", "--vllm", "m", "--llm-url", "http://127.0.0.1:1/v1")
    assert run.returncode == 2
    assert (
        expected_message("judge_service.llm.vllm:vllm-is-m-which-starts-server-and") in run.stderr
    )


def test_a_server_that_fails_after_its_start_stops_before_the_process_ends(tmp_path: Path) -> None:
    # Without that, threads of gRPC may still work while the interpreter ends: signal 11.
    script = """
import asyncio, socket, sys
from hallujudge.judge_service.server.server import serve
from hallujudge.judge_service.settings.loading import load_settings

def fail(address):
    addresses.append(address)
    raise OSError("the address can't be said")

addresses = []
try:
    asyncio.run(serve(load_settings({"port": 0, "data_folder": sys.argv[1]}), fail))
except OSError as err:
    print(err)
host, _, port = addresses[0].rpartition(":")
print(socket.socket().connect_ex((host, int(port))) == 0)
"""
    run = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=False
    )
    assert (run.returncode, run.stdout) == (0, "the address can't be said\nFalse\n")


def keyed(folder: Path) -> dict[str, str]:
    """Return the settings of a server that was started once, and asked for jobs."""
    keys, key = folder / "keys.json", folder / "key"
    made = here("keys", "create", "ana", "--scope", "score", "--file", keys)
    key.write_text(made.stdout)
    settings = {
        "HALLUJUDGE_KEYS_FILE": str(keys),
        "HALLUJUDGE_DATA_FOLDER": str(folder / "data"),
        "HALLUJUDGE_JOBS_DATABASE": "",
    }
    server = ServerProcess(**settings)
    listed = here("jobs", "list", "--server", server.address, "--api-key-file", key)
    assert listed.returncode == 0, listed.stderr
    server.process.kill()  # what is needed at the next start is kept at once
    server.stop()
    return settings


def delete(path: Path) -> None:
    for file in path.parent.glob(f"{path.name}*"):
        file.unlink()


def empty(path: Path) -> None:
    delete(path)
    path.touch()


def replace(path: Path) -> None:
    other = keyed(path.parent.parent / "other")["HALLUJUDGE_DATA_FOLDER"]
    delete(path)
    for file in Path(other).glob(f"{path.name}*"):
        file.replace(path.with_name(file.name))


# Each kind of loss by itself: tests/unit/judge_service/server/test_known_databases.py.
LOST = "test_a_database_that_was_lost_is_not_made_again_in_silence"


@pytest.mark.parametrize(
    ("name", "lose", "state"),
    [
        ("jobs.sqlite", delete, "is missing"),
        further(LOST, "spending.sqlite", empty, "is empty"),
        further(LOST, "spending.sqlite", replace, "is another database"),
    ],
)
def test_a_database_that_was_lost_is_not_made_again_in_silence(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str, lose: Any, state: str
) -> None:
    settings = keyed(tmp_path)
    for variable, value in settings.items():
        monkeypatch.setenv(variable, value)
    path = tmp_path / "data" / name
    assert f"    ok  state: {path}\n" in here("doctor").stdout
    lose(path)
    refused = start(**settings)
    assert refused.returncode == 2, refused.stderr
    assert f"{path} {state}" in refused.stderr
    assert "accept_new_state = 1" in refused.stderr
    assert "Traceback" not in refused.stderr
    assert f"FAILED  state: {path} {state}" in here("doctor").stdout
    accepted = start(HALLUJUDGE_ACCEPT_NEW_STATE="1", **settings)
    assert accepted.returncode == 0, accepted.stderr
    assert f"{path} {state}" in accepted.stderr
    again = start(**settings)
    assert again.returncode == 0, again.stderr
    assert state not in again.stderr


def test_where_all_databases_were_deleted_the_server_starts_and_says_so(tmp_path: Path) -> None:
    settings = keyed(tmp_path)
    for path in (tmp_path / "data").glob("*.sqlite*"):
        path.unlink()
    begun = start(**settings)
    assert begun.returncode == 0, begun.stderr
    assert "spending.sqlite is missing" in begun.stderr
    assert "jobs.sqlite is missing" in begun.stderr


EARLY = "test_a_signal_before_the_server_listens_ends_it_by_that_signal"
MEMORY = "test_too_little_memory_is_named"


@pytest.mark.parametrize(
    "program", [("hallujudge", "serve"), further(EARLY, ("hallujudge-server",))]
)
def test_a_signal_before_the_server_listens_ends_it_by_that_signal(
    tmp_path: Path, program: tuple[str, ...]
) -> None:
    waiting = tmp_path / "settings"  # the start waits for who writes into it
    os.mkfifo(waiting)
    process = subprocess.Popen(
        [BIN / program[0], *program[1:], "--config", waiting],
        stderr=subprocess.PIPE,
        text=True,
        env=unmeasured(),
    )
    with waiting.open("wb"):
        process.send_signal(signal.SIGTERM)
        _, errors = process.communicate(timeout=60)
    assert (process.returncode, errors) == (-signal.SIGTERM, "")


@pytest.mark.parametrize(
    "program", ["hallujudge-server", further(MEMORY, "hallujudge serve --port 0")]
)
def test_too_little_memory_is_named(program: str) -> None:
    run = subprocess.run(
        ["bash", "-c", f"ulimit -v 700000; exec {BIN}/{program}"],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
    )
    assert run.returncode == 2, run.stderr
    assert run.stderr.startswith("error: ulimit -v lets this process use 683 MiB of addresses")
    assert "Traceback" not in run.stderr


@pytest.mark.parametrize(
    ("asked", "modules"),
    [
        (("--http-port", "0"), {"uvicorn"}),
        (("--metrics-port", "0"), {"prometheus_client"}),
        ((), set[str]()),
    ],
)
def test_a_server_loads_only_what_serves_its_ports(
    asked: tuple[str, ...], modules: set[str]
) -> None:
    server = ServerProcess(*asked, PYTHONPROFILEIMPORTTIME="1")
    with Client(server.address) as client:
        client.score("chair", responses={"1": "A dog."}, references={"1": ["dog"]})
    code, errors = server.stop()
    assert code == 0
    lines = (line for line in errors.splitlines() if line.startswith("import time:"))
    loaded = {line.rpartition("|")[2].strip().partition(".")[0] for line in lines}
    assert "grpc" in loaded
    optional = {"uvicorn", "prometheus_client", "opentelemetry", "torch", "transformers", "openai"}
    assert loaded & optional == modules
