"""What papers do with finished runs: analyses, audits, tables, leaderboards; tools for graphs.

Public names are those of ``hallujudge.sdk.analysis``, ``hallujudge.sdk.audit``,
``hallujudge.sdk.comparison`` and ``hallujudge.synonym_graphs.tools``. What is here is for commands:
modules are imported when a command uses them, so that help pages wait for none of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

if TYPE_CHECKING:
    from hallujudge import synonym_graphs as synonym_graphs
    from hallujudge.synonym_graphs import tools as tools

    from . import root_suggestions as root_suggestions
    from .analysis.agreement import GUIDELINE as GUIDELINE
    from .analysis.agreement import score_sheet as score_sheet
    from .analysis.vidhal_files import annotations_of as annotations_of
    from .analysis.vidhal_files import quality_of as quality_of

__getattr__, __dir__ = names_on_use(__name__)
