"""Options of commands that call a server. The API key itself is never an option."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from .panels import server_option

if TYPE_CHECKING:
    from hallujudge.judge_service.settings.connection import Connection

__all__ = ["ApiKeyFile", "Server", "TlsCa", "TlsCert", "TlsKey", "connection_of"]

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
    tls_ca: str | None, tls_cert: str | None, tls_key: str | None, api_key_file: str | None
) -> Connection:
    """Return how to connect: the options, and the environment.

    Raises:
        InvalidInputError: A file can't be read, or an option lacks another one.
    """
    from hallujudge.judge_service.settings.connection import Connection, load_connection

    given = Connection(tls_ca=tls_ca or "", tls_cert=tls_cert or "", tls_key=tls_key or "")
    return load_connection(given, api_key_file=api_key_file or "")
