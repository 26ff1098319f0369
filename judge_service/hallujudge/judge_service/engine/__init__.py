"""The engine: scores items and returns results and a report, without transport or files.

Names are imported when they are first used: a help page needs the registry alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

if TYPE_CHECKING:
    from hallujudge.metrics.families import metric_names as metric_names

    from .session import Engine as Engine
    from .session import ScoringSession as ScoringSession
    from .spec import GraphSource as GraphSource
    from .spec import InlineGraph as InlineGraph
    from .spec import ScoreSpec as ScoreSpec
    from .spec import ShippedGraph as ShippedGraph

__getattr__, __dir__ = names_on_use(__name__)
__all__ = __dir__()
