"""Bundles of answers from every form that an archive of closed questions may have."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from msgspec import structs
from support.keyed_archives import ARCHIVES

from hallujudge.metrics import Answer, AnswersItem
from hallujudge.metrics.answers.answer_items import HeldAnswers, in_columns
from hallujudge.metrics.answers.answers_metric import AnswersMetric
from hallujudge.metrics.answers.closed_questions import Bundling, ClosedQuestions, InputTable, Keys
from hallujudge.metrics.families import benchmark_named
from hallujudge.metrics.infact import OperatorsMetric
from hallujudge.metrics.pope import BENCHMARK
from hallujudge.metrics.vqa import BENCHMARK as VQA
from hallujudge.sdk.archives import read_items
from hallujudge.sdk.archives.answers import read_answers
from hallujudge.sdk.archives.example_files import example_archives, write_example
from hallujudge.sdk.archives.inputs import InputOptions, ReaderInput, inputs_of
from hallujudge.sdk.errors import ArchiveError, InvalidInputError


def has_response(metric: str, file: str, text: str) -> bool:
    """Return whether a benchmark's file is of JSON lines, with a response in each."""
    if (declared := benchmark_named(metric)) is None or not file.endswith(".jsonl"):
        return False
    return not json.loads(text.splitlines()[0]).keys().isdisjoint(declared.keys.response)


BY_LINE = [
    metric
    for metric, example in example_archives().items()
    if has_response(metric, *next(iter(example.files.items())))
]
KEYS = Keys(
    response=("response", "answer"),
    label=("label", "gt"),
    id=("question_id", "id"),
    media=("video",),
    fields={"operator": ("operator",), "set": ("set",), "sensitive": ("order_sensitive",)},
    values={"label": {"1": "yes", "0": "no"}, **BENCHMARK.keys.values},
    optional=("operator", "set", "sensitive"),
)
PLAIN = structs.replace(BENCHMARK, keys=KEYS)
ROWS = structs.replace(
    PLAIN, name="rows", keys=KEYS, bundle=Bundling(name=("operator",)), seen=("sensitive",)
)
SETS = structs.replace(
    PLAIN, name="sets", keys=KEYS, bundle=Bundling(by=("set",), name=("operator",))
)


def read(
    declared: ClosedQuestions, responses: Any, references: Any = None, **options: Any
) -> list[AnswersItem]:
    inputs = InputOptions(**options)
    inputs_of(declared).refuse_unused(declared.name, inputs)
    source = read_answers(declared, ReaderInput(responses, references, inputs, ()))
    return [item for item in source if isinstance(item, AnswersItem)]


def row(number: int, operator: str, response: str | None, **more: Any) -> dict[str, Any]:
    return {"question_id": number, "operator": operator, "response": response, "label": 1, **more}


def test_rows_with_one_id_are_a_bundle_wherever_they_are() -> None:
    rows = [row(1, "base", "Yes"), row(2, "base", "No"), row(1, "blur", None, order_sensitive=True)]
    first, second = read(ROWS, rows)
    assert [(a.name, a.response, a.label) for a in first.answers] == [
        ("base", "Yes", "yes"),
        ("blur", None, "yes"),
    ]
    assert [dict(a.fields) for a in first.answers] == [{"sensitive": ""}, {"sensitive": "true"}]
    assert second.id == "2"


def test_each_row_has_the_first_of_its_questions_that_is_not_empty() -> None:
    asked = [{"text": "1?"}, {"question": "2?", "text": "?"}, {"question": "", "text": "3?"}, {}]
    rows = [row(n, "base", "Yes", **each) for n, each in enumerate(asked)]
    said = [[item.answers[0].question for item in read(ROWS, part)] for part in (rows, rows[::-1])]
    assert said == [["1?", "2?", "3?", ""], ["", "3?", "2?", "1?"]]


def test_rows_with_equal_fields_are_a_bundle() -> None:
    rows = [row(n, str(n), "Yes", set="a" if n < 3 else "b") for n in range(4)]
    assert [(item.id, len(item.answers)) for item in read(SETS, rows)] == [("a", 3), ("b", 1)]


