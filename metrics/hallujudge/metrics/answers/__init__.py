"""Answers to closed questions: their parsers, evidence and shared scores.

The tools that score these benchmarks parse the same sentence differently; which parser was used is
part of every score's signature. ``docs/decisions/answer-parsing.md`` compares them.
"""
