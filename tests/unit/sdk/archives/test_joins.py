"""Errors that name every place with the same fault."""

from __future__ import annotations

import pytest

from hallujudge.sdk.archives.joins import Faults
from hallujudge.sdk.errors import ArchiveError


def test_without_a_fault_nothing_is_raised() -> None:
    faults = Faults({})
    faults.add("labels are missing")
    assert not faults
    faults.check()


def test_the_first_kind_of_fault_is_raised_with_all_its_places() -> None:
    faults = Faults({"labels are missing": "Add them"})
    faults.add("labels are missing", "a")
    faults.add("ids are duplicates", "x")
    faults.add("labels are missing", "b", "c")
    assert faults
    with pytest.raises(ArchiveError) as caught:
        faults.check()
    assert str(caught.value).startswith("labels are missing: ")
    assert "(3 in all). Add them" in str(caught.value)
    assert caught.value.metadata["count"] == "3"