def test_half_a_pair_is_refused_or_allowed_to_lack_an_answer() -> None:
    known = {"true": "what is shown", "false": "what is not shown"}
    trial = AnswersItem(id="1", answers=tuple(Answer("Yes.", "yes", name) for name in known))
    pairs = structs.replace(SETS, places={"operator": known}, trial=trial)
    rows = [row(n, name, "Yes", set=f"pair {n}") for n in (1, 2) for name in known]
    assert [len(item.answers) for item in read(pairs, rows)] == [2, 2]
    with pytest.raises(ArchiveError, match=r"have no false answer: pair 2 \(1 in all\)") as caught:
        read(pairs, rows[:-1])
    assert "its answers true and false, or pass InputOptions(allow_missing" in str(caught.value)
    _, half = read(pairs, rows[:-1], allow_missing=True)
    assert [answer.name for answer in half.answers] == ["true"]


def test_questions_have_what_rows_leave_out() -> None:
    rows = [{"question_id": 1, "operator": "base", "response": "Yes"}]
    [item] = read(ROWS, rows, [{"question_id": 1, "label": 0, "video": "v"}])
    assert (item.answers[0].label, item.group_id) == ("no", "v")
    questions = [{"question_id": n, "operator": "base", "label": 0} for n in (1, 2)]
    with pytest.raises(ArchiveError, match=r"questions have no answer: 2 \(1 in all\)"):
        read(ROWS, rows, questions)
    first, second = read(ROWS, rows, questions, allow_missing=True)
    assert (first.answers[0].response, second.answers[0].response) == ("Yes", None)
    with pytest.raises(ArchiveError, match="that the references lack: 1"):
        read(ROWS, rows, [{"question_id": 3, "label": 0}], allow_missing=True)


@pytest.mark.parametrize("seen", [("sensitive",), ()])
def test_a_declared_field_is_never_silently_empty(seen: tuple[str, ...]) -> None:
    declared = structs.replace(
        PLAIN, keys=structs.replace(KEYS, optional=("operator", "set")), seen=seen
    )
    rows = [row(n, "base", "Yes", order_sensitive=True) for n in (1, 2)]
    assert len(read(declared, rows)) == 2
    rows[1]["my_order"] = rows[1].pop("order_sensitive")
    with pytest.raises(ArchiveError, match=r"tried order_sensitive; found .*my_order"):
        read(declared, rows)


@pytest.mark.parametrize(
    ("rows", "said"),
    [
        ([row(1, "base", "Yes"), row(1, "base", "No")], r"more than once: 1 \(base\)"),
        ([{"question_id": 1, "response": "Yes", "label": 1}], "tried operator; found"),
        ([row(1, "base", "Yes", label=5)], r"neither yes nor no: 1 \(base: 5\)"),
    ],
)
def test_rows_that_cannot_be_used_are_named(rows: list[dict[str, Any]], said: str) -> None:
    with pytest.raises(ArchiveError, match=said):
        read(ROWS, rows)


def shown_letter(answer: Answer, values: Any) -> Answer:
    """Return the answer with the letter that was shown for its label."""
    letters = {str(rank): letter for letter, rank in values["shown"].items()}
    return structs.replace(answer, label=letters["1"], options=dict.fromkeys(letters.values(), "x"))


def test_a_table_gives_each_record_the_value_of_its_id() -> None:
    declared = structs.replace(
        PLAIN,
        labels=(),
        tables=(InputTable(name="shown", meaning="Letters that were shown."),),
        complete=shown_letter,
    )
    rows = [{"id": 1, "response": "B", "label": "first"}]
    [item] = read(declared, rows, own={"shown": {"1": {"A": 2, "B": 1}}})
    assert (item.label, dict(item.answers[0].options)) == ("B", {"A": "x", "B": "x"})
    with pytest.raises(InvalidInputError, match="choose from shown"):
        read(declared, rows, own={"other": {}})


