"""Claims that a text hedges, makes conditions of, or asks about."""

from __future__ import annotations

import pytest

from hallujudge.judge_service.extractors.rules.rule_extractors import RuleTripletExtractor
from hallujudge.metrics.framework.claims import Modality

STATED, HEDGED, CONDITIONAL = Modality.STATED, Modality.HEDGED, Modality.CONDITIONAL
_EXTRACTOR = RuleTripletExtractor()


def _modalities(text: str) -> dict[tuple[str, str, str], Modality | None]:
    return {claim.parts: claim.modality for claim in _EXTRACTOR.extract(text)}


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The man waits for a train.", {("man", "waits for", "train"): STATED}),
        ("The man might be waiting for a train.", {("man", "waiting for", "train"): HEDGED}),
        ("The woman is possibly a nurse.", {("woman", "is", "nurse"): HEDGED}),
        ("Perhaps the boy is hungry.", {("boy", "is", "hungry"): HEDGED}),
        ("The man appears to be smiling.", {("man", "is", "smiling"): HEDGED}),
        ("A dog appears in the corner.", {("dog", "appears in", "corner"): STATED}),
        ("It is possible that the lamp is broken.", {("lamp", "is", "broken"): HEDGED}),
        ("This suggests that the shop is closed.", {("shop", "is", "closed"): HEDGED}),
        ("The boy looks as if he is sleeping.",
         {("boy", "is", "present"): STATED, ("boy", "is", "sleeping"): HEDGED}),
        ("The cup holds tea or milk.",
         {("cup", "holds", "tea or milk"): HEDGED}),
        # a hedge ends with its clause
        ("It could be winter because snow covers the ground.",
         {("snow", "covers", "ground"): STATED}),
        ("The man might be tired, and the dog is asleep.",
         {("man", "is", "tired"): HEDGED, ("dog", "is", "asleep"): STATED}),
        ("The box holds fruit, possibly apples, and is closed.",
         {("box", "holds", "fruit"): STATED, ("box", "holds", "apples"): HEDGED,
          ("box", "is", "closed"): STATED}),
        ("A woman sits in what appears to be a train.", {("woman", "sits in", "train"): HEDGED}),
        ("The boxes appear to be toys, with one box holding pens.",
         {("boxes", "is", "toys"): HEDGED, ("box", "holding", "pens"): STATED}),
        ("It might be noon, suggested by the shadows.",
         {("shadows", "is", "present"): STATED}),
        # attempts
        ("The dog tries to catch a ball.", {("dog", "catch", "ball"): HEDGED}),
        ("A girl is trying to open a box.", {("girl", "open", "box"): HEDGED}),
        # conditions and their consequences
        ("If the rain stops, the children will play.",
         {("rain", "is", "stopping"): CONDITIONAL, ("children", "is", "playing"): CONDITIONAL}),
        ("The kite will fall if the wind stops.",
         {("kite", "is", "falling"): CONDITIONAL, ("wind", "is", "stopping"): CONDITIONAL}),
        ("The man watches a kite, and it will fall if the wind stops.",
         {("man", "watches", "kite"): STATED, ("kite", "is", "falling"): CONDITIONAL,
          ("wind", "is", "stopping"): CONDITIONAL}),
    ],
)  # fmt: skip
def test_modality(text: str, expected: dict[tuple[str, str, str], Modality]) -> None:
    assert _modalities(text) == expected


@pytest.mark.parametrize("text", ["Is the dog wearing a collar?", "What color is the bus?"])
def test_a_question_makes_no_claim(text: str) -> None:
    assert _modalities(f"{text} The cat is black.") == {("cat", "is", "black"): STATED}
