"""Whether a reply comes from the model that was asked for."""

from __future__ import annotations

import re
from collections.abc import Collection

__all__ = ["ANY_MODEL", "is_asked_model"]

ANY_MODEL = "*"
"""Accepts replies of any model."""

# A dated snapshot ("gpt-4o" answers as "gpt-4o-2024-08-06") or a default tag ("llama3:latest").
_SNAPSHOT = re.compile(r"-\d{4}.*|@.+|:latest")


def is_asked_model(told: str, asked: str, accepted: Collection[str] = ()) -> bool:
    """Tell whether the model that a reply names is the one that was asked for.

    Folders before the name do not count: gateways add and drop them.

    Args:
        told: The reply's model; empty: the server names none.
        asked: The request's model.
        accepted: More names that replies may carry; ``*`` accepts all.
    """
    if not told or ANY_MODEL in accepted:
        return True
    name, wanted = _last(told), _last(asked)
    if name == wanted or name in {_last(other) for other in accepted}:
        return True
    return name.startswith(wanted) and _SNAPSHOT.fullmatch(name[len(wanted) :]) is not None


def _last(name: str) -> str:
    return name.rstrip("/").rpartition("/")[2].casefold()