def test_places_of_items_and_confidences_have_the_declared_values() -> None:
    keys = structs.replace(
        KEYS,
        values={**KEYS.values, "set": {"one": "one"}},
        fields={**KEYS.fields, "confidence": ("confidence",)},
        optional=(*KEYS.optional, "confidence"),
    )
    declared = structs.replace(
        ROWS,
        keys=keys,
        places={"set": ("", "one")},
        seen=("confidence",),
        base=OperatorsMetric,
    )
    [item] = read(declared, [row(1, "base", "Yes", set=" One ", confidence=0.5)])
    assert dict(item.fields) == {"set": "one"}
    with pytest.raises(ArchiveError, match=r'values of set are not one of one: 1 \("two"\)'):
        read(declared, [row(1, "base", "Yes", set="two")])
    for wrong, shown in ((85, "85"), ("much", "'much'"), (float("nan"), "nan")):
        with pytest.raises(ArchiveError, match=rf"not a number from 0 to 1: 1 \({shown}\)"):
            read(declared, [row(1, "base", "Yes", confidence=wrong)])


@dataclass(frozen=True, slots=True, kw_only=True)
class _Held(AnswersMetric):
    """A metric of records that hold several answers."""

    @classmethod
    def held_answers(cls, record: Mapping[str, object]) -> HeldAnswers | None:
        return in_columns(record, {"labels": "label", "responses": "response"})


COLUMNS = structs.replace(
    PLAIN,
    name="columns",
    keys=structs.replace(KEYS, values={}),
    question_files="",
    base=_Held,
    trial=AnswersItem(id="1", answers=(Answer("Yes.", "yes"), Answer("No.", "no"))),
)


def test_answers_in_objects_by_name() -> None:
    labels, responses = {"x": "yes", "y": "no"}, {"y": "No.", "other": "Yes."}
    [item] = read(COLUMNS, [{"id": 7, "video": "v", "labels": labels, "responses": responses}])
    assert [(a.name, a.response, a.label) for a in item.answers] == [
        ("x", "", "yes"),
        ("y", "No.", "no"),
    ]
    assert (item.id, item.group_id) == ("7", "v")


def test_answers_in_lists_of_records_without_ids() -> None:
    row = {"labels": ["yes", "no"], "responses": ["Yes.", None]}
    items = read(COLUMNS, [row, row])
    assert [item.id for item in items] == ["1", "2"]
    assert [(a.name, a.response) for a in items[1].answers] == [("1", "Yes."), ("2", "")]


@pytest.mark.parametrize("responses", [["Yes."], "Yes.", 3])
def test_columns_of_another_form_are_refused(responses: Any) -> None:
    with pytest.raises(ArchiveError, match="labels, responses"):
        read(COLUMNS, [{"labels": ["yes", "no"], "responses": responses}])


@pytest.mark.parametrize("judged", [VQA.judged, None])
def test_a_record_without_answers_is_an_item_only_where_each_is_judged(judged: Any) -> None:
    declared = structs.replace(COLUMNS, judged=judged)
    rows = [{"labels": [], "responses": []}, {"labels": ["no"], "responses": ["No."]}]
    found = read(declared, rows)
    assert [len(item.answers) for item in found] == ([0, 1] if judged else [1])


TOLERANT = structs.replace(
    COLUMNS,
    question_files="questions.json",
    variants=(structs.replace(COLUMNS.variants[0], missing="wrong in part"),),
)


def test_questions_and_answers_may_lack_each_other_where_the_benchmark_says_how() -> None:
    questions = [{"id": number, "labels": {"x": "yes"}} for number in (1, 2)]
    answers = [{"id": number, "responses": {"x": "Yes."}} for number in (2, 3)]
    source = read_answers(TOLERANT, ReaderInput(answers, questions, InputOptions(), ()))
    found = {item.id: item.answers[0].response for item in source if isinstance(item, AnswersItem)}
    assert found == {"2": "Yes.", "1": None}
    assert ["3" in source.notes[-2], "1 of the 2" in source.notes[-1]] == [True, True]
    assert source.notes[-2].startswith("1 answer is to ")
    with pytest.raises(ArchiveError, match="No answer could be joined"):
        read_answers(TOLERANT, ReaderInput(answers[1:], questions, InputOptions(), ()))


CAPTIONS = ("ground_truth", "in_video", "out_video")


