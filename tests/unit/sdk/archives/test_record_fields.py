"""Blocks of usual records are decoded into rows; one with an odd record is left to the reader."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from hallujudge.sdk.archives import InputOptions, read_items
from hallujudge.sdk.archives.record_fields import RowDecoder, SharedFields
from hallujudge.sdk.errors import HallujudgeError

KEYS: Mapping[str, Sequence[str]] = {
    "id": ("question_id", "id"),
    "response": ("response",),
    "label": ("label",),
    "question": ("question", "prompt"),
    "image": ("image", "image_id"),
}
SAMPLE = {
    "question_id": 1,
    "image id": 3,
    "prompt": 'Is "it" a dog?',
    "response": "Yes",
    "label": "no",
    "image": "1.jpg",
    "category": "random",
    "more": {"a": [None, "b"]},
}


def line(**changes: object) -> str:
    return json.dumps({**SAMPLE, **changes})


def decoded(*lines: str, groups: tuple[str, ...] = ("category",)) -> list[object] | None:
    decoder = RowDecoder(SAMPLE, KEYS, SharedFields(groups))
    rows = decoder("".join(f"{text}\n" for text in lines).encode(), True)
    assert rows == decoder(f"[{','.join(lines)}]".encode(), False)
    if rows is None:
        return None
    names = ("id", "response", "label", "question", "added", "image", "groups", "record")
    return [tuple(getattr(row, name) for name in names) for row in rows]


def test_usual_records() -> None:
    asked = 'Is "it" a dog?'
    others = {"question_id": 2, "response": 'Nö, "no" \\', "more": "x", "category": ""}
    assert decoded(line(), line(**others)) == [
        (1, "Yes", "no", asked, "", "1.jpg", {"category": "random"}, None),
        (2, 'Nö, "no" \\', "no", asked, "", "1.jpg", {"category": ""}, None),
    ]
    assert decoded(line(), groups=()) == [(1, "Yes", "no", asked, "", "1.jpg", {}, None)]


ODD = {
    "a key that is read twice": line().replace('{"q', '{"response": "No", "q', 1),
    "a key that is not read twice": line().replace('{"q', '{"image id": 4, "q', 1),
    "a key of a part twice": line().replace('{"a"', '{"a": 1, "a"', 1),
    "a key twice, once escaped": line().replace('{"q', '{"\\u0071uestion_id": 2, "q', 1),
    "a key less": line().replace(', "category": "random"', ""),
    "another usual key": line(question="Is it?"),
    "another key": line(model="m"),
    "NaN": line(more=float("nan")),
    "a lone surrogate": line(response="\ud800"),
    "null": line(response=None),
    "a number": line(image=1),
    "an id with a fraction": line(question_id=1.0),
    "an id as text": line(question_id="1"),
    "an id that is true": line(question_id=True),
    "no image": line(image=""),
    "a list": "[1]",
    "nested deeply": line().replace("null", "[" * 5000 + "]" * 5000),
    "cut off": line()[:-1],
}


@pytest.mark.parametrize("odd", ODD.values(), ids=ODD.keys())
def test_a_block_with_an_odd_record_is_not_decoded(odd: str) -> None:
    assert decoded(line(), line()) is not None
    assert decoded(line(), odd, line()) is None


SAMPLES: Mapping[str, dict[str, object]] = {
    "no id": {"response": "Yes", "image": "1.jpg"},
    "an id that is no id": {**SAMPLE, "question_id": None},
    "a response that is no text": {**SAMPLE, "response": ["Yes"]},
    "a label that is no text": {**SAMPLE, "label": 1},
    "a group under a path": {"question_id": 1, "doc": {"category": "random"}},
    "a key with a quote": {**SAMPLE, 'the "kind"': "new"},
    "a key with a tab": {**SAMPLE, "the\tkind": "new"},
    "a key with a backslash": {**SAMPLE, "the\\kind": "new"},
}


@pytest.mark.parametrize("sample", SAMPLES.values(), ids=SAMPLES.keys())
def test_records_that_are_never_decoded(sample: Mapping[str, object]) -> None:
    decoder = RowDecoder(sample, KEYS, SharedFields(("category", "doc.category")))
    assert decoder(json.dumps([sample]).encode(), False) is None


CAPTION = {"image_id": 7, "caption": "A cat.", "objects": ["cat", 'a "dog"']}
OF_CAPTIONS = {"id": ("image_id",), "response": ("caption",), "objects": ("objects",)}


def test_captions_with_objects() -> None:
    decoder = RowDecoder(CAPTION, OF_CAPTIONS, SharedFields(()))
    rows = decoder(json.dumps([CAPTION]).encode(), False)
    assert rows is not None
    (row,) = rows
    assert (row.id, row.response, row.objects) == (7, "A cat.", ["cat", 'a "dog"'])
    for objects in ("cat", [1], None, [["cat"]], {"cat": 1}):
        odd = {**CAPTION, "objects": objects}
        assert decoder(json.dumps([CAPTION, odd]).encode(), False) is None


IDS = (1, "1", 1.0, "1.0", " 1", 2, "2.0", "a b", 10**20, "é")


@pytest.mark.parametrize("other", IDS)
@pytest.mark.parametrize("first", IDS)
def test_ids_of_two_types(first: object, other: object, tmp_path: Path) -> None:
    rows = [
        {"question_id": own, "response": "Yes", "label": "no", "image": "1.jpg"}
        for own in (first, other)
    ]
    path = tmp_path / "answers.jsonl"
    for start in ("", "\ufeff"):
        path.write_text(start + "\n".join(map(json.dumps, rows)) + "\n", encoding="utf-8")
        assert outcome(path) == outcome(rows)


def outcome(source: object) -> object:
    try:
        return [item.id for item in read_items("pope", source, None, options=InputOptions())]  # type: ignore[arg-type]  # a path or records
    except HallujudgeError as err:
        # Errors about the whole of a file begin with its name.
        return str(err).removeprefix(f"{source}: ")
