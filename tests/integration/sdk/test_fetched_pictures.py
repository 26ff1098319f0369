"""Pictures of addresses: what is fetched, and what is refused, over real sockets."""

from __future__ import annotations

import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, ClassVar

import pytest
from support import scripted_llm as llm
from support.certificates import make_certificates
from support.qa_samples import write_lines
from support.running import cli
from support.shapes import Scene, Seer

from hallujudge.sdk import Client, InputOptions
from hallujudge.sdk.errors import ArchiveError, InvalidInputError
from hallujudge.sdk.media.fetched_pictures import PictureFetcher, is_public
from hallujudge.sdk.media.media_files import MediaError

SCENE = Scene((("ball", "red", 3), ("box", "blue", 2)))


class Images(BaseHTTPRequestHandler):
    """Serves a picture, and what a hostile address could answer."""

    asked: ClassVar[list[str]] = []

    def do_GET(self) -> None:
        self.asked.append(self.path)
        kind, _, rest = self.path[1:].partition("/")
        if kind == "to":
            self.send_response(302)
            self.send_header("Location", rest)
            self.end_headers()
            return
        if kind == "missing":
            self.send_error(404)
            return
        self.send_response(200)
        self.end_headers()
        if kind == "endless":
            try:
                while True:
                    self.wfile.write(bytes(1 << 20))
            except OSError:
                return
        self.wfile.write(b"<html>" if kind == "page" else SCENE.png())

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


@contextmanager
def serving(certificate: tuple[str, str] | None = None) -> Iterator[str]:
    """Serve pictures, with TLS if a certificate is given; yield host and port."""
    Images.asked.clear()
    server = ThreadingHTTPServer(("127.0.0.1", 0), Images)
    if certificate is not None:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(*certificate)
        server.socket = context.wrap_socket(server.socket, server_side=True)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"localhost:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@pytest.fixture
def host() -> Iterator[str]:
    with serving() as place:
        yield place.replace("localhost", "127.0.0.1")


def test_https_checks_the_certificate_and_does_not_lead_to_http(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = make_certificates(tmp_path)
    monkeypatch.setenv("SSL_CERT_FILE", made.ca)
    with serving(made.server) as place:
        # Its folder is removed with it.
        fetcher = PictureFetcher(place)
        found = fetcher.media(f"https://{place}/one.png")
        assert found.files[0].read_bytes() == SCENE.png()
        with pytest.raises(MediaError, match="it leads from https to 'http://localhost"):
            fetcher.media(f"https://{place}/to/http://{place}/one.png")
    with serving(made.foreign) as place, pytest.raises(MediaError, match="CERTIFICATE_VERIFY"):
        PictureFetcher(place).media(f"https://{place}/one.png")
    assert Images.asked == []


def test_a_picture_of_a_named_host_is_fetched_once(host: str, tmp_path: Path) -> None:
    seer = Seer({SCENE.png(): SCENE})
    server = llm.ScriptedLlm(seer.step)
    stop = server.in_thread()
    url = f"http://{host}/pictures/one.png?size=1"
    archive = write_lines(
        tmp_path / "answers.jsonl",
        [{"id": n, "image": url, "response": "The ball is red."} for n in range(3)],
    )
    command = (
        *("score", "seen-claims", "-r", archive, "--judge", "llm", "--llm-url", server.url),
        *("--llm-model", "m", "-o", tmp_path / "out"),
    )
    try:
        refused = cli(*command)
        assert refused.returncode == 2
        assert "no address is called" in refused.stderr
        assert "--fetch-images" in refused.stderr
        assert (Images.asked, server.chats) == ([], 0)
        ran = cli(*command, "--fetch-images", host)
    finally:
        stop()
    assert ran.returncode == 0, ran.stderr
    assert f"pictures are fetched from {host}" in ran.stderr
    assert Images.asked == ["/pictures/one.png?size=1"]
    assert len(seer.seen) == 1, "the judge is shown what was fetched, unchanged"


@pytest.mark.parametrize(
    ("allowed", "path", "problem"),
    [
        ("public", "/one.png", "has the private address 127.0.0.1"),
        ("images.example.org", "/one.png", "is not among the hosts"),
        ("127.0.0.1", "/one.png", "is not among the hosts"),
        ("HOST", "/to/http://localhost:1/one.png", "localhost:1 is not among the hosts"),
        ("HOST,public", "/to/http://localhost:1/one.png", "localhost has the private address"),
        ("HOST,public", "/to/http://169.254.169.254/latest", "the private address 169.254.169.254"),
        ("HOST,public", "/to/http://[::ffff:10.0.0.1]/a.png", "has the private address"),
        ("HOST", "/to/file:///etc/passwd", "only http and https"),
        ("HOST", "/to/to/to/to/to", "more than 3 other addresses"),
        ("HOST", "/missing/one.png", "HTTP 404"),
        ("HOST", "/endless/one.png", "has more than 20 MiB"),
        ("HOST", "/clip.mp4", "videos are not fetched"),
    ],
)
def test_what_is_refused_is_named(host: str, allowed: str, path: str, problem: str) -> None:
    if path == "/to/to/to/to/to":
        path = f"/to/http://{host}" * 5
    fetcher = PictureFetcher(allowed.replace("HOST", host))
    with pytest.raises(MediaError) as caught:
        fetcher.media(f"http://{host}{path}")
    assert problem in str(caught.value)
    calls = len(Images.asked)
    with pytest.raises(MediaError):
        fetcher.media(f"http://{host}{path}")
    assert len(Images.asked) == calls, "a failure is remembered"


@pytest.mark.parametrize(
    "url", ["http://me:key@HOST/one.png", "ftp://HOST/one.png", "http:///one.png", "http://[::1"]
)
def test_odd_addresses_are_not_called(host: str, url: str) -> None:
    with pytest.raises(MediaError):
        PictureFetcher(host).media(url.replace("HOST", host))
    assert Images.asked == []


def test_what_is_no_picture_leaves_its_response_unscored(host: str) -> None:
    records = [{"id": 1, "image": f"http://{host}/page", "response": "The ball is red."}]
    inputs = InputOptions(own={"fetch": host})
    with Client.embedded({"llm.url": "http://127.0.0.1:9/v1", "llm.model": "m"}) as client:
        with pytest.raises(ArchiveError, match="is not a whole PNG"):
            client.score("seen-claims", responses=records, inputs=inputs, options={"judge": "llm"})
        report = client.score(
            "seen-claims",
            responses=records,
            inputs=InputOptions(own={"fetch": host}, allow_unknown=True),
            options={"judge": "llm"},
        )
    assert report.coverage.reasons == {"REFERENCE_MISSING": 1}


@pytest.mark.parametrize("allowed", ["", " , ", "http://images.example.org/"])
def test_hosts_are_names(allowed: str) -> None:
    with pytest.raises(InvalidInputError, match="names of hosts with commas"):
        PictureFetcher(allowed)


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("93.184.216.34", True),
        ("2606:2800:220:1::1", True),
        ("127.0.0.1", False),
        ("10.1.2.3", False),
        ("100.64.0.1", False),
        ("169.254.169.254", False),
        ("0.0.0.0", False),
        ("224.0.0.1", False),
        ("::1", False),
        ("fe80::1%eth0", False),
        ("fd00::1", False),
        ("::ffff:10.0.0.1", False),
        ("64:ff9b::a00:1", False),
        ("2002:a00:1::", False),
    ],
)
def test_private_addresses_are_known(address: str, public: bool) -> None:
    assert is_public(address) is public
