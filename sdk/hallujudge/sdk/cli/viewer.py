"""A local web server that shows the runs of a folder: ``hallujudge view``."""

from __future__ import annotations

import socket
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from urllib.parse import SplitResult, parse_qs

from msgspec import structs

from hallujudge.judge_service.settings.connection import is_own_host, web_address
from hallujudge.sdk import cli

from ..errors import HallujudgeError, InvalidInputError
from ..report.page.document import policy_of
from ..runs import read_run
from .viewer_pages import OVERVIEW, FoundRun, find_runs, live_page, message_page, overview_page

_LOOPBACK = "127.0.0.1"
# How long a browser may take to send a request.
_SECONDS = 30


class Viewer:
    """Serves the pages of a folder's runs on loopback, for reading only.

    Args:
        folder: The folder, which is searched again at each request.
        port: Port to listen on; 0 for a free one.

    Raises:
        InvalidInputError: The folder does not exist, or the port is taken.
    """

    def __init__(self, folder: Path, port: int = 0) -> None:
        self._folder = folder
        # A wrong folder is reported at once, not by the first page.
        find_runs(folder)
        viewer = self

        class Handler(_Handler):
            pages = viewer._page  # the handler's class is the server's own

        try:
            self._server = _Server((_LOOPBACK, port), Handler)
        except OSError as err:
            raise InvalidInputError(
                f"port {port}: {err.strerror or err}; give another --port, or 0 for a free one"
            ) from err

    @property
    def address(self) -> str:
        """The URL of the overview."""
        return f"http://{_LOOPBACK}:{self._server.server_address[1]}/"

    def serve(self) -> None:
        """Serve until :meth:`close` is called."""
        self._server.serve_forever()

    def close(self) -> None:
        """Stop serving, from another thread."""
        self._server.shutdown()
        self.stop()

    def stop(self) -> None:
        """Stop listening, once :meth:`serve` has ended."""
        self._server.server_close()

    def _page(self, path: str, query: Mapping[str, str]) -> tuple[HTTPStatus, str]:
        runs = find_runs(self._folder)
        if path == "/":
            return HTTPStatus.OK, overview_page(runs)
        if path == "/run":
            return HTTPStatus.OK, _run_page(_named(runs, query, "name"))
        if path == "/compare":
            first, second = (_complete(runs, query, key).folder for key in ("a", "b"))
            return HTTPStatus.OK, cli.page_of_two(first, second, overview=OVERVIEW)
        return HTTPStatus.NOT_FOUND, message_page("Not found", "There is no such page.")


class _Server(ThreadingHTTPServer):
    # A page that is under way must not keep the process alive after Ctrl-C.
    daemon_threads = True
    address_family = socket.AF_INET

    def handle_error(self, request: object, client_address: object) -> None:
        """Ignore a browser that closed its connection before the page was sent."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # both are passed on


class _Handler(BaseHTTPRequestHandler):
    """Answers GET with a page, and refuses other methods."""

    pages: Callable[[str, Mapping[str, str]], tuple[HTTPStatus, str]]
    # Without them, each response would name the release of Python.
    server_version = "hallujudge"
    sys_version = ""
    timeout = _SECONDS

    def do_GET(self) -> None:
        """Answer with a page."""
        # A target may be a whole URL, whose host then replaces the header's (RFC 9112, 3.2.2).
        parts = web_address(self.path) or SplitResult("", "", *self.path.partition("?")[::2], "")
        # The name of another site may resolve to loopback, and its pages must not read these.
        hosts = self.headers.get_all("Host", [])
        host = (parts.netloc or hosts[0]) if len(hosts) == 1 else ""
        if not is_own_host(host):
            self._send(HTTPStatus.FORBIDDEN, message_page("Refused", "Unknown name of this host."))
            return
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        try:
            status, page = type(self).pages(parts.path, query)
        except HallujudgeError as err:
            status, page = HTTPStatus.BAD_REQUEST, message_page("Not possible", str(err))
        self._send(status, page)

    def _send(self, status: HTTPStatus, page: str) -> None:
        data = page.encode()
        self.send_response(status)
        self.send_header("Content-Type", "text/html; charset=utf-8")
        self.send_header("Content-Length", str(len(data)))
        # A browser must not take the text of a response for a script.
        self.send_header("X-Content-Type-Options", "nosniff")
        # The page's own policy, and what only a header can say.
        policy = f"{policy_of(page)}; frame-ancestors 'none'"
        self.send_header("Content-Security-Policy", policy)
        # Runs change between requests.
        self.send_header("Cache-Control", "no-store")
        self.end_headers()
        self.wfile.write(data)

    def log_message(self, format: str, *args: object) -> None:
        """Write no access log: the terminal belongs to the user."""


def _named(runs: list[FoundRun], query: Mapping[str, str], key: str) -> FoundRun:
    """Return the run that a request names; only runs that were found can be named."""
    name = query.get(key, "")
    for run in runs:
        if run.name == name:
            return run
    raise InvalidInputError(f"there is no run {name!r:.80} in the folder")


def _complete(runs: list[FoundRun], query: Mapping[str, str], key: str) -> FoundRun:
    """Return the complete run that a request names."""
    run = _named(runs, query, key)
    if run.report is None:
        raise InvalidInputError(f"the run {run.name!r:.80} is not complete; compare it when it is")
    return run


def _run_page(run: FoundRun) -> str:
    if run.under_way:
        with suppress(FileNotFoundError):
            return live_page(run)
        # The run was completed a moment ago.
    stored = read_run(run.folder)
    about = stored.about()
    title = run.title or about.title
    return stored.page(structs.replace(about, title=title, date=stored.date(), overview=OVERVIEW))
