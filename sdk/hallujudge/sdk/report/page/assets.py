"""Scripts and style sheets that ``make page`` builds from ``web/report``."""

from __future__ import annotations

import base64
import hashlib
from functools import cache
from importlib import resources

__all__ = ["asset", "digest"]


@cache
def asset(name: str) -> str:
    """Return the text of a script or style sheet; it holds nothing that ends its element."""
    return resources.files(__package__).joinpath(name).read_text(encoding="utf-8")


def digest(text: str) -> str:
    """Return the hash by which a content security policy allows an inline script or style."""
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"
