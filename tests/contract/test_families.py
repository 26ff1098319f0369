"""Items and evidence of every family come back from the wire as they were sent."""

from __future__ import annotations

import enum
import types
from collections.abc import Mapping
from typing import Any, Union, get_args, get_origin, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Struct
from support.messages import expected_message

from hallujudge.judge.v1 import answers_pb2, chair_pb2, tri_he_pb2
from hallujudge.judge.v1 import judge_service_pb2 as pb
from hallujudge.judge_service.errors import InvalidInputError
from hallujudge.judge_service.server.request_checks import check_unique, items_from_proto
from hallujudge.judge_service.wire import convert, evidence_types, has_messages
from hallujudge.judge_service.wire.codec import fields_of
from hallujudge.metrics import (
    AnswersEvidence,
    AnswersItem,
    Item,
    ItemResult,
    Outcome,
    Report,
    one_answer,
)
from hallujudge.metrics.argus import ArgusEvidence
from hallujudge.metrics.framework.claims import Triplet, WrittenTriplet
from hallujudge.metrics.framework.results import Item as BaseItem
from hallujudge.metrics.seen_claims import SeenClaimsEvidence
from hallujudge.metrics.tri_he import TriHeEvidence, TriHeItem

texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8)
counts = st.integers(0, 2**31 - 1)
SCALARS: dict[Any, st.SearchStrategy[Any]] = {
    str: texts,
    int: counts,
    float: st.floats(allow_nan=False, allow_infinity=False),
    bool: st.booleans(),
    bytes: st.binary(max_size=8),
    types.NoneType: st.none(),
    Triplet: st.builds(Triplet, texts, texts, texts)
    | st.builds(WrittenTriplet, texts, texts, texts, written=texts),
}
JUDGING = st.lists(
    st.fixed_dictionaries(
        {
            "judge": texts,
            "answered": counts,
            "declined": st.dictionaries(
                texts, st.fixed_dictionaries({"claims": counts, "detail": texts}), max_size=2
            ),
            "calls": counts,
            "prompt_tokens": counts,
            "cached_tokens": counts,
            "completion_tokens": counts,
            "latency_seconds": SCALARS[float],
            "cost": st.none() | SCALARS[float],
            "reused": counts,
        }
    ),
    max_size=2,
).map(tuple)
# Fields whose hints say less than what is sent.
FIELDS: dict[tuple[type, str], st.SearchStrategy[Any]] = {
    (TriHeEvidence, "judging"): JUDGING,
    (AnswersEvidence, "judging"): JUDGING,
    (ArgusEvidence, "judging"): JUDGING,
    (SeenClaimsEvidence, "judging"): JUDGING,
    (TriHeItem, "claims"): st.none() | st.lists(SCALARS[Triplet], max_size=2).map(tuple),
}


def some(hint: Any) -> st.SearchStrategy[Any]:
    """Return values of a type hint."""
    origin, arguments = get_origin(hint), get_args(hint)
    if hint in SCALARS:
        return SCALARS[hint]
    if origin in (Union, types.UnionType):
        return st.one_of(*map(some, arguments))
    if origin is tuple and arguments[-1] is ...:
        return st.lists(some(arguments[0]), max_size=3).map(tuple)
    if origin is tuple:
        return st.tuples(*map(some, arguments))
    if origin is Mapping or getattr(origin, "__name__", "") == "Mapping":
        return st.dictionaries(texts, some(arguments[1]), max_size=3)
    if isinstance(hint, type) and issubclass(hint, enum.Enum):
        return st.sampled_from(hint)
    return built(hint)


def built(value_type: Any) -> st.SearchStrategy[Any]:
    """Return values with all fields of their type."""
    hints = get_type_hints(value_type)
    names = [field.name for field in fields_of(value_type)]
    return st.builds(
        value_type,
        **{
            name: FIELDS[value_type, name] if (value_type, name) in FIELDS else some(hints[name])
            for name in names
        },
    )


def texts_of(value: Any) -> list[str]:
    """Return what equality of triplets does not compare: their text in their file."""
    if isinstance(value, Triplet):
        return [value.written]
    if isinstance(value, tuple):
        return [text for part in value for text in texts_of(part)]
    if isinstance(value, Struct):
        return [t for name in value.__struct_fields__ for t in texts_of(getattr(value, name))]
    return []


@pytest.mark.parametrize("kind", convert.TASKS)
def test_items_of_every_family(kind: str) -> None:
    @given(built(convert.TASKS[kind]))
    def check(item: Item) -> None:
        sent = convert.item_to_proto(item).SerializeToString()
        back = convert.item_from_proto(pb.Item.FromString(sent))
        assert back == item
        assert texts_of(back) == texts_of(item)
        # A page keeps only such items, and finds their type by the name of its module.
        assert has_messages(type(item))

    check()


