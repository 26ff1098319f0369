"""POPE: answers in columns."""

from __future__ import annotations

import pytest

from hallujudge.metrics import OptionError
from hallujudge.metrics.pope import PopeMetric


def test_columns_that_do_not_fit_are_refused() -> None:
    with pytest.raises(OptionError, match="maybe"):
        PopeMetric().rows(["yes"], ["maybe"])
    with pytest.raises(OptionError, match="1 labels for 2"):
        PopeMetric().rows(["yes", "no"], ["no"])
