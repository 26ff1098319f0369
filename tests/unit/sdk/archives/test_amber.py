"""AMBER's archives: what is joined, and what is refused by name."""

from __future__ import annotations

import dataclasses
from typing import Any

import pytest
from support.amber_samples import ANNOTATIONS, INPUTS, NOUNS, RESPONSES, RUN
from support.messages import expected_message

from hallujudge.metrics import Report
from hallujudge.metrics.amber.descriptions import AmberItem
from hallujudge.metrics.answers.closed_questions import AnswersItem
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
    return dataclasses.replace(INPUTS, own={**INPUTS.own, **changed})


def test_nouns_annotations_and_images_are_joined() -> None:
    found = {item.id: item for item in items(RESPONSES)}
    first = found["1"]
    assert first.nouns == ("man", "shoe", "puppy"), "field is not in the association table"
    assert first.objects[0].associated == ("man", "people")
    assert (first.group_id, found["4"].group_id) == ("1.jpg", "1.jpg")
    assert [found[str(n)].answers[0].fields["kind"] for n in range(3, 9)] == [
        *("existence", "state", "number", "action", "relation", "relation")
    ]


def test_questions_are_answers_and_descriptions_have_objects() -> None:
    types = [type(item) for item in sorted(items(RESPONSES), key=lambda item: int(item.id))]
    assert types == [AmberItem] * 2 + [AnswersItem] * 6


def test_nouns_may_be_in_the_responses() -> None:
    (item, _) = items(NOUNS, without(nouns=None))
    assert item.nouns == ("man", "shoe", "puppy")
    assert item.response is None


def test_questions_alone_need_no_tables_and_without_images_a_note_says_so() -> None:
    source = read_items("amber", RESPONSES[2:], ANNOTATIONS)
    assert len(source) == 6
    assert "give the questions" in source.notes[0]


def test_with_own_annotations_only_what_was_answered_is_scored() -> None:
    own = [dict(entry, id=n) for n in range(1, 61) for entry in ANNOTATIONS[1:2]]
    answers = [{"id": n, "nouns": ["tree"]} for n in (1, 2)]
    inputs = without(nouns=None, questions=None)
    run = {"responses": answers, "references": own, "inputs": inputs}
    report = scored(**run)
    assert (report.coverage.items, report.coverage.unscored) == (2, 0)
    _, note = read_items("amber", answers, own, options=inputs).notes
    assert note.startswith("58 of the 60 items in the references have no answer")
    assert "own=dict(questions=…)" in note
    allowed = dataclasses.replace(inputs, allow_missing=True)
    assert scored(**{**run, "inputs": allowed}).coverage.unscored == 58


def test_questions_that_were_asked_need_an_answer() -> None:
    own = [*ANNOTATIONS, {"id": 9, "type": "relation", "truth": "no"}]
    assert len(items(RESPONSES, annotations=own)) == 8, "the last one was not asked"
    with pytest.raises(ArchiveError, match="have no answer: 8"):
        items(RESPONSES[:-1], annotations=own)


@pytest.mark.parametrize(
    ("responses", "changed", "named"),
    [
        ([*RESPONSES, RESPONSES[2]], {}, "answered more than once: 3"),
        ([*RESPONSES, {"id": 99, "response": "No"}], {}, "references lack: 99"),
        (RESPONSES, {"nouns": [*NOUNS, NOUNS[0]]}, "duplicate nouns: 1"),
        (
            RESPONSES,
            {"nouns": [{"id": 1, "nouns": "man"}]},
            r"not a list of words \(found 'man'",
        ),
        (RESPONSES, {"associations": None}, "association table and safe words"),
        (RESPONSES, {"associations": {"man": []}}, r"not in the association table: 1 \('person"),
        ([{"id": 3, "said": "No"}], {}, "record 0: no key for the answer: tried response"),
        ([], {}, "archive of answers has no items"),
    ],
)
def test_what_is_wrong_is_named(responses: Any, changed: dict[str, Any], named: str) -> None:
    with pytest.raises(ArchiveError, match=named):
        items(responses, without(**changed))


