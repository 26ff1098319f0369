"""What the HTML page shows of Mementos' keywords."""

from __future__ import annotations

from hallujudge.metrics import ItemResult, Outcome
from hallujudge.metrics.mementos import (
    KeywordEvidence,
    MatchedKeyword,
    MementosEvidence,
    MementosItem,
)
from hallujudge.sdk.report.item_views import ItemView, Shade, view_item

OBJECTS = KeywordEvidence(
    reference=("man", "wall"),
    predicted=("man", "dog"),
    matched=(MatchedKeyword("man", "man"),),
    hallucinated=("dog",),
    missed=("wall",),
    unknown=("wall",),
    reference_spans=((2, 5), (15, 19)),
    predicted_spans=((2, 5), (13, 16)),
)
BEHAVIORS = KeywordEvidence(
    reference=("paint",), predicted=("feed",), hallucinated=("feed",), missed=("paint",)
)


def shown() -> ItemView:
    evidence = MementosEvidence(domain="comics", objects=OBJECTS, behaviors=BEHAVIORS)
    result = ItemResult(id="a", group_id="a", outcome=Outcome.SCORED, evidence=evidence)
    item = MementosItem(
        id="a", response="A man feeds a dog.", reference="A man paints a wall.", domain="comics"
    )
    return view_item(item, result)


def test_missed_words_are_marked_in_the_human_description() -> None:
    passage = shown().passages[1]
    marked = {passage.text[m.start : m.end]: m.shade for m in passage.marks}
    assert marked == {"man": Shade.RIGHT, "wall": Shade.MISSED}


def test_claims_tell_objects_from_behaviours() -> None:
    claims = [(claim.text, claim.to_json().get("kind")) for claim in shown().claims]
    assert claims == [("man", "object"), ("dog", "object"), ("feed", "behaviour")]


def test_what_was_made_up_comes_before_what_was_missed() -> None:
    told = [listing.label for listing in shown().lists if list(listing.entries)]
    assert told == [
        "Hallucinated objects",
        "Hallucinated behaviours",
        "Missed objects",
        "Missed behaviours",
        "Objects unknown to the graph",
    ]
