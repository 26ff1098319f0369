"""Loading of models without progress bars."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["quiet_loading"]


@contextlib.contextmanager
def quiet_loading() -> Iterator[None]:
    """Disable the progress bars of transformers, and restore their state afterwards."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
