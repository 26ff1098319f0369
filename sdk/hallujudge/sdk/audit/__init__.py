"""Audits of printed numbers: why a tool's score of an archive and ours differ."""

from __future__ import annotations

from .audit import HARNESSES, audit
from .totals import PrintedTotal, TotalsAudit, audit_totals
from .waterfall import Audit, AuditOptions, Cause, ItemShare, Printed, Row, ScoreAudit

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
