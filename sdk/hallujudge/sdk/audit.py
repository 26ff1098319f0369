"""Audits of printed numbers: why a tool's score of an archive and ours differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

# Names that are imported under their own name are public to type checkers.
if TYPE_CHECKING:
    from hallujudge.studies.audit.audit import HARNESSES as HARNESSES
    from hallujudge.studies.audit.audit import audit as audit
    from hallujudge.studies.audit.printed_numbers import PrintedTotal as PrintedTotal
    from hallujudge.studies.audit.printed_numbers import TotalsAudit as TotalsAudit
    from hallujudge.studies.audit.printed_numbers import audit_totals as audit_totals
    from hallujudge.studies.audit.waterfall import Audit as Audit
    from hallujudge.studies.audit.waterfall import AuditOptions as AuditOptions
    from hallujudge.studies.audit.waterfall import Cause as Cause
    from hallujudge.studies.audit.waterfall import ItemShare as ItemShare
    from hallujudge.studies.audit.waterfall import Printed as Printed
    from hallujudge.studies.audit.waterfall import Row as Row
    from hallujudge.studies.audit.waterfall import ScoreAudit as ScoreAudit

__getattr__, __dir__ = names_on_use(__name__)
__all__ = __dir__()
