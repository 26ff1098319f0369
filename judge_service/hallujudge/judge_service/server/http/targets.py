"""What a request asks for: the path, and the host that it means."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote

from ...settings.addresses import web_address

__all__ = ["target_of"]


def target_of(scope: Mapping[str, Any]) -> tuple[str, str]:
    """Return the path of a request, and the host in its target; empty: the header names it.

    The target may be a whole URL, whose host then counts instead of the header's (RFC 9112, 3.2.2).
    """
    target = scope.get("raw_path", b"/").decode("ascii", "replace")
    parts = None if target.startswith("/") else web_address(target)
    if parts is None or "@" in parts.netloc:
        return scope["path"], ""
    return unquote(parts.path) or "/", parts.netloc
