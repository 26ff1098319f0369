"""Validation of server addresses, without importing gRPC."""

from __future__ import annotations

from ..errors import InvalidInputError

__all__ = ["checked_address"]

_LAST_PORT = 65_535
# Other kinds of targets that gRPC resolves.
_OTHER_TARGETS = ("unix:", "unix-abstract:", "dns:", "ipv4:", "ipv6:", "vsock:", "xds:")


def checked_address(target: str) -> str:
    """Return the address if it is valid."""
    if not target.strip():
        raise InvalidInputError(
            "the server's address is empty; give HOST:PORT, or name no server to score in "
            "this process"
        )
    if target.startswith(("http://", "https://")):
        raise InvalidInputError(
            f"the server's address {target!r} is a URL; give HOST:PORT, such as localhost:50051",
            metadata={"target": target},
        )
    if not target.startswith(_OTHER_TARGETS) and not _has_port(target):
        raise InvalidInputError(
            f"the server's address {target!r} has no port from 1 to 65535; give HOST:PORT, such as "
            "localhost:50051",
            metadata={"target": target},
        )
    return target


def _has_port(target: str) -> bool:
    host, _, port = target.rpartition(":")
    return bool(host) and port.isascii() and port.isdecimal() and 0 < int(port) <= _LAST_PORT
