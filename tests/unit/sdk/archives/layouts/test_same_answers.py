"""The same answers, in every layout of other tools, are the same items and give equal scores."""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

import pytest
from support.archive_samples import (
    CAPTION_LAYOUTS,
    CAPTIONS,
    PLAIN_MAP,
    QUESTION_LAYOUTS,
    QUESTIONS,
    Caption,
    Question,
    packed,
    write_lines,
)

from hallujudge.metrics import AnswersItem, Report
from hallujudge.metrics.chair import ChairItem
from hallujudge.sdk import Client
from hallujudge.sdk.archives import InputOptions, ItemSource, read_items
from hallujudge.sdk.errors import ArchiveError

OBJECTS = {str(caption.image_id): list(caption.objects) for caption in CAPTIONS}


def read_answers(path: Path | str, layout: str, **options: object) -> ItemSource:
    key_map = PLAIN_MAP if layout.startswith("plain") else {}
    inputs = InputOptions(key_map=key_map, **options)  # type: ignore[arg-type]  # built by the cases
    return read_items("pope", path, None, options=inputs)


def pairs(items: ItemSource) -> list[tuple[str, str | None]]:
    """Return label and response of each item, in an order of their own."""
    found = [item for item in items if isinstance(item, AnswersItem)]
    return sorted((item.label, item.response or "") for item in found)


def wanted(questions: Sequence[Question]) -> list[tuple[str, str | None]]:
    return sorted((q.label, q.answer or "") for q in questions)


@pytest.mark.parametrize("layout", QUESTION_LAYOUTS)
def test_answers_are_read_with_their_labels(tmp_path: Path, layout: str) -> None:
    items = read_answers(QUESTION_LAYOUTS[layout](tmp_path, QUESTIONS), layout)
    assert pairs(items) == wanted(QUESTIONS)
    assert len({item.id for item in items}) == len(items) == len(QUESTIONS)


@pytest.mark.parametrize("layout", QUESTION_LAYOUTS)
def test_the_order_does_not_matter(tmp_path: Path, layout: str) -> None:
    shuffled = random.Random(1).sample(QUESTIONS, len(QUESTIONS))
    items = read_answers(QUESTION_LAYOUTS[layout](tmp_path, shuffled), layout)
    assert pairs(items) == wanted(QUESTIONS)


@pytest.mark.parametrize("kind", ["gz", "zst"])
@pytest.mark.parametrize("layout", ["lmms-eval C", "VLMEvalKit tsv", "Inspect AI eval"])
def test_packed_files_are_unpacked(tmp_path: Path, layout: str, kind: str) -> None:
    path = packed(QUESTION_LAYOUTS[layout](tmp_path, QUESTIONS), kind)
    assert pairs(read_answers(path, layout)) == wanted(QUESTIONS)


