"""What the HTML page shows of claims, keywords and answers."""

from __future__ import annotations

import math
from typing import Any

import pytest
from msgspec import structs
from support import amber_samples
from support.event_hallusion_samples import VIDEOS
from support.hallusion_bench_samples import record
from support.messages import expected_message
from support.metric_runs import RUNS

from hallujudge.metrics import (
    Answer,
    AnswersEvidence,
    AnswersItem,
    AnswerVerdict,
    ItemResult,
    JsonValue,
    Outcome,
)
from hallujudge.metrics.framework.claims import ClaimVerdict, InvalidEntry, Triplet, Verdict
from hallujudge.metrics.mementos import (
    KeywordEvidence,
    MatchedKeyword,
    MementosEvidence,
    MementosItem,
)
from hallujudge.metrics.tri_he import TriHeEvidence, TriHeItem
from hallujudge.sdk import Client, InputOptions
from hallujudge.sdk.backends import BatchResult
from hallujudge.sdk.report.item_views import ItemView, Shade, view_item

ITEM = TriHeItem(
    id="q", question="What?", response="A man.", reference_triplets=(Triplet("man", "on", "bike"),)
)


def view_of(claim: ClaimVerdict, *judging: dict[str, JsonValue]) -> ItemView:
    evidence = TriHeEvidence(claims=(claim,), judging=judging)
    result = ItemResult(id="q", group_id="q", outcome=Outcome.SCORED, evidence=evidence)
    return view_item(ITEM, result)


def claim(*, judge: str, score: float | None, margin: float = 0.1) -> ClaimVerdict:
    return ClaimVerdict(
        triplet=Triplet("man", "rides", "bike"),
        verdict=Verdict.SUPPORTED,
        score=score,
        margin=margin,
        judge=judge,
    )


def reasons_of_claim(claim: ClaimVerdict) -> dict[str, str]:
    return dict(view_of(claim).claims[0].reasons)


@pytest.mark.parametrize(
    ("share", "told"),
    [(0.9, "90.0 %"), (0.5, "50.0 %"), (0.9999, "over 99.9 %"), (0.0001, "under 0.1 %")],
)
def test_a_language_model_states_the_probability_of_supported(share: float, told: str) -> None:
    reasons = reasons_of_claim(claim(judge="llm", score=share, margin=math.log(9)))
    assert reasons["token probability"] == f"supported: {told}"
    assert reasons["margin"] == "2.1972"
    assert "similarity" not in reasons


def test_a_small_judge_states_a_probability_too() -> None:
    reasons = reasons_of_claim(claim(judge="hhem", score=0.7))
    assert (reasons["probability"], reasons["margin"]) == ("supported: 70.0 %", "0.1000")
    assert {"token probability", "similarity"}.isdisjoint(reasons)


def test_a_matchers_score_is_a_similarity() -> None:
    reasons = reasons_of_claim(claim(judge="matcher", score=0.7))
    assert (reasons["similarity"], reasons["margin"]) == ("0.7000", "0.1000")
    assert {"token probability", "probability"}.isdisjoint(reasons)


def test_an_unknown_probability_is_not_shown() -> None:
    assert "token probability" not in reasons_of_claim(claim(judge="llm", score=None))


def test_judges_are_shown_in_order_with_what_they_declined() -> None:
    declined: JsonValue = {"REPLY_INVALID": {"claims": 2, "detail": "no last line"}}
    first: dict[str, JsonValue] = {"judge": "llama", "answered": 1, "declined": declined}
    second: dict[str, JsonValue] = {"judge": "gpt", "answered": 2, "declined": {}}
    told = dict(view_of(claim(judge="gpt", score=None), first, second).facts)
    assert told["judge 1"] == "llama: 1 verdict; none on 2 claims: REPLY_INVALID, no last line"
    assert told["judge 2"] == "gpt: 2 verdicts"


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


def test_invalid_keywords_are_listed_with_what_became_of_them() -> None:
    invalid = (
        InvalidEntry("reference_objects", "red plastic cup", "more than two words", "plastic cup"),
        InvalidEntry("predicted_behaviors", "7", "not a printable text"),
    )
    evidence = MementosEvidence(objects=OBJECTS, behaviors=BEHAVIORS, invalid=invalid)
    result = ItemResult(id="a", group_id="a", outcome=Outcome.SCORED, evidence=evidence)
    listing = view_item(MementosItem(id="a"), result).lists[-1]
    assert list(listing.entries) == [
        "red plastic cup → plastic cup (reference_objects: more than two words)",
        "7 → rejected (predicted_behaviors: not a printable text)",
    ]


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
        expected_message("sdk.report.object_views:objects-unknown-to-the-graph"),
    ]


def views_of(metric: str, **arguments: Any) -> dict[str, ItemView]:
    views: dict[str, ItemView] = {}

    def add(batch: BatchResult) -> None:
        for each, result in zip(batch.items, batch.results, strict=True):
            views[each.id] = view_item(each, result)

    with Client.embedded() as client:
        client.score(metric, on_batch=add, **arguments)
    return views


def texts(view: ItemView) -> dict[str, str]:
    return {passage.label: passage.text for passage in view.passages}


def shades(view: ItemView) -> list[Shade]:
    return [claim.shade for claim in view.claims]


def reasons_of_answer(evidence: AnswersEvidence) -> dict[str, str]:
    result = ItemResult(id="a", group_id="a", outcome=Outcome.SCORED, evidence=evidence)
    item = AnswersItem(id="a")
    return dict(view_item(item, result).claims[0].reasons)


