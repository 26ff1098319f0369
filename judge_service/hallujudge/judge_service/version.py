"""The version of Hallujudge."""

from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

__all__ = ["__version__"]


def _installed() -> str:
    try:
        return version("hallujudge")
    except PackageNotFoundError:  # a checkout on sys.path that is not installed
        return "0+unknown"


__version__ = _installed()
