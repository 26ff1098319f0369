"""Servers and judges behind real proxies, with the settings of the page about them."""

from __future__ import annotations

import json
import re
import subprocess
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
import trustme
from support import real_proxies as proxies
from support import real_servers as real
from support import scripted_llm as llm
from support.qa_samples import write_lines
from support.running import ServerProcess, cli, here, http_address
from support.threads import eventually
from support.tri_he_samples import FALSE, SCENE, TRUE, answer, report_of, score

pytestmark = pytest.mark.timeout(600)

ANSWERS, LENGTH = 4000, 1200
VERSIONS = {"nginx": ("-v",), "HAProxy": ("-v",), "Caddy": ("version",), "Envoy": ("--version",)}


@pytest.fixture(scope="module", autouse=True)
def installed() -> None:
    """Skip before anything is started that a skipped test would leave behind."""
    real.environment("proxies")


@pytest.fixture(scope="module")
def judge() -> Iterator[llm.ScriptedLlm]:
    server = llm.ScriptedLlm()
    stop = server.in_thread()
    yield server
    stop()


@pytest.fixture(scope="module")
def behind(judge: llm.ScriptedLlm) -> Iterator[dict[str, int]]:
    """The ports of a server that has the judge, and of the judge."""
    server = ServerProcess(
        *("--http-port", "0", "--llm-url", judge.url, "--llm-model", "m"),
        HALLUJUDGE_LLM_DIALECT="vllm",
    )
    addresses = {"grpc": server.address, "http": http_address(server)}
    ports = {name: int(each.rpartition(":")[2]) for name, each in addresses.items()}
    yield ports | {"judge": judge.port}
    server.stop()


@pytest.fixture(scope="module", params=proxies.IN_FRONT)
def proxy(
    request: pytest.FixtureRequest,
    behind: dict[str, int],
    tmp_path_factory: pytest.TempPathFactory,
) -> Iterator[proxies.Proxy]:
    name = request.param
    with proxies.running(name, tmp_path_factory.mktemp(name), behind) as started:
        yield started


@pytest.fixture
def limited(behind: dict[str, int], tmp_path: Path) -> Iterator[proxies.Proxy]:
    """nginx with its own limits."""
    with proxies.running("nginx", tmp_path / "p", behind, proxies.without_limits) as started:
        yield started


def port_of(address: str) -> int:
    """Return the port in an address."""
    found = re.search(r":(\d+)", address)
    assert found is not None
    return int(found[1])


def version(name: str) -> str:
    """Return the version that a proxy's program says."""
    done = subprocess.run(
        [proxies.program(name), *VERSIONS[name]], capture_output=True, text=True, check=True
    )
    found = re.search(r"\d+\.\d+\.\d+", done.stdout + done.stderr)
    assert found is not None
    return f"{name} {found[0]}"


def first_sentence(stderr: str) -> str:
    """Return the error of a command, without addresses."""
    error = stderr.strip().splitlines()[-1]
    return re.sub(r"'?(http://)?127\.0\.0\.1:\d+(/v1)?'?", "…", error)[:130]


def large_run(folder: Path, *more: str) -> subprocess.CompletedProcess[str]:
    """Score answers of 5.2 MB."""
    return scored(folder, ANSWERS, *more)


def scored(folder: Path, count: int, *more: str) -> subprocess.CompletedProcess[str]:
    """Score long answers."""
    said = "Yes, there is. ".ljust(LENGTH, "x")
    question = {"image": "a.jpg", "text": "Is there a cat?", "label": "yes", "answer": said}
    rows = [question | {"question_id": n} for n in range(count)]
    answers, out = write_lines(folder / "answers.jsonl", rows), folder / "out"
    return here("score", "pope", "-r", answers, "-o", out, "--reconnect-timeout", "0", *more)