def captions(*names: str) -> list[dict[str, str]]:
    return [
        {"aspect": "object", "caption_type": name, "ref_answer": "No", "model_response": "No."}
        for name in names
    ]


def test_a_lost_record_is_not_taken_for_a_duplicate_question() -> None:
    with pytest.raises(ArchiveError, match=r"lost or doubled record: 1 \(ground_truth\)") as caught:
        read_items("elv-halluc", captions(*CAPTIONS[:2], *CAPTIONS), None)
    assert "3 in their order" in str(caught.value)


def test_captions_of_a_triplet_may_be_in_any_order_and_their_number_is_the_id() -> None:
    items = list(read_items("elv-halluc", captions(*CAPTIONS[::-1], *CAPTIONS, "in-video"), None))
    assert [item.id for item in items] == ["1", "2", "3"]
    names = [[answer.name for answer in item.answers] for item in items]  # type: ignore[attr-defined]  # answers
    assert names == [list(CAPTIONS), list(CAPTIONS), ["in_video"]]


def test_captions_of_triplets_with_ids_may_be_in_any_order() -> None:
    rows = [
        {**row, "triplet_id": triplet, "video_id": f"v{triplet}"}
        for triplet in "ab"
        for row in captions(*CAPTIONS)
    ]
    items = list(read_items("elv-halluc", rows[::-2] + rows[::2], None))
    assert sorted(item.id for item in items) == ["va/object/a", "vb/object/b"]
    assert {item.group_id for item in items} == {"va", "vb"}
    # The number of a pair may count from 1 in each video.
    again = [{**row, "triplet_id": 1} for row in rows]
    items = list(read_items("elv-halluc", again[::-2] + again[::2], None))
    assert sorted(item.id for item in items) == ["va/object/1", "vb/object/1"]
    with pytest.raises(ArchiveError, match="answered more than once"):
        read_items("elv-halluc", [*rows, rows[0]], None)
    with pytest.raises(ArchiveError, match="have no ground_truth answer"):
        read_items("elv-halluc", rows[1:], None)


@pytest.mark.parametrize("key", ["video_id", "aspect"])
def test_captions_of_several_videos_or_aspects_are_no_triplet(key: str) -> None:
    rows = [{**row, key: place} for row, place in zip(captions(*CAPTIONS), "aab", strict=True)]
    with pytest.raises(
        ArchiveError, match=rf"triplets have lines with another {key}: 1.*triplet_id"
    ):
        read_items("elv-halluc", rows, None)


@pytest.mark.parametrize("cell", [float("nan"), float("inf"), None])
def test_a_number_that_is_none_is_no_value_of_a_field(cell: float | None) -> None:
    judged = {"question_id": 1, "answers": ["cat"], "response": "A cat.", "judgement": cell}
    [item] = read(VQA, [judged])
    assert item.answers[0].fields["judgement"] == ""


@pytest.mark.parametrize("cell", [float("nan"), float("-inf")])
def test_a_number_that_is_none_is_no_label(cell: float) -> None:
    open_labels = structs.replace(PLAIN, labels=())
    with pytest.raises(ArchiveError, match="label"):
        read(open_labels, [{"question_id": 1, "response": "Yes", "label": cell}])


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (["Yes.", "No."], "response=response.0, response=response.1"),
        (
            [{"role": "user", "content": "?"}, {"role": "gpt", "content": "No."}],
            "response.-1.conte",
        ),
        ({"text": "Yes."}, "response=response.text"),
        (True, r"found true\); write what the model said"),
        ([], "is a list, not a text"),
    ],
)
def test_a_response_that_is_not_one_text_is_an_error_with_the_next_step(
    value: Any, said: str
) -> None:
    for name in ("pope, alone", "hallusion-bench"):
        metric, [known], _ = ARCHIVES[name]
        rows = [{**known, "response": value}]
        with pytest.raises(ArchiveError, match=said):
            read_items(metric, rows, None)


def test_a_list_of_one_text_is_that_text_and_letters_are_joined() -> None:
    (item,) = read_items("pope", [{"question_id": 1, "response": ["Yes."], "label": "yes"}], None)
    assert isinstance(item, AnswersItem)
    assert item.answers[0].response == "Yes."
    clip = {"id": "0", "Choices": ["run", "sit", "jump", "read"], "Correct Answer": "AC"}
    (item,) = read_items("vidhalluc-mcq", [{**clip, "Model Answer": ["A", "C"]}], None)
    assert isinstance(item, AnswersItem)
    assert item.answers[0].response == "A, C"


