"""One pipeline for each metric; a new metric is a module here and a line in ENTRIES."""

from . import chair, infact, pope, vidhal

ENTRIES = (
    chair.ENTRY,
    pope.ENTRY,
    vidhal.MCQA_ENTRY,
    vidhal.ORDERING_ENTRY,
    infact.ENTRY,
)

__all__ = ["ENTRIES"]
