"""One pipeline for each metric; a new metric is a module here and a line in ENTRIES."""

from . import chair, infact, mementos, pope, tri_he, vidhal

ENTRIES = (
    chair.ENTRY,
    pope.ENTRY,
    tri_he.ENTRY,
    mementos.ENTRY,
    vidhal.MCQA_ENTRY,
    vidhal.ORDERING_ENTRY,
    infact.ENTRY,
)

__all__ = ["ENTRIES"]
