"""Archive readers: read files that other tools wrote as a stream and join them by id.

Names are imported when they are first used: most commands need only some of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

# Names that are imported under their own name are public to type checkers.
if TYPE_CHECKING:
    from .inputs import InputOptions as InputOptions
    from .inputs import ItemSource as ItemSource
    from .inputs import References as References
    from .inputs import Responses as Responses
    from .inspection import ArchiveSummary as ArchiveSummary
    from .inspection import inspect_archives as inspect_archives
    from .layouts.archive_reader import ArchiveReader as ArchiveReader
    from .layouts.archive_reader import converting as converting
    from .readers import read_items as read_items
    from .records import Record as Record

__getattr__, __dir__ = names_on_use(__name__)
__all__ = __dir__()
