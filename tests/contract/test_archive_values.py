"""Values and forms of records that are read, or refused, in every family alike."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.keyed_archives import (
    ANSWERED,
    ARCHIVES,
    CHOICE,
    FIGURE,
    MADE,
    ORDERED,
    PAIR,
    QUESTION,
    RUN,
    SHOWN,
    VIDEO,
    doubled,
    options_of,
    renamed,
)

from hallujudge.metrics.families import benchmark_named
from hallujudge.sdk.archives import read_items
from hallujudge.sdk.archives.inputs import InputOptions
from hallujudge.sdk.errors import ArchiveError

LABELS = {
    "pope": ("yes", "no"),
    "infact": ("A", "B"),
    "hallusion-bench": ("1", "0"),
    "vidhal-mcqa": ("B", "B"),
}


@pytest.mark.parametrize("metric", list(LABELS))
def test_labels_under_a_key_of_responses_are_not_scored(metric: str) -> None:
    """Tables of some tools hold the label under "answer", and responses under another key."""
    rows = labelled(metric)
    right = {"1": "Yes", "0": "No"}
    others = [{**row, "answer": right.get(label, label)} for row, label in rows]
    responses = ["no", "Yes."] if metric in ("pope", "hallusion-bench") else ["A", "B."]
    given = [{**row, "told": text} for row, text in zip(others, responses, strict=True)]
    with pytest.raises(ArchiveError, match="text_key") as caught:
        read_of(metric, given)
    assert "answer" in str(caught.value)
    assert "told" in str(caught.value)
    for key in ("answer", "told"):
        assert len(read_of(metric, given, text_key=key)) == 2
    assert len(read_of(metric, others)) == 2, "a perfect model"


def labelled(metric: str) -> list[tuple[dict[str, Any], str]]:
    """Return two records without responses, each with its label."""
    _, [first], _ = ARCHIVES[
        {"pope": "pope, alone", "infact": "infact", "hallusion-bench": "hallusion-bench"}.get(
            metric, metric
        )
    ]
    key = {"hallusion-bench": "gt_answer", "vidhal-mcqa": ""}.get(metric, "label")
    rows = doubled([first], "video")
    out = []
    for row, label in zip(rows, LABELS[metric], strict=True):
        rest = {name: held for name, held in row.items() if name != "response"}
        out.append(({**rest, key: label} if key else rest, label))
    return out


def read_of(metric: str, rows: list[dict[str, Any]], **more: Any) -> Any:
    shown = doubled([SHOWN], "video") if "vidhal" in metric else None
    options = replace(options_of(metric) or InputOptions(), **more)
    return read_items(metric, rows, shown, options=options)


@pytest.mark.parametrize(
    ("name", "question"),
    [
        ("pope, joined", "Is there a dog? Please answer yes or no."),
        ("pope, alone", "Is there a dog?\nAnswer the question using a single word."),
        *(
            (name, "Can you see a cup in this image? Please answer only with yes or no.")
            for name, declared in MADE.items()
            if "text" in declared.keys.response and len(ARCHIVES[name][1]) == 1
        ),
        ("hallusion-bench", "Is the dog larger than the cat?"),
        ("infact", "Which of them? A. a dog, B. a cat"),
    ],
)
def test_questions_in_place_of_responses_are_not_scored(name: str, question: str) -> None:
    metric, [first], references = ARCHIVES[name]
    others = {"response", "question", *(MADE[name].keys.response if name in MADE else ())}
    rest = {key: held for key, held in first.items() if key not in others}
    with pytest.raises(ArchiveError, match="questions"):
        read_items(metric, [{**rest, "text": question, "told": "Yes"}], references)


@pytest.mark.parametrize("value", [None, ""])
def test_an_empty_order_sensitive_is_an_error(value: str | None) -> None:
    rows = [{**ORDERED, **RUN, "operator": name} for name in ("base", "shuffle", "reverse")]
    assert len(read_items("infact", rows, None)) == 1
    with pytest.raises(ArchiveError, match="order_sensitive"):
        read_items("infact", [{**row, "order_sensitive": value} for row in rows], None)


def test_a_question_of_a_video_that_is_twice_in_a_file_is_an_error() -> None:
    asked = {"question": "Is there a dog?", "answer": "Yes.", "prediction": "Yes."}
    first = {"id": "1", "split": "entire", **asked}
    rows = [first, {**first, "question": "Is there a cat?"}]
    assert len(read_items("event-hallusion", rows, None)) == 1
    with pytest.raises(ArchiveError, match=r"more than once.*Is there a dog"):
        read_items("event-hallusion", [*rows, first], None)


@pytest.mark.parametrize("label", [1, True, "yes", "N/A", "A. running", "a", "AE"])
def test_labels_of_choices_are_letters(label: object) -> None:
    for known in ("A", "AC", "A, C", "B and D", " A,B,C,D ", "None"):
        assert len(read_items("vidhalluc-mcq", [{**CHOICE, "Correct Answer": known}], None)) == 1
    with pytest.raises(ArchiveError, match="labels are not letters A to D"):
        read_items("vidhalluc-mcq", [{**CHOICE, "Correct Answer": label}], None)


@pytest.mark.parametrize("texts", [{}, {"1": "yes", "2": "no"}, ["yes"], "yes", 1])
def test_judge_texts_are_a_list_as_objects_are(texts: object) -> None:
    [row] = ARCHIVES["openchair"][1]
    with pytest.raises(ArchiveError, match="judge_texts of"):
        read_items("openchair", [{**row, "judge_texts": texts}], None)


def test_labels_that_some_judged_answers_lack_are_noted() -> None:
    [first] = ARCHIVES["hallusion-bench, judged"][1]
    rows = [{**first, "gt_answer": "1"}, {**first, "question_id": "1"}]
    [note] = read_items("hallusion-bench", rows, None).notes
    assert note.startswith("1 of 2 answers have no gt_answer: tried gt_answer; found category")


# Keys of the ids that the records of ``results`` are under.
IDS = {"question_id", "video", "image_id", "image_name", "id"}


@pytest.mark.parametrize("name", list(ARCHIVES))
@pytest.mark.parametrize("in_file", [True, False], ids=["a file", "a value"])
def test_results_by_id_beside_the_models_name_are_read(
    name: str, in_file: bool, tmp_path: Path
) -> None:
    metric, rows, references = ARCHIVES[name]
    options = options_of(name)
    wanted = list(read_items(metric, rows, references, options=options))
    # Several answers of one video or question, and images of several objects, are under other ids.
    declared = benchmark_named(metric)
    own = len(rows) > 1 or (declared is not None and bool(declared.bundle.by))
    ids = set() if own else IDS
    held = rows if isinstance(rows, dict) else dict(by_id(*row, ids) for row in enumerate(rows))
    given: Any = {"model": "m", "results": held}
    if in_file:
        given = tmp_path / "answers.json"
        given.write_text(json.dumps({"model": "m", "results": held}))
    assert list(read_items(metric, given, references, options=options)) == wanted


@pytest.mark.parametrize("key", ["results", "data", "items", "predictions", "outputs", "answers"])
@pytest.mark.parametrize("name", [k for k, held in ARCHIVES.items() if isinstance(held[1], list)])
def test_a_list_of_records_beside_the_models_name_is_read(
    name: str, key: str, tmp_path: Path
) -> None:
    metric, rows, references = ARCHIVES[name]
    options, path, known = options_of(name), tmp_path / "answers.json", tmp_path / "known.json"
    path.write_text(json.dumps({"model": "m", key: rows, "config": {"seed": 1}}))
    known.write_text(json.dumps({"version": 1, key: references}))
    wanted = list(read_items(metric, rows, references, options=options))
    given = None if references is None else known
    assert list(read_items(metric, path, given, options=options)) == wanted


@pytest.mark.parametrize("key", ["results", "data", "items", "predictions", "outputs", "answers"])
def test_values_by_id_under_a_key_of_the_file_are_read(key: str, tmp_path: Path) -> None:
    answers, order, objects = (tmp_path / name for name in ("a.json", "o.json", "r.json"))
    answers.write_text(json.dumps({"model": "m", key: {"v_1": "A, B"}}))
    order.write_text(json.dumps({key: {"v_1": {"A": 2, "B": 1}}}))
    options = InputOptions(own={"options": order})
    wanted = list(read_items("vidhal-ordering", {"v_1": "A, B"}, [SHOWN], options=options))
    assert list(read_items("vidhal-ordering", answers, [SHOWN], options=options)) == wanted
    objects.write_text(json.dumps({"version": 2, key: {"1": ["dog"]}}))
    [item] = read_items("chair", [{"image_id": 1, "caption": "A dog."}], objects)
    assert item.reference_objects == ("dog",)  # type: ignore[attr-defined]  # a caption


def test_records_under_two_keys_of_a_file_are_an_error(tmp_path: Path) -> None:
    path = tmp_path / "answers.json"
    path.write_text(json.dumps({"results": [ANSWERED], "predictions": [ANSWERED]}))
    with pytest.raises(ArchiveError, match="results, predictions have records each"):
        read_items("pope", path, [QUESTION])


@pytest.mark.parametrize(
    ("name", "key", "cell", "joined"),
    [
        ("vqa", "direct_answers", '["cat", "kitten"]', True),
        ("vqa", "direct_answers", "['cat', 'kitten']", False),
        ("mmhal", "image_content", '["Cap"]', False),
    ],
)
def test_lists_in_cells_of_tables_are_lists(name: str, key: str, cell: str, joined: bool) -> None:
    metric, [row], references = ARCHIVES[name]
    [asked] = references or [{}]

    def read(value: object) -> list[Any]:
        held = {**asked, key: value}
        responses, questions = ([row], [held]) if joined else ([{**row, **held}], None)
        return list(read_items(metric, responses, questions))

    assert read(cell) == read(json.loads(cell.replace("'", '"')))


def by_id(position: int, row: dict[str, Any], ids: set[str]) -> tuple[str, dict[str, Any]]:
    key = next(filter(ids.__contains__, row), "")
    rest = {name: value for name, value in row.items() if name != key}
    return str(row.get(key, f"temporal_{position}")), rest


@pytest.mark.parametrize("key", ["desc", "judgement"])
def test_what_descriptions_lack_is_noted_with_the_tried_and_the_found_keys(key: str) -> None:
    assert not read_items("event-hallusion", [VIDEO], None).notes
    [note] = read_items("event-hallusion", renamed([VIDEO], key), None).notes
    assert f"my_{key}" in note, "the found keys"
    assert key in note.replace(f"my_{key}", ""), "the tried keys"


def test_sets_beside_the_models_name_are_read() -> None:
    content = {"model": "m", "results": {"temporal": [PAIR]}}
    assert len(read_items("video-hallucer", content, None)) == 1


FLAT = ARCHIVES["video-hallucer, flat"][1]


@pytest.mark.parametrize("suffix", ["jsonl", "csv"])
def test_flat_questions_of_pairs_score_like_nested_ones(suffix: str, tmp_path: Path) -> None:
    [nested] = read_items("video-hallucer", {"temporal": [PAIR]}, None)
    rows = [{key: v for key, v in row.items() if key != "set"} for row in reversed(FLAT)]
    lines = [json.dumps(row) for row in rows]
    if suffix == "csv":
        lines = [",".join(rows[0]), *(",".join(map(str, row.values())) for row in rows)]
    (tmp_path / f"temporal.{suffix}").write_text("\n".join(lines))
    [flat] = read_items("video-hallucer", tmp_path / f"temporal.{suffix}", None)
    assert (flat.answers, flat.fields, flat.group_id) == (  # type: ignore[attr-defined]  # answers
        nested.answers,  # type: ignore[attr-defined]  # answers
        nested.fields,
        nested.group_id,
    )


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        (FLAT[:1], ["pairs have no hallucination answer", "temporal/7"]),
        ([*FLAT, FLAT[0]], ["answered more than once", "temporal/7 (basic)"]),
        ([FLAT[0], {**FLAT[1], "role": "third"}], ["temporal/7 ('third')", "hallucination"]),
        ([{k: v for k, v in FLAT[0].items() if k != "pair_id"}], ["pair_id", "basic", "role"]),
    ],
    ids=["half", "twice", "unknown", "no pair"],
)
def test_flat_questions_without_their_pair_are_refused(rows: list[Any], said: list[str]) -> None:
    with pytest.raises(ArchiveError) as caught:
        read_items("video-hallucer", rows, None)
    assert [part for part in said if part not in str(caught.value)] == []


def test_the_named_id_is_looked_up_in_both_files() -> None:
    answers, questions = ({**row, "question_id": None, "qid": 5} for row in (ANSWERED, QUESTION))
    archives = [[{k: v for k, v in row.items() if v is not None}] for row in (answers, questions)]
    for given in (archives[1], [QUESTION | {"question_id": 5}]):
        [item] = read_items("pope", archives[0], given, options=InputOptions(id_key="qid"))
        assert (item.id, item.group_id) == ("5", "1.jpg")


def test_a_named_value_that_neither_file_has_is_an_error_with_the_keys_of_both() -> None:
    options = InputOptions(key_map={"label": "gold"})
    with pytest.raises(ArchiveError, match="gold") as caught:
        read_items("pope", [ANSWERED], [QUESTION], options=options)
    assert all(key in str(caught.value) for key in ("response", "image"))


def test_descriptions_without_any_reference_list_their_keys() -> None:
    records = [{"image_name": "1.png", "description": "A dog runs.", "gt": "A dog jumps."}]
    with pytest.raises(ArchiveError, match="gt") as caught:
        read_items("mementos", records, None)
    assert "reference" in str(caught.value)
    options = InputOptions(allow_unknown=True)
    assert len(read_items("mementos", records, None, options=options)) == 1


def test_different_questions_of_one_image_are_not_called_duplicates_to_remove() -> None:
    records = [{"id": "1.jpg", "response": text, "label": "yes"} for text in ("Yes.", "No.")]
    with pytest.raises(ArchiveError, match="different questions") as caught:
        read_items("pope", records, None)
    assert "id_key" in str(caught.value)


def test_places_of_tables_are_whole_numbers_too() -> None:
    words = {**FIGURE, "response": "Yes."}
    places = ("set_id", "figure_id", "question_id", "visual_input", "gt_answer")
    numbers = {**words, **{key: float(words[key]) for key in places}}
    assert list(read_items("hallusion-bench", [numbers], None)) == list(
        read_items("hallusion-bench", [words], None)
    )