def post(address: str, body: object) -> tuple[int, Any]:
    """Send JSON; return the status, and the reply's JSON or text."""
    data, headers = json.dumps(body).encode(), {"Content-Type": "application/json"}
    request = urllib.request.Request(address, data, headers)
    try:
        with urllib.request.urlopen(request, timeout=60) as response:
            return response.status, json.load(response)
    except urllib.error.HTTPError as err:
        with err:
            return err.code, err.read().decode()


def large_request() -> dict[str, Any]:
    caption = {"response": "A cat. ".ljust(LENGTH, "x"), "referenceObjects": {"values": ["cat"]}}
    items = [{"id": str(n), "chair": caption} for n in range(1700)]
    return {"spec": {"metric": "chair"}, "items": items}


def judged(folder: Path, url: str, *more: str) -> subprocess.CompletedProcess[str]:
    """Judge two claims, in a process of its own."""
    folder.mkdir(exist_ok=True)
    claims = write_lines(folder / "claims.jsonl", [answer("1", TRUE, FALSE)])
    graphs = write_lines(folder / "graphs.jsonl", [{"image_id": "1", "triplets": SCENE}])
    return cli(
        *("score", "tri-he", "--claims", claims, "-R", graphs, "-o", folder / "out"),
        *("--judge", "llm", "--llm-url", url, "--llm-model", "m", "--dialect", "vllm", *more),
    )


SCORE = "hallujudge.judge.v1.JudgeService/Score"


def test_the_settings_of_the_page_let_everything_pass(proxy: proxies.Proxy, tmp_path: Path) -> None:
    done = large_run(tmp_path, "--server", proxy.grpc)
    assert done.returncode == 0, done.stderr
    report = report_of(tmp_path / "out")
    assert report["coverage"]["scored"] == ANSWERS
    assert report["scores"]["accuracy"]["value"] == 1.0
    request = large_request()
    status, reply = post(f"{proxy.http}/{SCORE}", request)
    assert (status, len(reply["results"])) == (200, len(request["items"])), reply
    done = judged(tmp_path / "judged", proxy.judge)
    assert done.returncode == 0, done.stderr
    assert report_of(tmp_path / "judged" / "out")["scores"]["hallu_q"]["value"] == 0.5
    real.figure(
        version(proxy.name),
        f"{(tmp_path / 'answers.jsonl').stat().st_size / 1e6:.1f} MB over gRPC, "
        f"{len(json.dumps(request)) / 1e6:.1f} MB over HTTP, and a judge's calls pass",
    )


@pytest.mark.filterwarnings("ignore:Sending a large body directly:ResourceWarning")
def test_the_limit_of_nginx_is_named(limited: proxies.Proxy, tmp_path: Path) -> None:
    done = large_run(tmp_path, "--server", limited.grpc)
    assert done.returncode == 1
    assert "a proxy on the way to" in done.stderr
    assert "client_max_body_size" in done.stderr
    assert "hallujudge serve" not in done.stderr
    assert post(f"{limited.http}/{SCORE}", large_request())[0] == 413
    images = tmp_path / "images"
    images.mkdir()
    (images / "a.png").write_bytes(noise(900))
    question = {"question_id": 1, "image": "a.png", "text": "Is there a cat?", "label": "yes"}
    questions = write_lines(tmp_path / "questions.jsonl", [question])
    asked = here(
        *("ask", "pope", "-R", questions, "--images", images, "-o", tmp_path / "asked.jsonl"),
        *("--url", limited.judge, "--model", "m"),
    )
    assert asked.returncode == 3
    assert "HTTP 413: the server, or a proxy in front of it, does not take" in asked.stderr
    assert "client_max_body_size" in asked.stderr


def noise(size: int) -> bytes:
    """Return a picture that no compression makes small."""
    import io
    import random

    from PIL import Image

    pixels = random.Random(1).randbytes(3 * size * size)
    kept = io.BytesIO()
    Image.frombytes("RGB", (size, size), pixels).save(kept, "PNG")
    return kept.getvalue()


