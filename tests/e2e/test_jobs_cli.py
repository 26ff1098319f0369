"""Runs that are submitted, watched and fetched on the command line."""

from __future__ import annotations

import shlex
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from subprocess import CompletedProcess

import grpc
import pytest
from support.certificates import Certificates, make_certificates
from support.messages import expected_message
from support.qa_samples import write_lines
from support.running import ServerProcess, here
from support.sizes import sized
from support.threads import PATIENCE

from hallujudge.judge_service.access import Scope
from hallujudge.judge_service.access.key_store import create_key
from hallujudge.judge_service.tenancy import Limits

_INFO = "/hallujudge.judge.v1.JudgeService/GetServerInfo"
FILES = ("items.jsonl", "report.json", "manifest.json", "journal.bin")


@pytest.fixture
def files(tmp_path: Path) -> tuple[str, ...]:
    """A run of 300 captions, some of them empty."""
    captions = [
        {"image_id": str(number), "caption": "A dog and a cat." if number % 7 else ""}
        for number in range(300)
    ]
    objects = [{"image_id": str(number), "objects": ["dog", "gyroscope"]} for number in range(300)]
    return (
        *("chair", "-r", str(write_lines(tmp_path / "captions.jsonl", captions))),
        *("-R", str(write_lines(tmp_path / "objects.jsonl", objects))),
    )


def test_a_job_writes_the_files_of_a_run(
    server: str, files: tuple[str, ...], tmp_path: Path
) -> None:
    at = ("--server", server)
    submitted = here("submit", *files, *at)
    assert submitted.returncode == 0, submitted.stderr
    job = submitted.stdout.strip()
    assert f"hallujudge fetch {job} --server {server} --out DIR" in submitted.stderr
    assert here("submit", *files, *at).stdout.strip() == job
    other = here("submit", "--request-id", "another", *files, *at).stdout.strip()
    assert other != job
    watched = here("jobs", "watch", job, *at)
    assert watched.returncode == 3
    assert "300 of 300 items, 43 unscored" in watched.stdout
    fetched = here("fetch", job, *at, "-o", tmp_path / "fetched", "--wait", "--html")
    assert fetched.returncode == 3, fetched.stderr
    scored = here("score", *files, *at, "-o", tmp_path / "scored", "-f", "html", "-f", "table")
    assert scored.returncode == 3, scored.stderr
    for name in (*FILES, "report.html"):
        made, expected = tmp_path / "fetched" / name, tmp_path / "scored" / name
        assert made.read_bytes() == expected.read_bytes(), name
    assert fetched.stdout.replace("fetched", "scored") == scored.stdout
    again = here("fetch", job, *at, "-o", tmp_path / "fetched")
    assert f"{tmp_path / 'fetched'} holds this run already; nothing was written" in again.stdout
    assert again.returncode == 3
    corrected = here("submit", *files, "--variant", "corrected", *at).stdout.strip()
    fetch = ("fetch", corrected, *at, "-o", tmp_path / "fetched", "--wait")
    refused = here(*fetch)
    assert refused.returncode == 2
    assert "variant: published → corrected" in refused.stderr
    assert "--overwrite" in refused.stderr
    assert here(*fetch, "--overwrite").returncode == 3
    assert here("jobs", "delete", corrected, *at).returncode == 0
    assert expected_message(
        "judge_service.engine.families.chair:reference-objects-are-not-in-the-graph"
    ) in " ".join(scored.stdout.split())
    listed = here("jobs", "list", *at)
    assert [line[:32] for line in listed.stdout.splitlines()[:2]] == [other, job]
    assert here("jobs", "cancel", job, *at).stdout.startswith(job)
    assert here("jobs", "delete", job, *at).stdout == f"deleted {job}\n"
    gone = here("jobs", "show", job, *at)
    assert (
        gone.returncode,
        expected_message("judge_service.jobs.job_store:you-have-no-job") in gone.stderr,
    ) == (2, True)


