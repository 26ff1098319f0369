"""Validation of server addresses, without importing gRPC."""

from __future__ import annotations

from ..errors import InvalidInputError

__all__ = ["checked_address"]


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
    return target
