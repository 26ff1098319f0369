"""Loading models without progress bars in the user's terminal."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

__all__ = ["quiet_loading"]


@contextlib.contextmanager
def quiet_loading() -> Iterator[None]:
    """Switches the progress bars of transformers off, and on again where they were on."""
    from transformers.utils import logging

    shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if shown:
            logging.enable_progress_bar()