def changed_third(changed: dict[str, Any]) -> list[dict[str, Any]]:
    return [*ANNOTATIONS[:2], {**ANNOTATIONS[2], **changed}, *ANNOTATIONS[3:]]


def test_annotations_that_are_wrong_are_named() -> None:
    odd = {"unknown type": {"type": "other"}, "neither yes nor no": {"truth": "maybe"}}
    for fault, changed in odd.items():
        with pytest.raises(ArchiveError, match=rf"{fault}: 3 \("):
            items(RESPONSES, annotations=changed_third(changed))
    with pytest.raises(
        ArchiveError, match=expected_message("sdk.archives.amber:or-give-what-records-lack")
    ):
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


def kit_row(entry: dict[str, Any], answer: str) -> dict[str, Any]:
    """Return a row of VLMEvalKit's table."""
    return {
        "index": entry["id"],
        "question": "Is it so?",
        "answer": str(entry["truth"]).capitalize(),
        "category": entry["type"],
        "image_path": f"{entry['id'] % 2}.jpg",
        "prediction": answer,
    }


def test_tables_of_vlmevalkit_bring_their_labels() -> None:
    rows = [kit_row(entry, "Yes") for entry in ANNOTATIONS[2:]]
    source = read_items("amber", rows, None)
    found = [item for item in source if isinstance(item, AnswersItem)]
    assert [item.label for item in found] == ["no", "yes", "no", "no", "no", "yes"]
    assert {item.group_id for item in found} == {"0.jpg", "1.jpg"}
    assert source.notes == ()
    with Client.embedded() as client:
        ours = client.score("amber", responses=rows)
        direct = client.score(
            "amber",
            responses=[{"id": entry["id"], "response": "Yes"} for entry in ANNOTATIONS[2:]],
            references=ANNOTATIONS,
        )
    assert {n: s.value for n, s in ours.scores.items()} == {
        n: s.value for n, s in direct.scores.items()
    }


def lmms_row(position: int, counts: tuple[float, float]) -> dict[str, Any]:
    """Return a sample of lmms-eval, whose counters begin at 0.001."""
    counters = {"chair_score": 0.001, "safe_cover_num": counts[0], "hallu_cover_num": counts[1]}
    scores = dict.fromkeys(("amber_chair", "amber_cover", "amber_hal", "amber_cog"), counters)
    return {"doc_id": position, "target": "", "filtered_resps": ["A man."], **scores}


def test_samples_of_lmms_eval_are_joined_by_position_if_their_counters_agree() -> None:
    rows = [lmms_row(1, (1.001, 1.001)), lmms_row(0, (5.001, 2.001))]
    found = items(rows, without(nouns=None))
    assert [(item.id, item.response, item.group_id) for item in found] == [
        ("2", "A man.", "2.jpg"),
        ("1", "A man.", "1.jpg"),
    ]
    with pytest.raises(
        ArchiveError, match=expected_message("sdk.archives.amber:counts-of-objects-differ-in-all")
    ):
        items([rows[0], lmms_row(0, (4.001, 2.001))], without(nouns=None))


def test_samples_of_lmms_eval_with_their_document() -> None:
    doc = {"id": 2, "task_type": "generative", "truth": ["tree"], "hallu": ["man"]}
    rows = [{**lmms_row(0, (1.0, 1.0)), "doc": doc}]
    (item,) = items(rows, without(nouns=None), annotations=None)
    assert (item.id, [entry.word for entry in item.objects]) == ("2", ["tree"])


@pytest.mark.parametrize("name", ["safe_words", "associations"])
@pytest.mark.parametrize("value", [7, ["shoe", None], True])
def test_a_table_of_another_kind_is_refused(name: str, value: Any) -> None:
    with pytest.raises(ArchiveError, match=r"no texts, but None; give|of type .* is no file; give"):
        items(RESPONSES, without(**{name: value}))
