"""Limits on scores as assertions of pytest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

# Names that are imported under their own name are public to type checkers.
if TYPE_CHECKING:
    from hallujudge.integrations.pytest_plugin import assert_hallucination as assert_hallucination

__getattr__, __dir__ = names_on_use(__name__)
__all__ = __dir__()
