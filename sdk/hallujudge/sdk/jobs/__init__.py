"""Jobs: runs that a server keeps. They are submitted, watched and fetched."""

from .values import FINISHED_STATES, JobInfo, OnJobChange

__all__ = ["FINISHED_STATES", "JobInfo", "OnJobChange"]
