"""Settings that ``hallujudge batch`` adds to those of a score command."""

from __future__ import annotations

from collections.abc import Mapping
from contextvars import ContextVar

__all__ = ["batch_settings"]

batch_settings: ContextVar[Mapping[str, str]] = ContextVar("batch_settings", default={})  # noqa: B039
"""Settings of judges that are run offline; empty outside ``hallujudge batch``."""
