"""Records give the same items, or the same error, whichever source they come from.

They are the lines of a file, entries of a list in a file on one line or several, or values in
memory. Blocks of lines and of entries are decoded as a whole unless one is odd.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TypeAlias

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from support.example_archives import numbered
from support.keyed_archives import MADE
from support.sizes import examples

from hallujudge.metrics import AnswersItem
from hallujudge.sdk.archives import InputOptions, read_items
from hallujudge.sdk.errors import HallujudgeError

Rows: TypeAlias = "list[dict[str, object]]"
FEW = settings(max_examples=examples(150), deadline=None)
NUMBERS = st.one_of(st.integers(-2, 300), st.sampled_from([1.0, 2.5, float("nan"), True, False]))
STRANGE = st.one_of(
    st.none(),
    NUMBERS,
    st.sampled_from(["", " ", "7.0", "a b", "\ud800", "é", "Is it a dog?", "Yes? No", "²"]),
    st.sampled_from([[], ["yes"], ["a", "b"], {}, {"error": "timeout"}, {"text": "Yes"}]),
)
USUAL: Mapping[str, st.SearchStrategy[object]] = {
    "question_id": st.one_of(st.integers(0, 9), st.sampled_from(["4", "x1", "7.0", " 8"])),
    "id": st.integers(0, 9),
    "response": st.sampled_from(["Yes", "No.", "no, a cat", "Ja, é"]),
    "answer": st.sampled_from(["Yes", "No"]),
    "label": st.sampled_from(["yes", "no", " YES.", "No"]),
    "question": st.sampled_from(["Is it a dog?", "Is it a cat?"]),
    "text": st.sampled_from(["Is it a dog?", "Yes", "Is it a doog?"]),
    "image": st.sampled_from(["1.jpg", "2.jpg"]),
    "category": st.sampled_from(["random", "popular", ""]),
    "image_id": st.one_of(st.integers(0, 9), st.just("COCO_val2014_000000000007.jpg")),
    "caption": st.sampled_from(["A cat.", "A dog, no cat.", "é"]),
    "objects": st.sampled_from([["cat"], ["dog", "cat", "dog"], []]),
    "more.part": st.sampled_from(["a", "b"]),
    "more": st.just({"part": "c"}),
}


@st.composite
def records(draw: st.DrawFn, keys: Sequence[str]) -> Rows:
    """Draw records that mostly have the same keys and usual values, in some order."""
    chosen = draw(st.lists(st.sampled_from(keys), unique=True, min_size=1))
    rows = [{key: draw(USUAL[key]) for key in chosen} for _ in range(draw(st.integers(1, 6)))]
    own = draw(st.booleans())
    for number, row in enumerate(rows):
        # Most ids differ, as records with equal ids are refused.
        row |= {"question_id": number} if own and "question_id" in row else {}
    for _ in range(draw(st.integers(0, 2))):
        row, key = draw(st.sampled_from(rows)), draw(st.sampled_from(keys))
        if draw(st.booleans()):
            row[key] = draw(STRANGE)
        else:
            row.pop(key, None)
    return rows


def outcome(
    metric: str,
    given: Path | Rows,
    known: Path | Rows | None,
    options: InputOptions,
    groups: tuple[str, ...],
) -> object:
    """Return the items and notes of an archive, or its error without the names of places."""
    try:
        source = read_items(metric, given, known, options=options, group_by=groups)
        # A record that is passed over (skip_bad) is named by its place.
        return [_without_places(repr(item)) for item in source], _without_places(repr(source.notes))
    except HallujudgeError as err:
        # Errors about the whole of a file begin with its name.
        return type(err), _without_places(str(err).removeprefix(f"{given}: "))


def _without_places(text: str) -> str:
    """Return a text without the names of files and places, and how many of them fit into it."""
    named = re.sub(r"\brecord \d+|/\S+ line \d+", "PLACE", text)
    listed = re.sub(r"PLACE(?:, PLACE)*(?: and \d+ more)?", "PLACES", named)
    return re.sub(r"/\S+\.json|The archive of \w+", "ARCHIVE", listed)


def from_files(
    metric: str,
    rows: Rows,
    known: Rows | None = None,
    options: InputOptions | None = None,
    groups: tuple[str, ...] = ("category", "more.part"),
) -> object:
    """Return what files give, however they are written."""
    found = []
    for start, meeting, end in (("", "\n", "\n"), ("[", ",\n", "]"), ("[", ", ", "]\n")):
        with TemporaryDirectory() as folder:
            paths = [Path(folder, "answers.json"), Path(folder, "asked.json")]
            for path, values in zip(paths, (rows, known or []), strict=True):
                path.write_text(start + meeting.join(map(json.dumps, values)) + end)
            asked = paths[1] if known else None
            found.append(outcome(metric, paths[0], asked, options or InputOptions(), groups))
    assert found[0] == found[1] == found[2]
    return found[0]


def is_one_record(rows: Rows | None) -> bool:
    """Return whether the first record of a file is no object of records."""
    return not rows or not all(isinstance(value, dict) for value in rows[0].values())


OPTIONS = st.builds(
    InputOptions,
    join=st.sampled_from(["auto", "id", "text", "order"]),
    id_key=st.sampled_from([None, None, "id"]),
    key_map=st.sampled_from([{}, {}, {"response": "answer"}, {"label": "answer"}]),
    allow_unknown=st.booleans(),
    drop_unknown=st.booleans(),
    allow_missing=st.booleans(),
    allow_duplicates=st.booleans(),
    skip_bad=st.booleans(),
)
CAPTIONS = ("image_id", "caption", "objects", "category", "id", "more", "response")
KEYS = tuple(key for key in USUAL if key not in CAPTIONS[:3])
LABELLED = ("question_id", "response", "label", "category", "image", "question", "text")
GROUPS = ("category", "more.part")


@pytest.mark.parametrize("keys", [KEYS, LABELLED])
@given(data=st.data(), options=OPTIONS)
@FEW
def test_answers_with_labels(
    keys: Sequence[str], data: st.DataObject, options: InputOptions
) -> None:
    rows = data.draw(records(keys))
    assume(is_one_record(rows))
    found = from_files("pope", rows, None, options)
    assert found == outcome("pope", rows, None, options, GROUPS)


@given(answers=records(KEYS), questions=records(LABELLED), options=OPTIONS)
@FEW
def test_answers_joined_with_questions(
    answers: Rows, questions: Rows, options: InputOptions
) -> None:
    assume(is_one_record(answers) and is_one_record(questions))
    found = from_files("pope", answers, questions, options)
    assert found == outcome("pope", answers, questions, options, GROUPS)


@given(captions=records(CAPTIONS), options=OPTIONS, apart=st.booleans())
@FEW
def test_captions(captions: Rows, options: InputOptions, apart: bool) -> None:
    assume(is_one_record(captions))
    for number, row in enumerate(captions):
        row |= {"image_id": number} if apart else {}
    own = without_joins(options)
    found = from_files("chair", captions, None, own)
    assert found == outcome("chair", captions, None, own, GROUPS)


def without_joins(options: InputOptions) -> InputOptions:
    """Return options as captions take them: they are joined by their images alone."""
    return replace(options, join="auto", key_map={}, drop_unknown=False, allow_missing=False)


def elv_halluc(n: int) -> dict[str, object]:
    caption = ("ground_truth", "in_video", "out_video")[n % 3]
    asked = {"video_id": f"v{n // 3}", "aspect": "object", "caption_type": caption, "question": "?"}
    return {**asked, "ref_answer": ("No", "Yes")[n % 3 == 0], "model_response": "Yes."}


def infact(n: int) -> dict[str, object]:
    asked = {"id": n // 2, "video": "1.mp4", "operator": ("base", "compression")[n % 2]}
    options = {"A": "a", "B": "b"}
    return {**asked, "question": "What?", "options": options, "label": "A", "response": "(A)"}


def video_hallucer(n: int) -> dict[str, object]:
    sides = (("basic", "yes"), ("hallucination", "no"))
    asked = {"video": f"{n}.mp4", "question": "Is it?", "predict": "Yes"}
    return {**{role: {**asked, "answer": right} for role, right in sides}, "set": "temporal"}


def hallusion_bench(n: int) -> dict[str, object]:
    place = {"set_id": str(n // 4), "figure_id": str(n // 2 % 2), "question_id": str(n % 2)}
    of = {"category": "VS", "subcategory": "map", "visual_input": "1", "question": "Is it?"}
    return {
        **of,
        **place,
        "gt_answer": "1",
        "gt_answer_details": "It is.",
        "model_prediction": "No",
    }


BUNDLES: Mapping[str, Callable[[int], dict[str, object]]] = {
    **{each.name: numbered(each)[1] for each in MADE.values() if each.bundle.by},
    "elv-halluc": elv_halluc,
    "infact": infact,
    "video-hallucer": video_hallucer,
    "hallusion-bench": hallusion_bench,
}


@pytest.mark.parametrize("metric", BUNDLES)
@given(data=st.data(), count=st.integers(1, 9), grouped=st.booleans())
@FEW
def test_answers_of_bundles_in_files(
    metric: str, data: st.DataObject, count: int, grouped: bool
) -> None:
    rows = list(map(BUNDLES[metric], range(count)))
    names = [*rows[0], "id", "label", "question_id", "image", "prediction", "confidence"]
    for _ in range(data.draw(st.integers(0, 2))):
        row, key = data.draw(st.sampled_from(rows)), data.draw(st.sampled_from(names))
        if data.draw(st.booleans()):
            row[key] = data.draw(st.one_of(STRANGE, st.sampled_from(["yes", "B", "base", "VS"])))
        else:
            row.pop(key, None)
    groups = ("question",) if grouped else ()
    from_files(metric, rows, groups=groups)


def test_a_caption_without_mentions_next_to_one_with_two() -> None:
    rows: Rows = [
        {"generated_caption": "A dog.", "generated_objs": [], "judge_texts": []},
        {"generated_caption": "A cat.", "generated_objs": ["a", "b"], "judge_texts": ["yes", "no"]},
    ]
    items = [item for item in read_items("openchair", rows, None) if isinstance(item, AnswersItem)]
    assert [(item.id, len(item.answers)) for item in items] == [("1", 0), ("2", 2)]
