"""Settings of a client's connection: argument > environment > default."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, fields

from ..errors import InvalidInputError
from .secret import Secret, read_secret

__all__ = ["Connection", "host_of", "is_here", "load_connection"]

_PREFIX = "HALLUJUDGE_"
API_KEY = "HALLUJUDGE_API_KEY"
"""The environment variable of the API key; with ``_FILE``, of a file that contains it."""
SYSTEM = "system"
"""The value of ``tls_ca`` that stands for the authorities that gRPC trusts by default."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Connection:
    """How a client connects to a server: over TLS or in plain text, and with which key.

    What is empty comes from the environment: ``HALLUJUDGE_TLS_CA``, ``HALLUJUDGE_TLS_CERT``,
    ``HALLUJUDGE_TLS_KEY``, and ``HALLUJUDGE_API_KEY`` or ``HALLUJUDGE_API_KEY_FILE``.
    """

    tls_ca: str = ""
    """PEM file of authorities that the server's certificate must be from, or ``system``."""
    tls_cert: str = ""
    """PEM file of the client's own certificate, if the server wants one."""
    tls_key: str = ""
    """PEM file of its private key."""
    api_key: Secret = field(default_factory=lambda: Secret(""))
    """The API key."""

    @property
    def is_tls(self) -> bool:
        """Whether the connection is encrypted."""
        return bool(self.tls_ca or self.tls_cert)


def load_connection(
    given: Connection | None = None,
    *,
    api_key_file: str = "",
    environ: Mapping[str, str] | None = None,
) -> Connection:
    """Return a connection's settings from all sources.

    Args:
        given: Arguments.
        api_key_file: A file that contains the API key.
        environ: The environment; None: that of this process.

    Raises:
        InvalidInputError: A file can't be read, or a setting lacks another one.
    """
    environ = os.environ if environ is None else environ
    given = given or Connection()
    values = {
        entry.name: getattr(given, entry.name) or environ.get(f"{_PREFIX}{entry.name.upper()}", "")
        for entry in fields(Connection)
        if entry.name != "api_key"
    }
    key = given.api_key
    if api_key_file:
        key = read_secret({f"{API_KEY}_FILE": api_key_file}, API_KEY)
    found = Connection(**values, api_key=key or read_secret(environ, API_KEY))
    if bool(found.tls_cert) != bool(found.tls_key):
        names = ("tls_cert", "tls_key") if found.tls_cert else ("tls_key", "tls_cert")
        raise InvalidInputError(
            f"Connection({names[0]}=…) is given without Connection({names[1]}=…); give both or "
            "neither"
        )
    return found


def host_of(target: str) -> str:
    """Return the host of an address such as ``lab:50051`` or ``ipv6:[::1]:50051``."""
    name = target.removeprefix("dns:").removeprefix("ipv4:").removeprefix("ipv6:").lstrip("/")
    host, colon, _ = name.rpartition(":")
    return (host if colon and (":" not in host or host.endswith("]")) else name).strip("[]")


def is_here(target: str) -> bool:
    """Return whether an address is of this machine, so that what is sent does not leave it."""
    if target.startswith("unix:"):
        return True
    host = host_of(target)
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
