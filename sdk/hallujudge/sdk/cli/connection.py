"""Options of commands that call a server. The API key itself is never an option."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from ..errors import InvalidInputError
from .panels import server_option

if TYPE_CHECKING:
    from hallujudge.judge_service.settings.connection import Connection

__all__ = [
    "ApiKeyFile",
    "Server",
    "TlsCa",
    "TlsCert",
    "TlsKey",
    "connection_flags",
    "connection_of",
]

_FLAGS = ("--tls-ca", "--tls-cert", "--tls-key", "--api-key-file")

Server = Annotated[
    str | None,
    server_option(
        "--server", metavar="HOST:PORT", help="Server that scores; without it, this process does."
    ),
]
TlsCa = Annotated[
    str | None,
    server_option("--tls-ca", metavar="FILE", help="Authority of the server's certificate."),
]
TlsCert = Annotated[
    str | None, server_option("--tls-cert", metavar="FILE", help="Certificate of this client.")
]
TlsKey = Annotated[
    str | None, server_option("--tls-key", metavar="FILE", help="Private key of --tls-cert.")
]
ApiKeyFile = Annotated[
    str | None,
    server_option("--api-key-file", metavar="FILE", help="File that contains the API key."),
]


def connection_of(
    server: str | None,
    tls_ca: str | None,
    tls_cert: str | None,
    tls_key: str | None,
    api_key_file: str | None,
) -> Connection | None:
    """Return how to connect to a server: the options, and the environment; None without one.

    Raises:
        InvalidInputError: A file can't be read, or an option lacks another one or the server.
    """
    if server is None:
        _refuse_alone(tls_ca, tls_cert, tls_key, api_key_file)
        return None
    from hallujudge.judge_service.settings.connection import Connection, load_connection

    given = Connection(tls_ca=tls_ca or "", tls_cert=tls_cert or "", tls_key=tls_key or "")
    return load_connection(given, api_key_file=api_key_file or "")


def connection_flags(*values: str | None) -> tuple[str, ...]:
    """Return the options that were given, for a command that calls the same server."""
    pairs = zip(_FLAGS, values, strict=True)
    return tuple(part for flag, value in pairs if value for part in (flag, value))


def _refuse_alone(*values: str | None) -> None:
    if given := connection_flags(*values):
        raise InvalidInputError(
            f"{given[0]} is for a server, and none is named; add --server, or leave it out"
        )