@pytest.mark.parametrize("name", proxies.IN_FRONT)
def test_a_proxy_without_a_server_is_said_to_be_one(
    name: str, judge: llm.ScriptedLlm, tmp_path: Path
) -> None:
    away = {"grpc": real.free_port(), "http": real.free_port(), "judge": judge.port}
    with proxies.running(name, tmp_path / "p", away) as proxy:
        done = large_run(tmp_path, "--server", proxy.grpc)
    real.figure(version(name), f"without a server: {first_sentence(done.stderr)}")
    assert done.returncode == 1
    assert "a proxy at" in done.stderr


@pytest.mark.parametrize(
    ("name", "status"), [("nginx", 502), ("HAProxy", 503), ("Caddy", 502), ("Envoy", 503)]
)
def test_a_judge_that_is_away_is_waited_for(
    name: str, status: int, behind: dict[str, int], tmp_path: Path
) -> None:
    away = llm.ScriptedLlm()
    stop = away.in_thread()
    with proxies.running(name, tmp_path / "p", behind | {"judge": away.port}) as proxy:
        stop()
        done = judged(tmp_path, proxy.judge, "--give-up-after", "4")
    assert done.returncode == 1
    assert f"answered no call for 4 s: HTTP {status}" in done.stderr


def in_a_second(settings: str) -> str:
    """Let a proxy wait for a judge for a second only."""
    return settings.replace("180s", "1s").replace(
        "reverse_proxy 127.0.0.1:8000",
        "reverse_proxy 127.0.0.1:8000 {\ntransport http {\nresponse_header_timeout 1s\n}\n}",
    )


@pytest.mark.parametrize("name", proxies.IN_FRONT)
def test_a_judge_that_a_proxy_does_not_wait_for_is_late(
    name: str, behind: dict[str, int], tmp_path: Path
) -> None:
    slow = llm.ScriptedLlm(lambda n, body: late(llm.by_scene_graph(n, body)))
    stop = slow.in_thread()
    at = behind | {"judge": slow.port}
    with proxies.running(name, tmp_path / "p", at, in_a_second) as proxy:
        done = judged(tmp_path, proxy.judge, "--give-up-after", "6")
    stop()
    real.figure(version(name), f"a judge that is late: {first_sentence(done.stderr)}")
    assert done.returncode in (1, 3)
    assert "HTTP 504" in done.stderr


def late(reply: llm.Reply) -> llm.Reply:
    return llm.Reply(status=reply.status, body=reply.body, delay=3.0)


CUTS: dict[str, tuple[str, Callable[[str], str]]] = {
    # Envoy's own limit is 15 s.
    "Envoy's timeout": ("Envoy", lambda text: text.replace("timeout: 0s", "timeout: 1s")),
    "Envoy's stream_idle_timeout": ("Envoy", lambda text: text.replace("600s", "1s")),
    "nginx's grpc_read_timeout": (
        "nginx",
        lambda text: text.replace("read_timeout 10m", "read_timeout 1s"),
    ),
}


@pytest.mark.parametrize("cut", CUTS)
def test_a_proxy_that_ends_a_run_is_named(cut: str, tmp_path: Path) -> None:
    name, change = CUTS[cut]
    slow = llm.ScriptedLlm(lambda n, body: late(llm.by_scene_graph(n, body)))
    stop = slow.in_thread()
    server = ServerProcess("--llm-url", slow.url, "--llm-model", "m", HALLUJUDGE_LLM_DIALECT="vllm")
    ports = {"grpc": int(server.address.rpartition(":")[2]), "http": 1, "judge": slow.port}
    try:
        with proxies.running(name, tmp_path / "p", ports, change) as proxy:
            done = score(
                *(tmp_path, [answer("1", TRUE, FALSE)], "--judge", "llm"),
                *("--server", proxy.grpc, "--reconnect-timeout", "0"),
            )
    finally:
        server.stop()
        stop()
    real.figure(version(name), f"{cut}: {first_sentence(done.stderr)}")
    assert done.returncode == 1
    assert "a proxy " in done.stderr
    assert "grpc_read_timeout of nginx, or timeout of Envoy's route" in done.stderr


