"""Triplets parsed from the values of files."""

from __future__ import annotations

import pickle

import pytest

from hallujudge.metrics.framework.claims import (
    MAX_PART_CHARS,
    Triplet,
    TripletError,
    WrittenTriplet,
    reference_of,
    triplet_of,
)


@pytest.mark.parametrize(
    "value",
    [
        ["man", "riding", "horse"],
        ("man", " riding", "horse "),
        "(man, riding, horse)",
        "man, riding, horse",
        "( man ,riding , horse )",
        "(man,riding,horse)",
    ],
)
def test_three_parts_are_a_triplet(value: object) -> None:
    assert triplet_of(value) == Triplet("man", "riding", "horse")
    assert reference_of(value) == Triplet("man", "riding", "horse")


def test_commas_inside_parts_stay() -> None:
    assert triplet_of(["red, white shirt", "is", "old"]).subject == "red, white shirt"
    assert triplet_of("(crowd, of, 1,000 people)").object == "1,000 people"


@pytest.mark.parametrize(
    ("value", "problem"),
    [
        (["man", "horse"], "it has 2 parts"),
        (["a", "b", "c", "d"], "it has 4 parts"),
        ("(a, b, c, d)", "it has 4 parts"),
        ("man", "it has 1 part;"),
        ([], "it has 0 parts"),
        (["a", "", "c"], "part 2 is empty"),
        (["a", "b", " \n"], "part 3 is empty"),
        (["a", 7, "c"], "part 2 is a number, not a text"),
        (["a", None, "c"], "part 2 is null, not a text"),
        ([["a"], "b", "c"], "part 1 is a list, not a text"),
        (None, "it is null"),
        ({"a": 1}, "it is an object"),
        (3.5, "it is a number"),
        (["a" * (MAX_PART_CHARS + 1), "b", "c"], "part 1 is longer than"),
    ],
)
def test_anything_else_is_refused_with_what_is_wrong(value: object, problem: str) -> None:
    with pytest.raises(TripletError, match="is not a triplet") as caught:
        triplet_of(value)
    assert problem in str(caught.value)
    assert "write three texts" in str(caught.value)


def test_messages_stay_short_however_large_the_value_is() -> None:
    for value in ("x" * 1_000_000, ["x" * 1_000_000] * 4, [[0] * 1_000_000] * 2):
        with pytest.raises(TripletError) as caught:
            triplet_of(value)
        assert len(str(caught.value)) < 400


def test_references_may_have_a_comma_too_many() -> None:
    value = "(woman, reason for attention, curiosity, photographer)"
    assert reference_of(value) == Triplet(
        "woman", "reason for attention", "curiosity, photographer"
    )
    with pytest.raises(TripletError, match="4 parts"):
        triplet_of(value)
    with pytest.raises(TripletError, match="4 parts"):
        reference_of(["a", "b", "c", "d"])
    with pytest.raises(TripletError, match="2 parts"):
        reference_of("(a, b)")


def test_a_slip_of_the_file_is_kept_beside_the_parts() -> None:
    slip = reference_of("(bus, is,stopped)")
    assert slip == Triplet("bus", "is", "stopped")
    assert isinstance(slip, WrittenTriplet)
    assert slip.written == "(bus, is,stopped)"
    assert pickle.loads(pickle.dumps(slip)).written == slip.written
    # White space changes no text that a model sees.
    assert not isinstance(reference_of("(bus, is , stopped)"), WrittenTriplet)
    assert Triplet("bus", "is", "stopped").written == "(bus, is, stopped)"
