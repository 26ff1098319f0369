"""Reading answers: yes or no, a choice, an order. Every reading has a name.

The tools that score these benchmarks read the same sentence differently; which reading was used is
part of every score's signature. ``docs/decisions/answer-reading.md`` compares them.
"""

from .choices import ChoiceReading, read_choice, read_free_answer
from .orders import OrderReading, read_order, read_order_published
from .uncertainty import says_it_is_unsure
from .yes_no import YES_NO_READERS, YesNo, reader_table, yes_no_reader

__all__ = [
    "YES_NO_READERS",
    "ChoiceReading",
    "OrderReading",
    "YesNo",
    "read_choice",
    "read_free_answer",
    "read_order",
    "read_order_published",
    "reader_table",
    "says_it_is_unsure",
    "yes_no_reader",
]
