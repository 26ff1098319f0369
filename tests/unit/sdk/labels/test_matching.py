"""Labels joined with the claims of a run."""

from __future__ import annotations

from dataclasses import replace

import pytest

from hallujudge.sdk.labels import Label, MatchedLabels, match_labels
from hallujudge.sdk.labels.verdicts import DecidedClaim, DecidedItem

ITEM = DecidedItem(
    id="1",
    cluster="1",
    statistics={},
    claims=(
        DecidedClaim(index=0, text="dog", hallucinated=False, span=(2, 5)),
        DecidedClaim(index=1, text="hot dog", hallucinated=True, span=(9, 16)),
    ),
    fields={},
    response="A dog on hot dogs.",
)


def matched(*labels: Label) -> MatchedLabels:
    return match_labels(labels, [ITEM])


def claim(index: int, wrong: bool | None, annotator: str = "", text: str = "") -> Label:
    return Label(item="1", claim=index, hallucinated=wrong, annotator=annotator, text=text)


def test_most_annotators_decide() -> None:
    found = matched(
        *(claim(0, wrong, name) for wrong, name in ((True, "a"), (True, "b"), (False, "c")))
    )
    assert dict(found.claims) == {("1", 0): True}
    assert found.annotators == ("a", "b", "c")


def test_without_a_majority_a_claim_has_no_label() -> None:
    found = matched(claim(0, True, "a"), claim(0, False, "b"), claim(1, None, "a"))
    assert (dict(found.claims), found.unsure) == ({}, 2)


def test_marked_words_label_the_claims_that_they_touch() -> None:
    words = [((0, 1), False), ((2, 5), False), ((9, 12), False), ((13, 17), True)]
    found = matched(*(Label(item="1", span=span, hallucinated=wrong) for span, wrong in words))
    assert dict(found.claims) == {("1", 0): False, ("1", 1): True}
    assert dict(found.items) == {"1": True}


def test_an_item_with_all_claims_labelled_has_a_label() -> None:
    assert dict(matched(claim(0, False), claim(1, False)).items) == {"1": False}
    assert dict(matched(claim(0, False)).items) == {}


def test_a_label_of_the_item_comes_before_those_of_its_claims() -> None:
    found = matched(claim(0, False), claim(1, False), Label(item="1", hallucinated=True))
    assert dict(found.items) == {"1": True}


def test_labels_of_other_items_claims_or_texts_are_counted() -> None:
    found = matched(
        Label(item="2", claim=0, hallucinated=True),
        claim(7, True),
        claim(0, True, text="cat"),
        claim(1, True, text="hot dog"),
    )
    assert (dict(found.claims), found.unknown) == ({("1", 1): True}, 3)


def test_sheets_change_texts_a_little() -> None:
    assert matched(claim(0, True, text="'dog")).claims == {("1", 0): True}


def test_alpha_is_over_claims_with_two_labels() -> None:
    same = [claim(index, bool(index), name) for index in (0, 1) for name in "ab"]
    assert matched(*same).alpha == pytest.approx(1.0)
    assert matched(claim(0, True, "a")).alpha is None


def test_ids_that_look_like_formulas_are_those_of_the_sheet() -> None:
    items = [replace(ITEM, id=name) for name in ("=1", "-2", "'-2")]
    labels = [Label(item=name, claim=0, hallucinated=True) for name in ("'=1", "'-2", "-2")]
    found = match_labels(labels, items)
    assert set(found.claims) == {("=1", 0), ("'-2", 0), ("-2", 0)}
    assert found.unknown == 0
