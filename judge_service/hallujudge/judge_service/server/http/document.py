"""The OpenAPI document of this release."""

from __future__ import annotations

import json
from functools import cache
from importlib import resources

from ...version import __version__

__all__ = ["openapi_document"]


@cache
def openapi_document() -> bytes:
    """Return the document that the .proto files make, with the version."""
    text = resources.files("hallujudge.judge.v1").joinpath("openapi.json").read_text("utf-8")
    document = json.loads(text)
    document["info"]["version"] = __version__
    return json.dumps(document, ensure_ascii=False).encode()
