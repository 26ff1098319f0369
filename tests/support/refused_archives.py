"""Archives that are refused."""

from __future__ import annotations

from pathlib import Path

import pytest

from hallujudge.sdk import InputOptions
from hallujudge.sdk.archives import read_items
from hallujudge.sdk.errors import HallujudgeError


def refused(path: Path | str, **options: object) -> str:
    """Return the message of the error, which names the file and is one paragraph."""
    inputs = InputOptions(**options)  # type: ignore[arg-type]  # built by the cases
    with pytest.raises(HallujudgeError) as caught:
        list(read_items("pope", path, None, options=inputs))
    message = str(caught.value)
    assert "\n" not in message
    return message