def test_a_request_id_stands_for_the_same_captions(
    server: str, files: tuple[str, ...], tmp_path: Path
) -> None:
    metric, option, captions, *rest = files
    submit = ("submit", "--request-id", "night 7", metric, option)
    first = here(*submit, captions, *rest, "--server", server)
    assert first.returncode == 0, first.stderr
    copied = tmp_path / "copied.jsonl"
    copied.write_bytes(Path(captions).read_bytes())
    assert here(*submit, copied, *rest, "--server", server).stdout == first.stdout
    others = write_lines(tmp_path / "others.jsonl", [{"image_id": "1", "caption": "A cat."}])
    refused = here(*submit, others, *rest, "--server", server)
    assert (refused.returncode, refused.stdout) == (2, "")
    assert (
        expected_message(
            "sdk.runs.server_jobs:night-created-job-of-other-inputs", first.stdout.strip()
        )
        in refused.stderr
    )


def test_a_run_without_texts_is_fetched_without_texts(
    server: str, files: tuple[str, ...], tmp_path: Path
) -> None:
    job = here("submit", *files, "--server", server, "--no-text").stdout.strip()
    fetched = here("fetch", job, "--server", server, "-o", tmp_path / "out", "--wait")
    assert fetched.returncode == 3, fetched.stderr
    assert "A dog and a cat." not in (tmp_path / "out" / "items.jsonl").read_text()


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("pope", "-r", "a.jsonl", "--out", "x"), "--out is an option of results"),
        (("pope", "-r", "a.jsonl", "--all-parsers"), "--all-parsers is an option of results"),
        (("all", "folder"), "one metric at a time"),
        (("chair", "-r", "FILE", "-R", "FILE"), "a job needs a server"),
        (("chair", "-r", "FILE", "-R", "FILE", "--variant", "both"), "one variant at a time"),
    ],
)
def test_what_cannot_be_submitted_is_refused(
    arguments: tuple[str, ...], words: str, files: tuple[str, ...]
) -> None:
    given = [files[2] if part == "FILE" else part for part in arguments]
    refused = here("submit", *given)
    assert (refused.returncode, words in refused.stderr) == (2, True), refused.stderr


@pytest.mark.parametrize("command", [("jobs", "watch"), ("fetch", "--wait", "-o", "out")])
def test_an_address_without_a_server_is_not_waited_for(
    command: tuple[str, ...], tmp_path: Path
) -> None:
    done = here(*command, "0" * 32, "--server", "127.0.0.1:1", cwd=tmp_path)
    assert done.returncode == 1
    assert "'127.0.0.1:1'" in done.stderr


def test_a_job_that_is_not_done_is_not_fetched(server: str, tmp_path: Path) -> None:
    absent = here("fetch", "0" * 32, "--server", server, "-o", tmp_path / "out")
    assert (
        absent.returncode,
        expected_message("judge_service.jobs.job_store:you-have-no-job") in absent.stderr,
    ) == (2, True)


@pytest.fixture(scope="module")
def certificates(tmp_path_factory: pytest.TempPathFactory) -> Certificates:
    return make_certificates(tmp_path_factory.mktemp("tls_ca"))


@pytest.fixture(scope="module")
def guarded(certificates: Certificates) -> Iterator[str]:
    """The address of a server that wants certificates of its clients."""
    cert, key = certificates.server
    server = ServerProcess("--tls-cert", cert, "--tls-key", key, "--tls-ca", certificates.ca)
    yield server.address
    code, errors = server.stop()
    assert code == 0, errors


def test_the_command_that_submit_prints_reaches_the_server(
    guarded: str, certificates: Certificates, files: tuple[str, ...], tmp_path: Path
) -> None:
    key_file = tmp_path / "a key.txt"
    key_file.write_text("hj_unused_unused")
    cert, key = certificates.client
    connected = (
        *("--tls-ca", certificates.ca, "--tls-cert", cert, "--tls-key", key),
        *("--api-key-file", str(key_file)),
    )
    submitted = here("submit", *files, "--server", guarded, *connected)
    assert submitted.returncode == 0, submitted.stderr
    _, command = submitted.stderr.split("hallujudge fetch ")
    printed = shlex.split(command)
    assert printed[1:] == ["--server", guarded, *connected, "--out", "DIR"]
    out = tmp_path / "fetched"
    fetched = here("fetch", *printed[:-1], out, "--wait")
    assert fetched.returncode == 3, fetched.stderr
    assert (out / "items.jsonl").exists()


