"""Addresses that users give."""

from __future__ import annotations

from urllib.parse import SplitResult, urlsplit

__all__ = ["web_address"]


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
