"""Addresses that users give."""

from __future__ import annotations

import ipaddress
from urllib.parse import SplitResult, urlsplit

__all__ = ["is_ipv6", "plain_host", "web_address", "with_port"]


def web_address(text: str) -> SplitResult | None:
    """Return the parts of an address such as ``http://127.0.0.1:8000/v1``; None: it is not one.

    The host and the port of the parts can be read without an error.
    """
    try:
        parts = urlsplit(text)
        has_host = bool(parts.hostname) and parts.port != 0
    except ValueError:  # half of an IPv6 address, or a port above 65,535
        return None
    return parts if parts.scheme in ("http", "https") and has_host else None


def plain_host(host: str) -> str:
    """Return a host without the brackets that an IPv6 address has beside a port."""
    return host[1:-1] if host.startswith("[") and host.endswith("]") else host


def is_ipv6(host: str) -> bool:
    """Return whether a host is an IPv6 address, with or without brackets."""
    try:
        return ipaddress.ip_address(plain_host(host)).version == 6
    except ValueError:
        return False


def with_port(host: str, port: int) -> str:
    """Return an address such as ``127.0.0.1:50051`` or ``[::1]:50051``."""
    return f"[{plain_host(host)}]:{port}" if is_ipv6(host) else f"{host}:{port}"