def impatient(settings: str) -> str:
    """Let HAProxy wait for the whole of a call for a second only."""
    return re.sub(
        "(?m)^(listen .*)",
        r"\1\n    option http-buffer-request\n    timeout http-request 1s",
        settings,
    )


def test_a_call_that_arrives_too_slowly_is_said_to_be_late(
    behind: dict[str, int], tmp_path: Path
) -> None:
    with (
        proxies.running("HAProxy", tmp_path / "p", behind, impatient) as proxy,
        proxies.slow_uplink(port_of(proxy.judge)) as judge,
        proxies.slow_uplink(port_of(proxy.grpc)) as grpc,
    ):
        asked = judged(tmp_path, f"http://127.0.0.1:{judge}/v1", "--give-up-after", "4")
        run = scored(tmp_path, 3, "--server", f"127.0.0.1:{grpc}")
    real.figure(version("HAProxy"), f"a judge's call that is slow: {first_sentence(asked.stderr)}")
    real.figure(version("HAProxy"), f"a run that is slow: {first_sentence(run.stderr)}")
    assert asked.returncode == 1
    assert "answered no call for 4 s: HTTP 408" in asked.stderr
    assert run.returncode == 1
    assert "waited too long for the call (HTTP 408)" in run.stderr


HOST = "judge.invalid"


@pytest.fixture
def certificate(tmp_path: Path) -> tuple[str, str, str]:
    """A certificate of a judge, its key and the authority."""
    authority, files = trustme.CA(), [str(tmp_path / name) for name in ("a.pem", "a.key", "ca.pem")]
    leaf = authority.issue_cert(HOST)
    leaf.cert_chain_pems[0].write_to_path(files[0])
    leaf.private_key_pem.write_to_path(files[1])
    authority.cert_pem.write_to_path(files[2])
    return files[0], files[1], files[2]


def test_a_judge_with_tls_is_called_through_a_forward_proxy(
    judge: llm.ScriptedLlm,
    certificate: tuple[str, str, str],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def run(out: str, url: str) -> subprocess.CompletedProcess[str]:
        return judged(tmp_path / out, url, "--give-up-after", "3")

    *pair, ca = certificate
    secure, plain = f"https://{HOST}/v1", f"http://{HOST}/v1"
    with proxies.forwarding(tmp_path, judge.port, (pair[0], pair[1])) as proxy:
        monkeypatch.setenv("HTTPS_PROXY", proxy.address)
        untrusted = run("untrusted", secure)
        assert untrusted.returncode == 1
        assert "CERTIFICATE_VERIFY_FAILED" in untrusted.stderr
        monkeypatch.setenv("SSL_CERT_FILE", ca)
        through = run("through", secure)
        assert through.returncode == 0, through.stderr
        assert report_of(tmp_path / "through" / "out")["coverage"]["scored"] == 1
        assert eventually(lambda: f"CONNECT {HOST}:443" in proxy.calls), proxy.calls
        connects = len(proxy.calls)
        monkeypatch.setenv("NO_PROXY", HOST)
        direct = run("direct", secure)
        assert direct.returncode == 1
        assert f"no connection to {HOST}:443" in direct.stderr
        monkeypatch.setenv("HALLUJUDGE_LLM_PROXY", proxy.address)
        assert run("by-setting", secure).returncode == 0
        monkeypatch.delenv("HALLUJUDGE_LLM_PROXY")
        monkeypatch.delenv("NO_PROXY")
        monkeypatch.setenv("HTTP_PROXY", proxy.address)
        assert run("plain", plain).returncode == 0
        assert eventually(lambda: f"POST {HOST}" in proxy.calls)
        real.figure(
            version("Envoy"),
            f"as a forward proxy: {connects} connections to a judge with TLS, "
            f"{sum(call.startswith('POST') for call in proxy.calls)} calls without",
        )
