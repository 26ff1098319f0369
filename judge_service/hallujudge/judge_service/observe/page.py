"""The page that Prometheus and orchestrators read: /metrics, /healthz and /readyz.

It is served by threads, so that it answers while the event loop is busy.
"""

from __future__ import annotations

import socket
import threading
from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any
from wsgiref.simple_server import WSGIRequestHandler, make_server

from ..errors import InvalidInputError, MissingExtraError
from ..settings.connection import is_ipv6, plain_host, web_address, with_port

try:
    from prometheus_client import CollectorRegistry, make_wsgi_app
    from prometheus_client.exposition import ThreadingWSGIServer
except ModuleNotFoundError as err:
    raise MissingExtraError.of("metrics", "server") from err

__all__ = ["MetricsPage"]

_SOCKET_SECONDS = 10


class _Handler(WSGIRequestHandler):
    """Logs no requests, and does not wait for clients that say nothing."""

    timeout = _SOCKET_SECONDS

    def log_message(self, format: str, *args: Any) -> None:
        """Log nothing: a scrape every few seconds is not news."""


class _Ipv6Server(ThreadingWSGIServer):
    """Listens on an IPv6 address."""

    address_family = socket.AF_INET6


class MetricsPage:
    """Serves metrics and health over HTTP.

    Args:
        host: The address to listen on.
        port: The port; 0 for a free one.
        registry: The metrics.
        alive: Returns why the process should be restarted; empty: it is well.
        ready: Returns why no calls should be sent here; empty: they are welcome.

    Raises:
        InvalidInputError: The address cannot be listened on.
    """

    def __init__(
        self,
        host: str,
        port: int,
        registry: CollectorRegistry,
        *,
        alive: Callable[[], str],
        ready: Callable[[], str],
    ) -> None:
        self._metrics = make_wsgi_app(registry)
        self._answers = {"/healthz": alive, "/readyz": ready}
        kind = _Ipv6Server if is_ipv6(host) else ThreadingWSGIServer
        try:
            self._server = make_server(plain_host(host), port, self._answer, kind, _Handler)
        except OSError as err:
            raise InvalidInputError(
                f"metrics cannot listen on {with_port(host, port)}: {err.strerror or err}; set "
                "another metrics_host or metrics_port (port 0 chooses a free one)"
            ) from err
        self.address = with_port(host, self._server.server_port)
        self._thread = threading.Thread(
            target=self._server.serve_forever, name="metrics", daemon=True
        )
        self._thread.start()

    def close(self) -> None:
        """Stop serving."""
        self._server.shutdown()
        self._server.server_close()
        self._thread.join()

    def _answer(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        target = environ.get("PATH_INFO", "")
        # A target may be a whole URL (RFC 9112, 3.2.2).
        path = parts.path if (parts := web_address(target)) is not None else target
        if path == "/metrics":
            found: Iterable[bytes] = self._metrics(environ, start_response)
            return found
        problem = self._answers[path]() if path in self._answers else None
        if problem is None:
            status, text = HTTPStatus.NOT_FOUND, "try /metrics, /healthz or /readyz"
        elif problem:
            status, text = HTTPStatus.SERVICE_UNAVAILABLE, problem
        else:
            status, text = HTTPStatus.OK, "ok"
        start_response(
            f"{status.value} {status.phrase}", [("Content-Type", "text/plain; charset=utf-8")]
        )
        return [f"{text}\n".encode()]
