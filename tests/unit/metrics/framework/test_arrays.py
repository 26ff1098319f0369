"""numpy, which is loaded when it is first used."""

import numpy
import pytest

from hallujudge.metrics.framework.arrays import np


def test_what_is_asked_of_it_is_numpys() -> None:
    assert np.ndarray is numpy.ndarray
    assert vars(np)["ndarray"] is numpy.ndarray
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        np.nonsense  # type: ignore[attr-defined]  # noqa: B018
