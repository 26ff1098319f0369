"""Fast construction of frozen values."""

from __future__ import annotations

from dataclasses import FrozenInstanceError, dataclass, fields

import pytest

from hallujudge.metrics import ChairItem, ItemResult, Outcome
from hallujudge.metrics.framework.fast_values import maker_of, makers_of


@dataclass(frozen=True, slots=True, kw_only=True)
class Checked:
    number: int
    twice: int = 2

    def __post_init__(self) -> None:
        if self.number < 0:
            raise ValueError("negative")


def test_a_made_value_equals_a_constructed_one() -> None:
    result = ItemResult(id="1", group_id="g", outcome=Outcome.SCORED, statistics=(1.0,))
    names = tuple(field.name for field in fields(ItemResult))
    made = maker_of(ItemResult, names)([getattr(result, name) for name in names])
    assert made == result
    assert repr(made) == repr(result)
    with pytest.raises(FrozenInstanceError):
        made.id = "2"  # type: ignore[misc]  # what is tested


def test_a_made_value_of_a_class_with_a_base_is_frozen_too() -> None:
    names = tuple(field.name for field in fields(ChairItem))
    item = ChairItem(id="1", response="a dog", reference_objects=("dog",))
    made = maker_of(ChairItem, names)([getattr(item, name) for name in names])
    assert (made, type(made)) == (item, ChairItem)
    with pytest.raises(FrozenInstanceError):
        made.id = "2"  # type: ignore[misc]  # what is tested
    with pytest.raises(FrozenInstanceError):
        del made.id


def test_a_value_with_checks_is_checked() -> None:
    make = maker_of(Checked, ("number", "twice"))
    assert make((1, 3)) == Checked(number=1, twice=3)
    with pytest.raises(ValueError, match="negative"):
        make((-1, 3))


def test_fields_without_content_get_their_defaults() -> None:
    make = maker_of(ChairItem, ("id", "response", "reference_objects"))
    assert make(("1", "a dog", ())) == ChairItem(id="1", response="a dog", reference_objects=())


def test_many_values_are_made_of_columns() -> None:
    names = ("id", "group_id", "fields", "response", "reference_objects", "thought")
    make = makers_of(ChairItem, names)
    texts = ["a dog", None]
    made = make((["1", "2"], ["g", "h"], [{}, {"a": "b"}], texts, [("dog",), None], ["", ""]))
    assert made == [
        ChairItem(id="1", group_id="g", response="a dog", reference_objects=("dog",)),
        ChairItem(id="2", group_id="h", fields={"a": "b"}, response=None, reference_objects=None),
    ]
    assert make(([], [], [], [], [], [])) == []
    with pytest.raises(ValueError, match="too many values"):
        make((["1"], ["g"], [{}], texts, [()], [""]))


def test_many_values_with_checks_are_checked() -> None:
    make = makers_of(Checked, ("number", "twice"))
    assert make(([1, 2], [2, 4])) == [Checked(number=1), Checked(number=2, twice=4)]
    with pytest.raises(ValueError, match="negative"):
        make(([1, -1], [2, 4]))