@pytest.mark.parametrize("evidence_type", evidence_types())
def test_evidence_of_every_family(evidence_type: type) -> None:
    @given(built(evidence_type))
    def check(found: Any) -> None:
        result = ItemResult(id="1", group_id="a", outcome=Outcome.SCORED, evidence=found)
        sent = convert.result_to_proto(result).SerializeToString()
        back = convert.result_from_proto(pb.ItemResult.FromString(sent))
        assert back == result
        assert texts_of(back.evidence) == texts_of(found)

    check()


def test_every_task_and_evidence_on_the_wire_is_tried() -> None:
    oneofs = pb.Item.DESCRIPTOR.oneofs_by_name
    assert {field.name for field in oneofs["task"].fields} == set(convert.TASKS)
    evidence = pb.ItemResult.DESCRIPTOR.oneofs_by_name["evidence"]
    assert {field.message_type.name for field in evidence.fields if field.message_type} == {
        cls.__name__ for cls in evidence_types()
    }


def test_notes_of_a_report_reach_the_client() -> None:
    report = convert.report_from_proto(convert.report_to_proto(_report(notes=("Quote this.",))))
    assert report.notes == ("Quote this.",)


def _report(notes: tuple[str, ...]) -> Report:
    from hallujudge.metrics import Coverage

    return Report(
        metric="chair",
        variant="published",
        signature="s",
        scores={},
        coverage=Coverage(items=0, scored=0, unscored=0),
        notes=notes,
    )


# What is wrong is named by its place in the request.


def test_all_items_that_are_wrong_are_named() -> None:
    chair, pope = (
        pb.Item(id="1", chair=chair_pb2.ChairTask()),
        pb.Item(id="2", answers=answers_pb2.AnswersTask()),
    )
    messages = [chair, pb.Item(id="3"), pb.Item(chair=chair_pb2.ChairTask()), pope]
    with pytest.raises(InvalidInputError) as caught:
        items_from_proto(messages, convert.TASKS["chair"], within="batch.items")
    assert [violation.field for violation in caught.value.violations] == [
        "batch.items[1].task",
        "batch.items[2].id",
        "batch.items[3].answers",
    ]
    assert caught.value.message.startswith("batch.items[1].task: is missing")
    assert "3 of 4 items" in caught.value.message
    told = "".join(v.description for v in caught.value.violations) + caught.value.message
    assert not any(cls.__name__ in told for cls in convert.TASKS.values())


@pytest.mark.parametrize(
    ("field", "content"),
    [("response", 5), ("response", "half a character \ud800"), ("id", 5), ("label", 1.5)],
)
def test_a_field_that_cannot_be_sent_is_named(field: str, content: Any) -> None:
    given = {"id": "1", "response": "Yes.", "label": "yes"} | {field: content}
    item = one_answer(**given)
    place = field if field == "id" else f"answers.answers.{field}"
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.wire.fields:is-not-value-that-can-be-sent", place),
    ):
        convert.item_to_proto(item)


def test_items_of_the_metric_are_taken() -> None:
    (item,) = items_from_proto([pb.Item(id="1", answers=answers_pb2.AnswersTask())], AnswersItem)
    assert isinstance(item, BaseItem)


def test_equal_ids_are_named() -> None:
    items = [one_answer(id=name, response=None, label="yes") for name in ("1", "2", "1")]
    with pytest.raises(
        InvalidInputError,
        match=expected_message("judge_service.server.request_checks:items-id-is-also-the-id-of"),
    ):
        check_unique(items)


def test_a_claim_that_is_neither_triplet_nor_sentence() -> None:
    result = pb.ItemResult(
        outcome=pb.OUTCOME_SCORED,
        tri_he=tri_he_pb2.TriHeEvidence(
            claims=[
                tri_he_pb2.ClaimVerdict(sentence="a", verdict=tri_he_pb2.VERDICT_SUPPORTED),
                tri_he_pb2.ClaimVerdict(verdict=tri_he_pb2.VERDICT_SUPPORTED),
            ]
        ),
    )
    with pytest.raises(InvalidInputError, match=r"^result\.tri_he\.claims\[1\]\.claim: needs a"):
        convert.result_from_proto(result)


def test_an_outcome_that_is_never_sent() -> None:
    with pytest.raises(
        InvalidInputError,
        match=expected_message("sdk.runs.result_files:resultoutcome-is-not-known-outcome"),
    ):
        convert.result_from_proto(pb.ItemResult(id="1"))
