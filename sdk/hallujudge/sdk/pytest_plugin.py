"""Limits on scores as assertions of pytest."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

if TYPE_CHECKING:
    from hallujudge.integrations.pytest_plugin import assert_hallucination

__all__ = [
    "assert_hallucination",
]

_NAMES = {
    "hallujudge.integrations.pytest_plugin": "assert_hallucination",
}
"""Module -> the public names that it defines."""

__getattr__, __dir__ = names_on_use(__name__, _NAMES)
