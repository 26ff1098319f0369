"""``make demo``: a server, the real command line, and three files."""

from __future__ import annotations

import importlib.util
import json
import os
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from types import ModuleType, SimpleNamespace
from typing import Any

import pytest
from support.pages import Page
from support.threads import PATIENCE, eventually

ROOT = Path(__file__).resolve().parents[2]
DEMO = ROOT / "examples/demo.py"


@pytest.fixture
def demo() -> ModuleType:
    spec = importlib.util.spec_from_file_location("demo", DEMO)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture
def fake_command(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, demo: ModuleType) -> Path:
    """A `hallujudge` that a test writes."""
    path = tmp_path / "hallujudge"
    monkeypatch.setattr(demo, "command", lambda: str(path))
    return path


def write_script(path: Path, *lines: str) -> None:
    path.write_text("\n".join([f"#!{sys.executable}", "import sys, time", *lines]) + "\n")
    path.chmod(0o755)


def listens(address: str) -> bool:
    host, _, port = address.rpartition(":")
    with socket.socket() as probe:
        probe.settimeout(PATIENCE)
        return probe.connect_ex((host, int(port))) == 0


def test_demo_leaves_a_report_and_no_server(tmp_path: Path) -> None:
    out = tmp_path / "out"
    done = subprocess.run(
        [sys.executable, DEMO, "--out", out], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    address = done.stdout.split("A server listens at ")[1].split(".\n")[0]
    assert not listens(address)
    assert "chair_i" in done.stdout
    assert (out / "report.html").as_uri() in done.stdout
    report = json.loads((out / "report.json").read_text(encoding="utf-8"))
    assert report["coverage"]["items"] == report["coverage"]["scored"] == 24
    assert 0.1 < report["scores"]["chair_i"]["value"] < 0.4
    lines = (out / "items.jsonl").read_text(encoding="utf-8").splitlines()
    assert [json.loads(line)["id"] for line in lines] == [str(n) for n in range(101, 125)]
    page = Page((out / "report.html").read_text(encoding="utf-8"))
    assert page.head["count"] == 24
    assert sum(page.columns["sides"][0]["wrong"]) > 0


def test_readme_example_runs_against_a_server(
    demo: ModuleType, capsys: pytest.CaptureFixture[str]
) -> None:
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    [block] = [b for b in text.split("```") if b.startswith("python") and "localhost" in b]
    block = block.removeprefix("python")
    with demo.server() as address:
        exec(compile(block.replace("localhost:50051", address), "README.md", "exec"), {})
        remote = capsys.readouterr().out
    local = block.replace('Client("localhost:50051")', "Client.embedded()")
    exec(compile(local, "README.md", "exec"), {})
    assert remote == capsys.readouterr().out
    assert remote.startswith("0.3333333333333333 chair|")


@pytest.mark.parametrize("error", [KeyboardInterrupt, RuntimeError])
def test_server_stops_whatever_happens(
    demo: ModuleType, error: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    begun: list[subprocess.Popen[str]] = []

    def popen(*arguments: Any, **options: Any) -> subprocess.Popen[str]:
        begun.append(subprocess.Popen(*arguments, **options))
        return begun[-1]

    # The port says nothing after the end: another program may have it by then.
    monkeypatch.setattr(demo, "subprocess", SimpleNamespace(**vars(subprocess) | {"Popen": popen}))

    def use() -> None:
        with demo.server() as address:
            assert listens(address)
            raise error

    with pytest.raises(error):
        use()
    assert [process.poll() for process in begun] == [0]


@pytest.fixture
def slow_demo(tmp_path: Path) -> Iterator[tuple[subprocess.Popen[str], Path]]:
    """A demo whose scoring takes forever, and the file that tells its server's process."""
    told = tmp_path / "pid"
    write_script(
        tmp_path / "hallujudge",
        "import os",
        "if sys.argv[1] == 'serve':",
        f"    open({str(told)!r}, 'w').write(str(os.getpid()))",
        "    print('hallujudge serves at 127.0.0.1:1', flush=True)",
        "time.sleep(600)",
    )
    code = (
        "import importlib.util as u, sys\n"
        f"spec = u.spec_from_file_location('demo', {str(DEMO)!r})\n"
        "demo = u.module_from_spec(spec)\n"
        "spec.loader.exec_module(demo)\n"
        f"demo.command = lambda: {str(tmp_path / 'hallujudge')!r}\n"
        "sys.exit(demo.main([]))"
    )
    process = subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
        cwd=tmp_path,
        start_new_session=True,
    )
    with process:
        yield process, told
        # A signal that comes while the demo starts a command leaves that command running.
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)


@pytest.mark.parametrize(("sent", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_stopped_demo_takes_its_server_along(
    slow_demo: tuple[subprocess.Popen[str], Path], sent: signal.Signals, code: int
) -> None:
    process, told = slow_demo
    assert process.stdout is not None
    assert process.stdout.readline() == "A server listens at 127.0.0.1:1.\n"
    process.send_signal(sent)
    assert process.wait(timeout=PATIENCE) == code
    assert eventually(lambda: gone(int(told.read_text())))


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


def test_a_server_that_does_not_start_says_why(demo: ModuleType, fake_command: Path) -> None:
    write_script(fake_command, "sys.exit('error: the port is taken')")
    with (
        pytest.raises(demo.DemoError, match=r"ended before.*\nerror: the port is taken"),
        demo.server(),
    ):
        pass


def test_a_silent_server_is_not_waited_for_without_end(
    demo: ModuleType, fake_command: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_script(fake_command, "time.sleep(600)")
    monkeypatch.setattr(demo, "START_SECONDS", 0.5)
    with pytest.raises(demo.DemoError, match=r"not start within 0\.5 seconds"), demo.server():
        pass


def test_a_missing_command_is_one_line(
    demo: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    tmp_path: Path,
) -> None:
    monkeypatch.setattr(demo.sys, "executable", str(tmp_path / "python"))
    assert demo.main(["--out", str(tmp_path)]) == 1
    assert capsys.readouterr().err.startswith("error: no `hallujudge` command beside ")


def test_a_failed_score_hands_its_code_on(
    demo: ModuleType, fake_command: Path, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    write_script(
        fake_command,
        "if sys.argv[1] != 'serve': sys.exit(2)",
        "print('hallujudge serves at 127.0.0.1:1', flush=True)",
        "time.sleep(600)",
    )
    assert demo.main(["--out", str(tmp_path)]) == 2
    assert "exit code 2" in capsys.readouterr().err
