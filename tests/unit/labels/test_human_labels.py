"""Files of human labels, and labels joined with the claims of a run."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

import pytest
from support.messages import expected_message

from hallujudge.labels.human_labels import (
    Label,
    MatchedLabels,
    find_labels,
    match_labels,
    read_labels,
)
from hallujudge.labels.verdicts import DecidedClaim, DecidedItem
from hallujudge.sdk.errors import ArchiveError


def written(path: Path, *lines: object) -> Path:
    path.write_text("".join(f"{json.dumps(line)}\n" for line in lines), encoding="utf-8")
    return path


def test_the_pages_export_is_about_its_verdicts(tmp_path: Path) -> None:
    def line(verdict: str, label: str, claim: int) -> dict[str, object]:
        return {
            "item": "42", "claim": claim, "text": "dog", "verdict": verdict, "label": label,
            "annotator": "ann", "signature": "chair|x",
        }  # fmt: skip

    path = written(
        tmp_path / "labels.jsonl",
        line("not_supported", "agree", 0),
        line("not_supported", "disagree", 1),
        line("supported", "agree", 2),
        line("supported", "disagree", 3),
        line("supported", "unsure", 4),
        line("unscored", "disagree", 5),
    )
    found = read_labels(path)
    assert [label.hallucinated for label in found] == [True, False, False, True, None, None]
    assert found[0] == Label(
        item="42", hallucinated=True, claim=0, text="dog", annotator="ann", signature="chair|x"
    )


def test_a_table_has_a_label_in_each_row(tmp_path: Path) -> None:
    path = tmp_path / "labels.csv"
    path.write_text(
        "item,claim,start,end,label,annotator\n"
        "1,0,,,supported,ann\n1,,2,5,hallucinated,bob\n2,,,,unsure,ann\n",
        encoding="utf-8",
    )
    assert read_labels(path) == [
        Label(item="1", hallucinated=False, claim=0, annotator="ann"),
        Label(item="1", hallucinated=True, span=(2, 5), annotator="bob"),
        Label(item="2", hallucinated=None, annotator="ann"),
    ]


def test_marked_words_label_words_and_the_item(tmp_path: Path) -> None:
    path = written(
        tmp_path / "hat.jsonl",
        {
            "id": "a",
            "caption": "A dog  on a dog.",
            "words": [["A", False], ["dog", False], ["on", False], ["a", True], ["dog.", True]],
            "contains_hallucination": True,
        },
    )
    *words, whole = read_labels(path)
    assert [label.span for label in words] == [(0, 1), (2, 5), (7, 9), (10, 11), (12, 16)]
    assert [label.hallucinated for label in words] == [False, False, False, True, True]
    assert whole == Label(item="a", hallucinated=True)


@pytest.mark.parametrize(
    ("line", "item"),
    [
        ({"id": "16903", "caption": "A cat."}, "16903"),
        ({"id": "uuid", "caption": "A dog."}, "7"),
        ({"id": "uuid", "caption": "A bird.", "image_id": 9}, "9#2"),
        ({"id": "uuid", "caption": "A bird."}, "uuid"),
        ({"id": "uuid", "caption": "A fish."}, "uuid"),
    ],
)
def test_marked_words_without_an_items_id_label_the_same_response(
    tmp_path: Path, line: dict[str, object], item: str
) -> None:
    items = [
        DecidedItem(id=name, cluster=image, statistics={}, claims=(), fields={}, response=text)
        for name, image, text in (
            ("7", "7", "A dog."),
            ("8", "8", "A bird."),
            ("9#2", "9", "A bird."),
            ("16903", "16903", ""),
        )
    ]
    marked = {**line, "words": [["A", False]]}
    found = read_labels(written(tmp_path / "hat.jsonl", marked), items=items)
    assert {label.item for label in found} == {item}


def test_a_later_label_of_one_annotator_replaces_an_earlier_one(tmp_path: Path) -> None:
    lines = [
        {"item": 1, "claim": 0, "label": label, "annotator": annotator}
        for label, annotator in (("supported", "a"), ("not_supported", "b"), ("not_supported", "a"))
    ]
    one, other = written(tmp_path / "1.jsonl", *lines[:2]), written(tmp_path / "2.jsonl", lines[2])
    assert [(label.annotator, label.hallucinated) for label in read_labels(one, other)] == [
        ("a", True),
        ("b", True),
    ]


def test_what_is_written_is_read_again(tmp_path: Path) -> None:
    labels = [
        Label(item="1", hallucinated=True, claim=3, text="dog", annotator="a", signature="s|t"),
        Label(item="1", hallucinated=False, span=(0, 4)),
        Label(item="2", hallucinated=None),
    ]
    path = written(tmp_path / "labels.jsonl", *(label.to_json() for label in labels))
    assert read_labels(path) == labels


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"item": "1"}, "line 1: no 'label'"),
        ({"Item": "1", "label": "supported"}, "line 1: no 'item', found Item, label; a label has"),
        ({"item": "1", "label": "wrong"}, 'the label "wrong" is unknown; use supported'),
        ({"item": "1", "label": "agree"}, "'agree' needs the verdict it is about"),
        ({"item": "1", "label": "supported", "claim": -1}, "claim is -1; give a whole number"),
        ({"item": "1", "label": "supported", "claim": "x"}, 'claim is "x"; give a whole number'),
        ({"item": "1", "label": "supported", "claim": 0.5}, "claim is 0.5; give a whole number"),
        ({"item": "1", "label": "supported", "start": 3}, "'start' is 3 and 'end' is null"),
        ({"id": "1", "words": [["a"]]}, "give pairs of a word and true or false"),
        ({"id": "1", "words": [["a", "false"]]}, "give pairs of a word and true or false"),
        ({"id": "1", "words": [["a", None]]}, "give pairs of a word and true or false"),
        (
            {"id": "1", "words": [["a", 0]], "contains_hallucination": "false"},
            'contains_hallucination is "false"; give true or false',
        ),
        ({"id": "1", "caption": "b", "words": [["a", True]]}, "'a' is not in the response"),
        ({"words": [["a", True]]}, "null is not an id"),
    ],
)
def test_other_lines_are_refused(tmp_path: Path, line: dict[str, object], told: str) -> None:
    with pytest.raises(ArchiveError) as refused:
        read_labels(written(tmp_path / "labels.jsonl", line))
    assert told in str(refused.value)


def test_words_may_be_marked_by_0_and_1(tmp_path: Path) -> None:
    line = {"id": "a", "words": [["A", 0], ["dog", 1]], "contains_hallucination": 1}
    found = read_labels(written(tmp_path / "hat.jsonl", line))
    assert [label.hallucinated for label in found] == [False, True, True]


def test_tables_may_write_numbers_as_floats_and_labels_in_words(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text("item,claim,label\n1,2.0,Not supported\n2,,not-supported\n", encoding="utf-8")
    assert read_labels(path) == [
        Label(item="1", claim=2, hallucinated=True),
        Label(item="2", hallucinated=True),
    ]


def test_rows_that_are_not_filled_in_are_counted(tmp_path: Path) -> None:
    path = tmp_path / "sheet.csv"
    path.write_text("item,claim,label\n1,0,supported\n1,1,\n1,2, \n", encoding="utf-8-sig")
    found = find_labels(path)
    assert (len(found.labels), found.blank) == (1, 2)
    path.write_text("item,claim,label\n1,1,\n", encoding="utf-8")
    with pytest.raises(
        ArchiveError,
        match=expected_message("labels.human_labels:no-label-in-rows-fill-in-the"),
    ):
        find_labels(path)


def test_labels_that_contradict_earlier_ones_are_counted(tmp_path: Path) -> None:
    line = {"item": "1", "claim": 0, "label": "supported"}
    path = written(tmp_path / "one.jsonl", line, line | {"claim": 1}, line | {"claim": 2})
    same, other = line, line | {"claim": 1, "label": "not_supported"}
    again = written(tmp_path / "two.jsonl", same, other, other | {"claim": 2, "annotator": "bob"})
    found = find_labels(path, again)
    assert (len(found.labels), found.changed) == (4, 1)
    assert (
        expected_message("labels.human_labels:labels-contradict-an-earlier-one-of-the")
        in found.changed_note
    )
    assert find_labels(path).changed_note == ""


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
