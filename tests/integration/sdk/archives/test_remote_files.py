"""Archives behind a real HTTP server."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer

import pytest

from hallujudge.sdk.archives import read_items
from hallujudge.sdk.errors import ArchiveError

ROWS = b"".join(
    json.dumps({"question_id": n, "response": "Yes", "label": "yes"}).encode() + b"\n"
    for n in range(50)
)


class _Handler(BaseHTTPRequestHandler):
    """Sends all or half of the rows, whatever length it announces."""

    def do_GET(self) -> None:
        missing = self.path.startswith("/missing")
        short = self.path.startswith("/short") and self.command == "HEAD"
        self.send_response(404 if missing else 200)
        self.send_header("Content-Length", str(ROWS.index(b"\n") + 1 if short else len(ROWS)))
        self.end_headers()
        if self.command == "GET" and not missing:
            self.wfile.write(ROWS[: len(ROWS) // 2] if self.path.startswith("/half") else ROWS)

    do_HEAD = do_GET

    def log_message(self, *arguments: object) -> None:
        pass


@pytest.fixture(scope="module")
def address() -> Iterator[str]:
    server = HTTPServer(("127.0.0.1", 0), _Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield f"http://user:secret@127.0.0.1:{server.server_port}"
    server.shutdown()
    server.server_close()
    thread.join()


def test_http(address: str) -> None:
    assert len(read_items("pope", f"{address}/whole.jsonl?token=1", None)) == 50


def test_a_length_that_is_told_beforehand_cuts_nothing_off(address: str) -> None:
    assert len(read_items("pope", f"{address}/short.jsonl", None)) == 50


def test_the_protocol_may_be_in_capitals(address: str) -> None:
    assert len(read_items("pope", f"{address}/whole.jsonl".replace("http", "HTTP"), None)) == 50


@pytest.mark.parametrize(
    ("path", "why"),
    [
        # Whether the bytes before the end have been read when it is noticed is up to the network.
        ("half.jsonl", "reading failed(?: after 1,370 bytes)?: the connection ended early. Check"),
        ("missing.jsonl", "reading failed: HTTP status 404, Not Found. Check the URL"),
    ],
)
def test_a_url_that_fails(address: str, path: str, why: str) -> None:
    with pytest.raises(ArchiveError) as caught:
        read_items("pope", f"{address}/{path}", None)
    message = str(caught.value)
    assert re.search(f"/{re.escape(path)}: {why}", message), message
    assert "secret" not in message
    assert "\n" not in message


def test_a_server_that_is_not_there_is_told() -> None:
    with pytest.raises(ArchiveError, match=r"reading failed: Cannot connect to host 127.0.0.1:1"):
        read_items("pope", "http://127.0.0.1:1/a.jsonl", None)
    with pytest.raises(ArchiveError, match=r"reading failed: Cannot connect to host 127.0.0.1:1"):
        read_items("pope", "http://127.0.0.1:1/a.jsonl?part=1", None)