def test_an_answer_of_hallusion_bench() -> None:
    row = record("VD_map_0_1_0", 0, gt_answer="0", gt_answer_details="It is to the north.")
    view = views_of("hallusion-bench", responses=[row])["VD_map_0_1_0"]
    assert texts(view) == {
        "Question": "Is it so?",
        "Response": "Yes.",
    }
    assert dict(view.facts)["reference"] == "It is to the north."
    [claim] = view.claims
    assert (claim.text, claim.shade) == ("answer: yes", Shade.WRONG)
    assert dict(claim.reasons)["label"] == "no"
    assert dict(claim.reasons)["parser"] == "vlmevalkit"
    assert dict(claim.reasons)["given verdict"] == "wrong"
    assert dict(view.facts)["visual input"] == "2"
    assert view.facets["category"] == "VD"


def test_a_chosen_caption_is_marked_among_the_options() -> None:
    options = {"A": "Three dance.", "B": "Four dance.", "C": "Two dance."}
    item = AnswersItem(id="a", answers=(Answer(response="B", label="C", options=options),))
    verdict = AnswerVerdict("", "B", "C", correct=False, how="published")
    evidence = AnswersEvidence(answers=(verdict,))
    result = ItemResult(id="a", group_id="a", outcome=Outcome.SCORED, evidence=evidence)
    view = view_item(item, result)
    assert texts(view) == {
        "Response": "B",
        "A": "Three dance.",
        "B": "Four dance.",
        "C": "Two dance.",
    }
    marks = {passage.label: [mark.shade for mark in passage.marks] for passage in view.passages}
    assert marks == {"Response": [Shade.WRONG], "A": [], "B": [Shade.WRONG], "C": []}
    assert view.facts == []


def test_judges_of_answers_and_descriptions_tell_their_token_probability() -> None:
    wrong = AnswerVerdict("", "wrong", "no", False, "llm")
    answered = AnswersEvidence(answers=(wrong,), probability=0.2)
    verdict = AnswerVerdict("description", "yes", "yes", True, "judgement")
    described = AnswersEvidence(answers=(verdict,), probability=0.75)
    assert reasons_of_answer(answered)["token probability"] == "right: 20.0 %"
    assert reasons_of_answer(described)["token probability"] == "right: 75.0 %"
    assert "token probability" not in reasons_of_answer(
        structs.replace(described, probability=None)
    )


def test_a_video_of_event_hallusion() -> None:
    view = views_of("event-hallusion", responses=VIDEOS)["entire_0"]
    assert texts(view) == {
        "Question, 1": "Is it so?",
        "Response, 1": "No. It is not.",
        "Question, 2": "Is it so?",
        "Response, 2": "Not sure",
        "description": "A man walks a dog.",
    }
    assert dict(view.facts)["judgement"] == "**Yes**. It is."
    assert dict(view.facts)["reference"] == "A man walks a dog."
    assert set(shades(view)) == {Shade.RIGHT}


def test_a_description_that_nobody_judged_has_no_verdict() -> None:
    view = views_of("event-hallusion", responses=VIDEOS)["interleave_1"]
    assert texts(view)["description"] == "A man walks a dog."
    assert shades(view) == [Shade.WRONG]


@pytest.mark.parametrize(
    ("options", "told"), [({"A": "a cup", "B": "a bag"}, "B: a bag"), ({}, "B")]
)
def test_a_question_of_infact_tells_the_right_answer(options: dict[str, str], told: str) -> None:
    verdict = AnswerVerdict("base", "A", "B", correct=False, how="bare")
    evidence = AnswersEvidence(answers=(verdict,))
    result = ItemResult(id="a", group_id="a", outcome=Outcome.SCORED, evidence=evidence)
    answer = Answer(response="A", label="B", name="base", options=options)
    [listing] = view_item(AnswersItem(id="a", answers=(answer,)), result).lists
    assert (listing.label, list(listing.entries)) == ("Right answer", [told])


def test_a_pair_of_video_hallucer() -> None:
    runs = {
        "basic": {"video": "a.mp4", "question": "A dog?", "answer": "yes", "predict": "No."},
        "hallucination": {"video": "b.mp4", "question": "A cat?", "answer": "no", "predict": "No."},
    }
    view = views_of("video-hallucer", responses={"temporal": [runs]})["temporal/0"]
    assert texts(view) == {
        "Question, basic": "A dog?",
        "Response, basic": "No.",
        "Question, hallucination": "A cat?",
        "Response, hallucination": "No.",
    }
    assert shades(view) == [Shade.WRONG, Shade.RIGHT]
    assert (view.wrong, view.total) == (1, 2)


def test_entailed_lines_of_argus_tell_their_places_from_the_first_on() -> None:
    with Client.embedded() as client:
        report = client.score("argus", **RUNS["argus"]())
    shown = view_item(report.items[1].item, report.items[1].result)
    places = [dict(claim.reasons)["placed at"] for claim in shown.claims]
    assert places == ["1: A man takes a small key out.", "2: He opens a box. He sings a song.", ""]


@pytest.mark.parametrize("word", ["puppy", "Puppys"])
def test_words_of_an_amber_description_are_marked(word: str) -> None:
    rows = [{"id": 1, "response": f"A man near a {word}.", "nouns": ["man", "puppy"]}]
    inputs = InputOptions(
        allow_missing=True,
        own={"associations": amber_samples.ASSOCIATIONS, "safe_words": amber_samples.SAFE},
    )
    arguments = {"responses": rows, "references": amber_samples.ANNOTATIONS, "inputs": inputs}
    [passage] = views_of("amber", **arguments)["1"].passages
    marked = {passage.text[m.start : m.end]: m.shade for m in passage.marks}
    assert marked == {"man": Shade.RIGHT, word: Shade.WRONG}
