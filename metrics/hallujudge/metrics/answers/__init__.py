"""Answers to closed questions: their parsers, evidence and shared scores.

The tools that score these benchmarks parse the same sentence differently; which parser was used is
part of every score's signature. ``docs/decisions/answer-parsing.md`` compares them.
"""

from __future__ import annotations

from .answer_text import says_it_is_unsure
from .choices import ParsedChoice, read_choice, read_free_answer
from .orders import ParsedOrder, read_order, read_order_published
from .yes_no import YES_NO_PARSERS, YesNo, parser_table, yes_no_parser

__all__ = [
    "YES_NO_PARSERS",
    "ParsedChoice",
    "ParsedOrder",
    "YesNo",
    "parser_table",
    "read_choice",
    "read_free_answer",
    "read_order",
    "read_order_published",
    "says_it_is_unsure",
    "yes_no_parser",
]