@contextmanager
def _used_up(address: str, key: str, until: Callable[[], bool]) -> Iterator[None]:
    """Use every call that a key has, until a condition is true or the block ends."""
    ended, begun = threading.Event(), threading.Event()
    metadata = (("authorization", f"Bearer {key}"),)

    def work() -> None:
        with grpc.insecure_channel(address, [("grpc.enable_retries", 0)]) as channel:
            call: Callable[..., bytes] = channel.unary_unary(
                "/hallujudge.judge.v1.JudgeService/GetServerInfo"
            )
            while not (ended.is_set() or until()):
                try:
                    call(b"", metadata=metadata, timeout=PATIENCE)
                except grpc.RpcError:
                    begun.set()

    thread = threading.Thread(target=work)
    thread.start()
    try:
        assert begun.wait(PATIENCE)
        yield
    finally:
        ended.set()
        thread.join()


def test_every_command_waits_for_the_quota_of_its_key_and_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    keys = tmp_path / "keys.json"
    key = create_key(keys, "ana", scopes=[Scope.SCORE], limits=Limits(calls_per_minute=240))
    monkeypatch.setenv("HALLUJUDGE_API_KEY", key)
    # Messages of more than 256 KiB, which gRPC does not repeat by itself.
    captions = [{"image_id": str(n), "caption": "A dog. " * 200} for n in range(600)]
    objects = [{"image_id": str(n), "objects": ["dog"]} for n in range(600)]
    files = (
        *("chair", "-r", str(write_lines(tmp_path / "captions.jsonl", captions))),
        *("-R", str(write_lines(tmp_path / "objects.jsonl", objects))),
    )
    server = ServerProcess("--keys-file", str(keys))
    waiting = expected_message("sdk.backends.recovery:waiting-for-the-quota-of-a-key", "ana", 240)

    def waited(*command: str) -> str:
        caplog.clear()
        with _used_up(server.address, key, lambda: waiting in caplog.messages):
            done = here(*command, "--server", server.address)
        assert done.returncode == 0, (command, done.stderr)
        assert waiting in caplog.messages, command
        return done.stdout

    try:
        job = waited("submit", *files).strip()
        for command in sized(("watch",), ("watch", "show", "cancel")):
            waited("jobs", command, job)
        waited("jobs", "list")
        waited("fetch", job, "-o", str(tmp_path / "fetched"))
        waited("score", *files, "-o", str(tmp_path / "scored"))
        waited("jobs", "delete", job)
    finally:
        server.stop()


def test_an_administrator_lists_and_cancels_the_jobs_of_a_key(
    files: tuple[str, ...], tmp_path: Path
) -> None:
    keys = tmp_path / "keys.json"
    ana = create_key(keys, "ana", scopes=[Scope.SCORE])
    files_of = {
        name: write_secret(tmp_path / name, key)
        for name, key in (("ana", ana), ("root", create_key(keys, "root", scopes=[Scope.ADMIN])))
    }
    server = ServerProcess("--keys-file", str(keys))

    def run(name: str, *command: str) -> CompletedProcess[str]:
        return here(*command, "--server", server.address, "--api-key-file", files_of[name])

    try:
        job = run("ana", "submit", *files).stdout.strip()
        assert run("ana", "fetch", job, "--wait", "-o", str(tmp_path / "out")).returncode == 3
        other = run("ana", "submit", "--request-id", "another", *files).stdout.strip()
        assert run("ana", "jobs", "list", "--all").returncode == 1
        assert run("root", "jobs", "list").stdout == ""
        listed = run("root", "jobs", "list", "--all").stdout.splitlines()
        assert {line[:32] for line in listed} == {job, other}
        assert all(line.endswith(f"  key:{ana[3:11]}") for line in listed)
        ended = run("root", "jobs", "cancel", "--key", ana[3:11])
        assert ended.returncode == 0, ended.stderr
        # A job that is done stays as it is.
        assert job not in ended.stdout
        unknown = run("root", "jobs", "cancel", "--key", "aaaaaaaa")
        assert (unknown.returncode, unknown.stdout) == (2, "")
        assert "aaaaaaaa" in unknown.stderr
        assert run("root", "jobs", "cancel").returncode == 2
    finally:
        server.stop()


def write_secret(path: Path, key: str) -> str:
    """Write a key into a file, and return its path."""
    path.write_text(key)
    return str(path)
