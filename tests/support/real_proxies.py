"""Real proxies, with the settings of the page about them: nginx, HAProxy, Caddy and Envoy."""

from __future__ import annotations

import re
import shutil
import socket
import socketserver
import textwrap
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from string import Template

import pytest
from support import real_servers as real

TESTS = Path(__file__).resolve().parents[1]
PAGE = TESTS.parent / "docs" / "how-to" / "run-behind-a-proxy.md"
FORWARD = TESTS / "data" / "proxies" / "forward.yaml"
BEHIND = {"grpc": "50051", "http": "8080", "judge": "8000"}
"""The ports of what is behind the proxies of the page."""
IN_FRONT: Mapping[str, tuple[str, str, str]] = {
    "nginx": ("50052", "8081", "8001"),
    "HAProxy": ("50052", "8081", "8001"),
    "Caddy": ("50052", "8081", "8001"),
    "Envoy": ("50052", "50052", "50052"),
}
"""The ports of each proxy of the page for the same."""
_OF_THE_SYSTEM = ("nginx", "HAProxy")
_NGINX = """
daemon off;
master_process off;
pid nginx.pid;
error_log error.log;
events {{}}
http {{
    access_log off;
    client_body_temp_path body;
    proxy_temp_path proxy;
    fastcgi_temp_path fastcgi;
    uwsgi_temp_path uwsgi;
    scgi_temp_path scgi;
{settings}
}}
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Proxy:
    """A proxy that runs."""

    name: str
    """Its name."""
    grpc: str
    """The address of the server's gRPC port behind it."""
    http: str
    """The base address of its HTTP port."""
    judge: str
    """The base address of a judge's API."""
    log: Path
    """What it wrote."""


def program(name: str) -> Path:
    """Return a proxy's program; skip where it is not installed."""
    if name not in _OF_THE_SYSTEM:
        return real.environment("proxies") / name.lower()
    found = shutil.which(name.lower())
    if found is None:
        pytest.skip(f"no real judge server: {name} is not installed")
    return Path(found)


def page_settings(name: str) -> str:
    """Return the settings of a proxy on the page."""
    part = PAGE.read_text(encoding="utf-8").partition(f"\n## {name}\n")[2].partition("\n## ")[0]
    return textwrap.dedent("\n".join(re.findall(r"^(?: {4}.*)?$", part, re.MULTILINE))).strip()


def without_limits(settings: str) -> str:
    """Return settings of nginx with its own limits of size and time."""
    return "\n".join(
        line for line in settings.splitlines() if not re.search("client_|_timeout", line)
    )