@pytest.mark.parametrize(
    ("choices", "noted"),
    [
        ("ABCD", ""),
        ("ABC", "1 of 2 questions have other choices than A, B, C, D: A, B, C"),
        ("abcd", "1 of 2 questions have other choices than A, B, C, D: a, b, c, d"),
        ("ABCD ", "1 of 2 questions have choices without a text: D"),
    ],
)
def test_choices_unlike_the_released_ones_are_noted(choices: str, noted: str) -> None:
    """The released script counts such questions, so that they are no error."""
    texts = dict.fromkeys("ABCD", "sitting")
    other = {**dict.fromkeys(choices.strip(), "running"), **({"D": ""} if " " in choices else {})}
    rows = [
        {"id": str(n), "Choices": given, "Correct Answer": "A", "Model Answer": "A"}
        for n, given in enumerate((texts, other))
    ]
    notes = " ".join(read_items("vidhalluc-mcq", rows, None).notes)
    assert noted in notes
    assert bool(noted) is ("choices" in notes)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("temporal.csv", "a,b\n", "the set temporal would be left out"),
        ("temporal.json.gz", "{}", "the set temporal would be left out"),
        ("temporal.json", "[]", "temporal.json: no records"),
    ],
)
def test_a_set_of_a_folder_is_never_left_out_silently(
    tmp_path: Path, name: str, content: str, said: str
) -> None:
    pair = {
        "basic": {"question": "a?", "answer": "yes", "predict": "Yes."},
        "hallucination": {"question": "b?", "answer": "no", "predict": "No."},
    }
    (tmp_path / "semantic_detail.json").write_text(json.dumps([pair]))
    (tmp_path / "temporal_notes.txt").write_text("notes")
    assert len(read_items("video-hallucer", tmp_path, None)) == 1
    (tmp_path / name).write_text(content)
    with pytest.raises(ArchiveError, match=said):
        read_items("video-hallucer", tmp_path, None)


@pytest.mark.parametrize("key", ["triplet_id", "pair_id"])
def test_ids_of_triplets_may_be_numbers_of_a_table(key: str) -> None:
    rows = [{**row, key: number} for number in (7.0, 8.0) for row in captions(*CAPTIONS)]
    assert [item.id for item in read_items("elv-halluc", rows[::-1], None)] == [
        "object/8",
        "object/7",
    ]


PAIR = {
    "basic": {"question": "a?", "answer": "yes", "predict": "Yes."},
    "hallucination": {"question": "b?", "answer": "no", "predict": "No."},
}


def test_pairs_have_one_id_in_a_file_of_a_set_and_in_one_of_all(tmp_path: Path) -> None:
    names = ("semantic_detail", "temporal")
    for name in names:
        (tmp_path / f"{name}.json").write_text(json.dumps([PAIR, PAIR]))
    rows = [{"set": name, **PAIR} for name in names for _ in range(2)]
    ids = [[item.id for item in read_items("video-hallucer", a, None)] for a in (tmp_path, rows)]
    assert ids[0] == ids[1] == [f"{name}/{number}" for name in names for number in range(2)]


@pytest.mark.parametrize("metric", BY_LINE)
def test_a_response_that_is_no_text_is_named_by_file_and_line(metric: str, tmp_path: Path) -> None:
    declared = benchmark_named(metric)
    assert declared is not None
    [path, *_] = [tmp_path / name for name in write_example(metric, tmp_path).files]
    rows = [json.loads(line) for line in path.read_text().splitlines()]
    key = next(each for each in declared.keys.response if each in rows[1])
    rows[1][key] = 5
    path.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    others = [file for file in sorted(tmp_path.iterdir()) if file != path]
    with pytest.raises(ArchiveError) as refused:
        read_items(metric, path, others[0] if others else None)
    assert str(refused.value).startswith(f"{path} line 2: {key!r} is a number, not a text")
