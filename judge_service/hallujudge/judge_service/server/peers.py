"""Addresses of callers, as gRPC writes them."""

from __future__ import annotations

from urllib.parse import quote, unquote

__all__ = ["host_of", "peer_of"]


def peer_of(client: tuple[str, int] | None) -> str:
    """Return an HTTP client's address as gRPC writes it, so that a caller is the same over both."""
    if client is None:
        return "unknown"
    host, port = client[0].removeprefix("::ffff:"), client[1]
    return f"ipv6:{quote(f'[{host}]', safe=':')}:{port}" if ":" in host else f"ipv4:{host}:{port}"


def host_of(peer: str) -> str:
    """Return an address for people, without its port, which says nothing of the caller.

    gRPC writes an address as part of a URI, with brackets as ``%5B`` and ``%5D``.
    """
    if not peer.startswith(("ipv4:", "ipv6:")):
        return peer
    return unquote(peer.rpartition(":")[0])
