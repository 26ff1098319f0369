"""AMBER's archives: what is joined, and what is refused by name."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from support.amber_samples import ANNOTATIONS, INPUTS, NOUNS, RESPONSES, RUN

from hallujudge.metrics import Report
from hallujudge.metrics.amber.items import AmberItem
from hallujudge.sdk import Client, InputOptions, read_items
from hallujudge.sdk.errors import ArchiveError


def items(
    responses: Any, inputs: InputOptions = INPUTS, annotations: Any = ANNOTATIONS
) -> list[AmberItem]:
    return list(read_items("amber", responses, annotations, options=inputs))  # type: ignore[arg-type]  # the family's items


def scored(**more: Any) -> Report:
    with Client.embedded() as client:
        return client.score("amber", **{**RUN, **more})


def without(**changed: Any) -> InputOptions:
    return dataclasses.replace(INPUTS, **changed)


def test_nouns_annotations_and_images_are_joined() -> None:
    found = {item.id: item for item in items(RESPONSES)}
    first = found["1"]
    assert first.nouns == ("man", "shoe", "puppy"), "field is not in the association table"
    assert first.objects[0].associated == ("man", "people")
    assert (first.group_id, found["4"].group_id) == ("1.jpg", "1.jpg")
    assert [found[str(n)].kind for n in range(3, 9)] == [
        *("existence", "state", "number", "action", "relation", "relation")
    ]


def test_nouns_may_stand_in_the_responses() -> None:
    (item, _) = items(NOUNS, without(nouns=None))
    assert item.nouns == ("man", "shoe", "puppy")
    assert item.response is None


def test_questions_alone_need_no_tables_and_without_images_a_note_says_so() -> None:
    source = read_items("amber", RESPONSES[2:], ANNOTATIONS)
    assert len(source) == 6
    assert "give the questions" in source.notes[0]


@pytest.mark.parametrize(
    ("responses", "changed", "named"),
    [
        ([*RESPONSES, RESPONSES[2]], {}, "duplicate ids in the responses: 3"),
        (RESPONSES[:-1], {}, "items have no answer: 8"),
        ([*RESPONSES, {"id": 99, "response": "No"}], {}, "references lack: 99"),
        (RESPONSES, {"nouns": [*NOUNS, NOUNS[0]]}, "duplicate ids in the nouns: 1"),
        (RESPONSES, {"nouns": [{"id": 1, "nouns": "man"}]}, "'nouns' must be a list of words"),
        (RESPONSES, {"associations": None}, "association table and safe words"),
        (RESPONSES, {"associations": {"man": []}}, "not in the association table: dog, person"),
        ([{"id": 3, "said": "No"}], {}, "record 0: no key for the response"),
        ([], {}, "responses have no records"),
    ],
)
def test_what_is_wrong_is_named(responses: Any, changed: dict[str, Any], named: str) -> None:
    with pytest.raises(ArchiveError, match=named):
        items(responses, without(**changed))


def test_annotations_that_are_wrong_are_named() -> None:
    for odd in ({"type": "other"}, {"truth": "maybe"}):
        with pytest.raises(ArchiveError, match=r"unknown type.*: 3 \("):
            items(RESPONSES, annotations=[*ANNOTATIONS[:2], {**ANNOTATIONS[2], **odd}])
    with pytest.raises(ArchiveError, match="give it as references"):
        items(RESPONSES, annotations=None)


def test_what_cannot_be_scored_is_unscored_with_its_reason() -> None:
    report = scored(variant="corrected")
    assert report.coverage.reasons == {"ANSWER_UNPARSED": 1, "RESPONSE_MISSING": 1}
    report = scored(inputs=without(nouns=None))
    assert report.coverage.reasons == {"KEYWORDS_MISSING": 1, "RESPONSE_MISSING": 2}


def test_kinds_are_groups() -> None:
    report = scored(group_by=["kind"])
    assert set(report.groups["kind"]) == {
        *("generative", "existence", "state", "number", "action", "relation")
    }
