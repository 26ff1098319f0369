"""What the backends share."""

from __future__ import annotations

import pytest

from hallujudge.sdk import Timeouts
from hallujudge.sdk.errors import InvalidInputError


@pytest.mark.parametrize("seconds", [0, -1, float("nan")])
def test_a_progress_timeout_that_is_not_above_zero_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidInputError, match="progress_timeout is"):
        Timeouts(progress_timeout=seconds)


@pytest.mark.parametrize("seconds", [-1, float("nan")])
def test_a_reconnect_timeout_below_zero_is_refused(seconds: float) -> None:
    with pytest.raises(InvalidInputError, match="reconnect_timeout is"):
        Timeouts(reconnect_timeout=seconds)