@pytest.mark.parametrize("layout", QUESTION_LAYOUTS)
def test_a_truncated_file_is_refused_by_name(tmp_path: Path, layout: str) -> None:
    path = QUESTION_LAYOUTS[layout](tmp_path, QUESTIONS)
    data = path.read_bytes()
    path.write_bytes(data[: len(data) * 2 // 3])
    if path.suffix in (".csv", ".tsv"):
        # A table that ends within a row or at its end is one with fewer rows.
        path.write_bytes(data[: data.index(b"\n", len(data) // 2) + 8])
    with pytest.raises(ArchiveError) as caught:
        list(read_answers(path, layout))
    assert path.name in str(caught.value)


@pytest.mark.parametrize("layout", [name for name in QUESTION_LAYOUTS if "VLM" in name])
def test_vlmevalkits_categories_are_kept(tmp_path: Path, layout: str) -> None:
    same = [QUESTIONS[0], *(Question(**{**as_dict(QUESTIONS[0]), "category": "popular"}),)]  # type: ignore[arg-type]
    path = QUESTION_LAYOUTS[layout](tmp_path, same)
    (item,) = read_items("pope", path, None, group_by=("category",))
    assert item.fields == {"category": "random,popular"}
    assert isinstance(item, AnswersItem)
    assert item.group_id == QUESTIONS[0].image


@pytest.mark.parametrize("layout", [name for name in QUESTION_LAYOUTS if "Inspect" in name])
def test_questions_and_images_of_logs_are_kept(tmp_path: Path, layout: str) -> None:
    items = read_answers(QUESTION_LAYOUTS[layout](tmp_path, QUESTIONS), layout)
    found = [(item.question, item.group_id) for item in items if isinstance(item, AnswersItem)]
    assert found == [(q.text, q.image) for q in QUESTIONS]


def as_dict(question: Question) -> dict[str, object]:
    return {name: getattr(question, name) for name in Question.__slots__}


def chair_items(items: ItemSource) -> list[tuple[str, str | None, tuple[str, ...] | None]]:
    found = [item for item in items if isinstance(item, ChairItem)]
    return [(item.id, item.response, item.reference_objects) for item in found]


@pytest.mark.parametrize("layout", CAPTION_LAYOUTS)
def test_captions_are_read_with_their_objects(tmp_path: Path, layout: str) -> None:
    with_objects, write = CAPTION_LAYOUTS[layout]
    path = write(tmp_path, CAPTIONS)
    items = read_items("chair", path, None if with_objects else OBJECTS)
    assert chair_items(items) == [(str(c.image_id), c.text, c.objects) for c in CAPTIONS]


@pytest.mark.parametrize("layout", CAPTION_LAYOUTS)
def test_given_references_win(tmp_path: Path, layout: str) -> None:
    other = {image: ["zebra"] for image in OBJECTS}
    items = read_items("chair", CAPTION_LAYOUTS[layout][1](tmp_path, CAPTIONS), other)
    assert {objects for _, _, objects in chair_items(items)} == {("zebra",)}


def scored(metric: str, responses: object, **more: object) -> Report:
    with Client.embedded() as client:
        return client.score(metric, responses=responses, **more)  # type: ignore[arg-type]


def test_scores_are_those_of_plain_records(tmp_path: Path) -> None:
    records = [
        {"id": f"{q.category}/{q.id}", "response": q.answer, "label": q.label} for q in QUESTIONS
    ]
    direct = scored("pope", records)
    assert direct.coverage.unscored == 3, "the failure texts"
    for layout in ("lmms-eval A", "lmms-eval C", "VLMEvalKit xlsx", "Inspect AI eval"):
        report = scored("pope", QUESTION_LAYOUTS[layout](tmp_path, QUESTIONS))
        values = {name: score.value for name, score in report.scores.items()}
        assert values == {name: score.value for name, score in direct.scores.items()}, layout
        assert report.coverage == direct.coverage, layout


def test_an_archive_of_another_benchmark_is_refused(tmp_path: Path) -> None:
    path = QUESTION_LAYOUTS["lmms-eval C"](tmp_path, QUESTIONS)
    with pytest.raises(ArchiveError) as caught:
        read_items("chair", path, OBJECTS)
    said = f"{path} is an lmms-eval sample file of task POPE; use `hallujudge score pope"
    assert str(caught.value).startswith(said)


def test_a_missing_response_is_kept_as_missing(tmp_path: Path) -> None:
    lone = [Caption(image_id=1, text=None, objects=("dog",))]
    for layout in ("lmms-eval B2", "lmms-eval C"):
        items = read_items("chair", CAPTION_LAYOUTS[layout][1](tmp_path, lone), None)
        assert chair_items(items) == [("1", None, ("dog",))]


def test_predictions_that_a_spreadsheet_took_for_numbers_are_texts() -> None:
    row = {"index": 1, "question": "Is it?", "answer": "Yes", "category": "random"}
    for prediction, response in ((1, "1"), (2.5, "2.5"), (True, "True"), ("Yes", "Yes")):
        (item,) = read_items("pope", [{**row, "prediction": prediction}], None)
        assert isinstance(item, AnswersItem)
        assert item.response == response
    (item,) = read_items("pope", [{**row, "prediction": float("nan")}], None)
    assert isinstance(item, AnswersItem)
    assert item.response == "nan", "which scoring takes for a failure text"


VARIANTS: dict[str, dict[str, object]] = {
    "nested responses": {"filtered_resps": [["Yes"]]},
    "flat response": {"filtered_resps": "Yes"},
    "responses that are raw only": {"resps": [["Yes"]]},
    "no responses": {},
    "NaN in a score": {"filtered_resps": ["Yes"], "some_score": float("nan")},
}


@pytest.mark.parametrize("variant", VARIANTS)
@pytest.mark.parametrize("truth", ["yes", "YES", " Yes"])
def test_variants_of_samples_are_read(tmp_path: Path, variant: str, truth: str) -> None:
    score = {"question_id": "7", "score": 1.0, "prediction": "yes", "ground_truth": truth}
    row = {"doc_id": 3, "target": truth, "pope_f1_score": score, "more": [1], **VARIANTS[variant]}
    path = write_lines(tmp_path / "samples.jsonl", [row])
    (item,) = read_items("pope", path, None)
    assert isinstance(item, AnswersItem)
    assert (item.id, item.label) == ("3", "yes")
    assert (item.response or "").casefold() == "yes"
