"""Answers, claims and scene graphs for Tri-HE, from every layout."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message

from hallujudge.metrics import TriHeItem
from hallujudge.sdk.archives import InputOptions, read_items
from hallujudge.sdk.errors import ArchiveError

GRAPH = {"7": {"triplets": ["(dog, on, sofa)", ["cat", "is", "black, white"]], "object": ["dog"]}}
ANSWER = {"image_id": 7, "question": "What is there?", "response": "A dog on a sofa."}
CLAIMS = {"image_id": 7, "question": "What is there?", "claims": [["dog", "on", "sofa"]]}


def read(responses: object, references: object = GRAPH, **options: Any) -> list[TriHeItem]:
    source = read_items(
        "tri-he",
        responses,  # type: ignore[arg-type]  # every layout that the cases have
        references,  # type: ignore[arg-type]  # as above
        options=InputOptions(**options),
    )
    items = list(source)
    assert len(items) == len(source)
    return items  # type: ignore[return-value]  # this metric's items


def test_answers() -> None:
    (item,) = read([ANSWER])
    assert (item.id, item.group_id) == ("7: What is there?", "7")
    assert (item.question, item.response, item.claims) == (
        "What is there?",
        "A dog on a sofa.",
        None,
    )
    assert item.reference_triplets == (("dog", "on", "sofa"), ("cat", "is", "black, white"))
    assert item.reference_objects == ("dog",)


def test_claims() -> None:
    (item,) = read([CLAIMS], own={"claims_only": True})
    assert (item.response, item.claims) == (None, (("dog", "on", "sofa"),))
    with pytest.raises(ArchiveError, match="no key 'claims'"):
        read([ANSWER], own={"claims_only": True})


def test_no_claims_are_not_the_same_as_none_extracted() -> None:
    (item,) = read([{**CLAIMS, "claims": []}])
    assert item.claims == ()


def test_the_papers_own_file(tmp_path: Path) -> None:
    content = {
        "7": {
            "instance": [
                {
                    "question": "q1",
                    "answer": "a1",
                    "triplet": [],
                    "llava": "l1",
                    "llava_triplets": ["(dog, on, sofa)"],
                },
                {"question": "q2", "answer": "a2", "triplet": [], "llava": "l2"},
            ],
            **GRAPH["7"],
        }
    }
    path = tmp_path / "tri-he.json"
    path.write_text(json.dumps(content))
    answers = read(path, path)
    assert [item.response for item in answers] == ["a1", "a2"]
    noted = read_items("tri-he", path, path).notes
    assert any(
        expected_message("sdk.archives.tri_he:are-tri-hes-own-name-model") in n
        and "one of llava" in n
        for n in noted
    )
    model = read(path, path, own={"model_key": "llava"})
    assert [(item.response, item.claims) for item in model] == [("l1", None), ("l2", None)]
    claims = read(path, path, own={"model_key": "llava", "claims_only": True})
    assert [(item.response, item.claims) for item in claims] == [
        ("l1", (("dog", "on", "sofa"),)),
        ("l2", None),
    ]
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.archives.tri_he:inputoptionsmodel-key-one-of-answer-llava"),
    ):
        read(path, path, own={"model_key": "gpt"})


def test_claims_alone_are_not_answers(tmp_path: Path) -> None:
    instance = {"question": "q1", "llava_triplets": ["(dog, on, sofa)"]}
    path = tmp_path / "tri-he.json"
    path.write_text(json.dumps({"7": {"instance": [instance], **GRAPH["7"]}}))
    with pytest.raises(
        ArchiveError,
        match=expected_message(
            "sdk.archives.tri_he:give-the-file-with-inputoptionsclaims-only-true"
        ),
    ):
        read(path, path, own={"model_key": "llava"})
    (item,) = read(path, path, own={"model_key": "llava", "claims_only": True})
    assert item.claims == (("dog", "on", "sofa"),)


def test_references_may_stand_in_the_answers() -> None:
    (item,) = read([{**ANSWER, "triplets": ["(dog, on, sofa)"]}], None)
    assert item.reference_triplets == (("dog", "on", "sofa"),)
    with pytest.raises(ArchiveError, match="scene graph"):
        read([ANSWER], None)


def test_references_as_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "graphs.jsonl"
    path.write_text('{"image_id": "7", "triplets": [["dog", "on", "sofa"]], "objects": ["cat"]}\n')
    (item,) = read([ANSWER], path)
    assert item.reference_objects == ("cat",)


def test_references_as_one_object_of_lists(tmp_path: Path) -> None:
    path = tmp_path / "graphs.json"
    path.write_text('{"7": [["dog", "on", "sofa"]], "8": ["(cat, is, black)"]}')
    for references in (path, json.loads(path.read_text())):
        (item,) = read([ANSWER], references)
        assert item.reference_triplets == (("dog", "on", "sofa"),)
    path.write_text('{"7": [["dog", "on"]]}')
    with pytest.raises(ArchiveError, match=r"\['7'\], triplets\[0\].*2 parts"):
        read([ANSWER], path)


def test_a_record_may_differ_from_the_first() -> None:
    items = read([CLAIMS, {**ANSWER, "question": "q"}, {**CLAIMS, "question": "r"}])
    assert [(item.claims is None, item.response) for item in items] == [
        (False, None),
        (True, ANSWER["response"]),
        (False, None),
    ]
    items = read([ANSWER, {**CLAIMS, "question": "q", "response": None}])
    assert [item.claims for item in items] == [None, (("dog", "on", "sofa"),)]


@pytest.mark.parametrize(
    ("claims", "said"),
    [
        ([["dog", "on"]], r"claims\[0\].*2 parts"),
        ([["dog", "on", "sofa"], ["a", "b", "c", "d"]], r"claims\[1\].*4 parts"),
        ([["dog", "", "sofa"]], "part 2 is empty"),
        ([["dog", "on", 3]], "part 3 is a number, not a text"),
        (["(dog, on, sofa, table)"], "4 parts"),
        ([None], "null is not a triplet: it is null"),
        ("dog on sofa", "list of triplets"),
    ],
)
def test_bad_triplets_are_named(claims: object, said: str) -> None:
    with pytest.raises(ArchiveError, match=said):
        read([{**CLAIMS, "claims": claims}])


def test_joins() -> None:
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.archives.tri_he:without-scene-graph-none-of-the-images"),
    ):
        read([{**ANSWER, "image_id": 8}])
    (item,) = read([{**ANSWER, "image_id": 8}], allow_unknown=True)
    assert item.reference_triplets is None
    with pytest.raises(ArchiveError, match=r"duplicate answers, .*question: 7: What is there"):
        read([ANSWER, ANSWER])
    twice = read([ANSWER, ANSWER], allow_duplicates=True)
    assert [item.id for item in twice] == ["7: What is there?", "7: What is there?#2"]
    with pytest.raises(
        ArchiveError,
        match=expected_message("sdk.archives.tri_he:duplicate-images-in-the-references"),
    ):
        read([ANSWER], [{"image_id": 7, "triplets": []}, {"image_id": "7", "triplets": []}])