@contextmanager
def running(
    name: str,
    folder: Path,
    behind: Mapping[str, int],
    change: Callable[[str], str] = lambda settings: settings,
) -> Iterator[Proxy]:
    """Start a proxy with the settings of the page.

    Args:
        name: ``nginx``, ``HAProxy``, ``Caddy`` or ``Envoy``.
        folder: Folder for its files.
        behind: The ports of the server and of the judge.
        change: Changes the settings.
    """
    front = {port: real.free_port() for port in dict.fromkeys(IN_FRONT[name])}
    ports = front | {number: behind[which] for which, number in BEHIND.items()}
    text = re.sub(
        rf"\b({'|'.join(ports)})\b",
        lambda found: str(ports[found[1]]),
        _here_only(change(page_settings(name))),
    )
    folder.mkdir(parents=True, exist_ok=True)
    file = folder / ("settings.yaml" if name == "Envoy" else "settings")
    file.write_text(_NGINX.format(settings=text) if name == "nginx" else f"{text}\n")
    binary = program(name)
    command = {
        "nginx": (binary, "-p", folder, "-e", folder / "error.log", "-c", file),
        "HAProxy": (binary, "-db", "-f", file),
        "Caddy": (binary, "run", "--adapter", "caddyfile", "--config", file),
        "Envoy": (binary, "--config-path", file, "--concurrency", "1", "--disable-hot-restart"),
    }[name]
    grpc, http, judge = (front[port] for port in IN_FRONT[name])
    kept = {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with real.started(command, folder / "log", judge, **kept) as started:
        yield Proxy(
            name=name,
            grpc=f"127.0.0.1:{grpc}",
            http=f"http://127.0.0.1:{http}",
            judge=started.url,
            log=started.log,
        )


def _here_only(settings: str) -> str:
    """Return settings that listen at this machine only."""
    settings = re.sub(r"\blisten (\d+)", r"listen 127.0.0.1:\1", settings)
    settings = re.sub(r"\bbind :(\d+)", r"bind 127.0.0.1:\1", settings)
    settings = settings.replace("address: 0.0.0.0", "address: 127.0.0.1")
    return re.sub(r"\A\{", "{\n    admin off\n    default_bind 127.0.0.1", settings)


class _Relay(socketserver.BaseRequestHandler):
    behind = 0

    def handle(self) -> None:
        with socket.create_connection(("127.0.0.1", self.behind)) as far:
            back = threading.Thread(target=_pass_on, args=(far, self.request, 65536, 0.0))
            back.start()
            _pass_on(self.request, far, 200, 0.2)
            back.join()


def _pass_on(source: socket.socket, target: socket.socket, size: int, seconds: float) -> None:
    with suppress(OSError):  # the other side is gone
        while part := source.recv(size):
            target.sendall(part)
            time.sleep(seconds)
        target.shutdown(socket.SHUT_WR)


@contextmanager
def slow_uplink(port: int) -> Iterator[int]:
    """Relay connections to a port of this machine, and send it 1,000 bytes a second.

    Yields:
        The port of the relay.
    """
    relay = type("Relay", (_Relay,), {"behind": port})
    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), relay) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield int(server.server_address[1])
        server.shutdown()
        thread.join()


WITH_TLS = """{{
    admin off
    auto_https off
    default_bind 127.0.0.1
}}
https://:{port} {{
    tls {certificate} {key}
    reverse_proxy 127.0.0.1:{behind}
}}
http://:{health} {{
    reverse_proxy 127.0.0.1:{behind}
}}
"""
"""Caddy with a certificate in front of a judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Forward:
    """A forward proxy that runs, and a judge that only it can reach by its name."""

    address: str
    """The proxy's address."""
    passed: Path
    """A line for each call that went through it: the method and the host."""

    @property
    def calls(self) -> list[str]:
        """The calls so far, in words."""
        return self.passed.read_text().splitlines() if self.passed.exists() else []


@contextmanager
def forwarding(folder: Path, judge: int, certificate: tuple[str, str]) -> Iterator[Forward]:
    """Start a forward proxy, and a judge with TLS behind it.

    Args:
        folder: Folder for files.
        judge: The port of a judge without TLS.
        certificate: The certificate and its key.
    """
    port, tls, health = real.free_port(), real.free_port(), real.free_port()
    passed, settings = folder / "passed", folder / "forward.yaml"
    made = Template(FORWARD.read_text()).substitute(port=port, tls=tls, plain=judge, log=passed)
    settings.write_text(made)
    caddy = folder / "Caddyfile"
    chain, key = certificate
    caddy.write_text(
        WITH_TLS.format(port=tls, certificate=chain, key=key, behind=judge, health=health)
    )
    forward = (
        *(program("Envoy"), "--config-path", settings, "--concurrency", "1"),
        *("--disable-hot-restart", "--file-flush-interval-msec", "50"),
    )
    ended = (program("Caddy"), "run", "--adapter", "caddyfile", "--config", caddy)
    kept = {"XDG_DATA_HOME": str(folder), "XDG_CONFIG_HOME": str(folder)}
    with (
        real.started(forward, folder / "forward.log", port),
        real.started(ended, folder / "tls.log", health, **kept),
    ):
        yield Forward(address=f"http://127.0.0.1:{port}", passed=passed)
