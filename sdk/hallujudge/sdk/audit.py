"""Audits of printed numbers: why a tool's score of an archive and ours differ."""

from __future__ import annotations

from typing import TYPE_CHECKING

from hallujudge.metrics.framework import names_on_use

if TYPE_CHECKING:
    from hallujudge.studies.audit.audit import HARNESSES, audit
    from hallujudge.studies.audit.totals import PrintedTotal, TotalsAudit, audit_totals
    from hallujudge.studies.audit.waterfall import (
        Audit,
        AuditOptions,
        Cause,
        ItemShare,
        Printed,
        Row,
        ScoreAudit,
    )

__all__ = [
    "HARNESSES",
    "Audit",
    "AuditOptions",
    "Cause",
    "ItemShare",
    "Printed",
    "PrintedTotal",
    "Row",
    "ScoreAudit",
    "TotalsAudit",
    "audit",
    "audit_totals",
]

_NAMES = {
    "hallujudge.studies.audit.audit": "HARNESSES audit",
    "hallujudge.studies.audit.totals": "PrintedTotal TotalsAudit audit_totals",
    "hallujudge.studies.audit.waterfall": (
        "Audit AuditOptions Cause ItemShare Printed Row ScoreAudit"
    ),
}
"""Module -> the public names that it defines."""

__getattr__, __dir__ = names_on_use(__name__, _NAMES)
