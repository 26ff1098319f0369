"""Channels to a server: plain text or TLS, and the metadata of their calls."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import grpc

from hallujudge.judge_service.settings.connection import SYSTEM, is_here

from ..errors import InvalidInputError

if TYPE_CHECKING:
    from hallujudge.judge_service.settings.connection import Connection

__all__ = ["call_metadata", "check_key", "open_channel"]

_MAX_FILE_BYTES = 1 << 20


def open_channel(
    target: str, connection: Connection, options: Sequence[tuple[str, object]]
) -> grpc.aio.Channel:
    """Return a channel to a server.

    Raises:
        InvalidInputError: A file of certificates can't be read.
    """
    if not connection.is_tls:
        return grpc.aio.insecure_channel(target, options=options)
    credentials = grpc.ssl_channel_credentials(
        root_certificates=_authorities(connection),
        private_key=_read("tls_key", connection.tls_key),
        certificate_chain=_read("tls_cert", connection.tls_cert),
    )
    return grpc.aio.secure_channel(target, credentials, options=options)


def call_metadata(connection: Connection) -> tuple[tuple[str, str], ...]:
    """Return the metadata that calls carry: the API key, if there is one."""
    if not connection.api_key:
        return ()
    return (("authorization", f"Bearer {connection.api_key.reveal()}"),)


def check_key(target: str, connection: Connection) -> None:
    """Refuse to send a key that others could read on its way.

    Raises:
        InvalidInputError: The server is on another machine, and the connection is plain text, or
            the key has characters that can't be sent.
    """
    if not connection.api_key:
        return
    if not connection.api_key.reveal().isascii() or not connection.api_key.reveal().isprintable():
        raise InvalidInputError("the API key has characters that no key has; check where it is set")
    if not connection.is_tls and not is_here(target):
        raise InvalidInputError(
            f"the API key would be readable on its way to {target!r}; connect over TLS: set "
            "Connection(tls_ca=…) to the authority of the server's certificate, or to system",
            metadata={"target": target},
        )


def _authorities(connection: Connection) -> bytes | None:
    return None if connection.tls_ca in ("", SYSTEM) else _read("tls_ca", connection.tls_ca)


def _read(name: str, path: str) -> bytes | None:
    if not path:
        return None
    try:
        with Path(path).open("rb") as stream:
            data = stream.read(_MAX_FILE_BYTES)
    except OSError as err:
        raise InvalidInputError(
            f"{name} {path!r} can't be read: {err.strerror or err}; check its path"
        ) from err
    if b"-----BEGIN " not in data:
        raise InvalidInputError(f"{name} {path!r} is not a PEM file; convert it to PEM")
    return data
