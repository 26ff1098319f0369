"""A local web server that shows the runs of a folder: ``hallujudge view``."""

from .server import Viewer

__all__ = ["Viewer"]
