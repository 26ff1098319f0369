"""Defects: the log has the details, and callers get an id."""

from __future__ import annotations

import logging
import uuid

from ..errors import InternalError

__all__ = ["internal_error"]

_LOG = logging.getLogger(__name__)


def internal_error(error: Exception) -> InternalError:
    """Log a defect, and return an error with its id only: details may contain users' texts."""
    error_id = uuid.uuid4().hex[:12]
    _LOG.error("error %s", error_id, exc_info=error)
    return InternalError(
        f"the server failed; its log has the details under {error_id}",
        metadata={"error_id": error_id},
    )
