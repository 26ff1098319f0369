"""Audits of printed numbers: why a tool's score of an archive and ours differ."""
