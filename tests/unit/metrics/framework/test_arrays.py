"""numpy, which is loaded when it is first used."""

import subprocess
import sys

import numpy
import pytest

from hallujudge.metrics.framework.arrays import np


def test_what_is_asked_of_it_is_numpys() -> None:
    assert np.ndarray is numpy.ndarray
    assert vars(np)["ndarray"] is numpy.ndarray
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        np.nonsense  # type: ignore[attr-defined]  # noqa: B018


def test_numpy_is_loaded_when_it_is_first_used() -> None:
    code = """
import sys
from hallujudge.metrics.framework import comparison, significance, tally
from hallujudge.metrics import TriHeMetric
assert "numpy" not in sys.modules
significance.np.zeros(3)
assert "numpy" in sys.modules
"""
    subprocess.run([sys.executable, "-c", code], check=True)
