"""Records of every family's items: the question, and what a response is compared with."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from msgspec import structs
from support.metric_runs import RUNS

from hallujudge.judge_service.engine.pipelines import record_hash
from hallujudge.judge_service.engine.registry import metric_entry
from hallujudge.judge_service.engine.spec import metric_of
from hallujudge.judge_service.wire import item_types
from hallujudge.metrics import Answer, AnswersItem, Item
from hallujudge.metrics.amber.descriptions import AmberObject
from hallujudge.metrics.families import metric_names
from hallujudge.metrics.framework.claims import Triplet
from hallujudge.metrics.framework.results import Picture
from hallujudge.metrics.framework.signature import SIGNATURE_FIELDS, parsed_signature
from hallujudge.metrics.seen_claims import CloserLook
from hallujudge.sdk import Client

# What a model wrote, and what was made of it or judged: no part of the item or its reference.
RESPONSES = {
    *("response", "thought", "claims", "human_scores", "predicted_objects", "predicted_behaviors"),
    *("nouns", "nouns_given", "judgement", "correctness", "same", "lines", "problem"),
}
# In the item's own record, or only for groups of scores.
OWN = {"id", "group_id", "fields", "subcategory"}
# The association table is a resource of the run, not a reference of an item.
RESOURCES = {"vocabulary"}
MADE: Mapping[str, object] = {
    "reference_triplets": (Triplet("cat", "on", "mat"),),
    "objects": (AmberObject(word="cat"),),
    "targets": (AmberObject(word="dog", associated=("bone",)),),
    "options": {"A": "red"},
    "pictures": (Picture(data=b"cat", media_type="image/png", width=1, height=1),),
    "seconds": 2.5,
    "looks": (CloserLook(kind="object", of="cat", pictures=()),),
    "answers": (Answer(response="Yes.", label="no", question="Is there a cat?"),),
}


def hashes(item: Item) -> tuple[str, str]:
    question, reference = map(record_hash, item.records())
    return question, reference


def other(name: str, value: Any) -> object:
    """Return another value of a field."""
    if name in MADE:
        return MADE[name]
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value + 1
    if isinstance(value, str):
        return f"{value}x"
    if name == "episode_length":
        return 7
    return (*(value or ()), "zebra")


def trial(task: str) -> Item:
    kind = item_types()[task]
    return next(
        entry.trial.item
        for entry in map(metric_entry, metric_names())
        if type(entry.trial.item) is kind
    )


@pytest.mark.parametrize("task", item_types())
def test_every_field_but_the_response_moves_a_hash(task: str) -> None:
    item = trial(task)
    for field in structs.fields(item):
        if field.name in OWN | RESPONSES | RESOURCES:
            continue
        change: dict[str, Any] = {field.name: other(field.name, getattr(item, field.name))}
        changed = structs.replace(item, **change)
        assert hashes(changed) != hashes(item), field.name


@pytest.mark.parametrize("task", item_types())
def test_the_response_moves_no_hash(task: str) -> None:
    item = trial(task)
    for field in structs.fields(item):
        if field.name in RESPONSES:
            change: dict[str, Any] = {field.name: "whatever"}
            changed = structs.replace(item, **change)
            assert hashes(changed) == hashes(item), field.name


@pytest.mark.parametrize("others", [(), (Answer(name="other", response="No.", label="no"),)])
def test_an_answer_moves_no_hash_but_its_question_does(others: tuple[Answer, ...]) -> None:
    item: Any = trial("answers")
    answer = Answer(response="Yes.", label="yes", name="base")
    of = structs.replace(item, answers=(answer, *others))

    def with_other(**change: Any) -> Item:
        changed: Item = structs.replace(of, answers=(structs.replace(answer, **change), *others))
        return changed

    assert hashes(with_other(response="No.", fields={"confidence": "1"})) == hashes(of)
    assert hashes(structs.replace(of, answers=of.answers[::-1])) == hashes(of)
    about = {"fields": {"reference": "A cat."}}
    for change in ({"label": "no"}, {"question": "Sure?"}, {"options": {"A": "red"}}, about):
        assert hashes(with_other(**change)) != hashes(of)


def test_a_question_is_the_same_whichever_of_its_conditions_were_run() -> None:
    base = Answer(
        response="A",
        label="A",
        name="base",
        options={"A": "red", "B": "blue"},
        fields={"order_sensitive": "true", "confidence": "0.5"},
    )
    shuffled = structs.replace(
        base, name="shuffle", response="B", fields={"order_sensitive": "true"}
    )
    one, two = (AnswersItem(id="q1", answers=run) for run in ((base,), (base, shuffled)))
    assert hashes(one) == hashes(two)
    for change in ({"label": "B"}, {"options": {"A": "red"}}, {"fields": {"order_sensitive": ""}}):
        moved = structs.replace(base, **change)
        assert hashes(AnswersItem(id="q1", answers=(moved,))) != hashes(one)


def test_records_have_one_order() -> None:
    item: Any = trial("chair")
    objects = [structs.replace(item, reference_objects=of) for of in (("b", "a", "a"), ("a", "b"))]
    assert len(set(map(hashes, objects))) == 1
    unknown, nothing = (structs.replace(item, reference_objects=of) for of in (None, ()))
    assert hashes(unknown) != hashes(nothing)


@pytest.mark.parametrize("name", metric_names())
def test_signatures_use_declared_fields_in_their_order(name: str) -> None:
    used = [key for key, _ in metric_of(name, "", {}).signature.fields]
    order = list(SIGNATURE_FIELDS)
    assert used == sorted(used, key=order.index)


@pytest.mark.parametrize("name", list(RUNS))
def test_signatures_of_runs_have_the_fields_that_the_metric_lists(name: str) -> None:
    names = metric_entry(name).metric.signature_names()
    with Client.embedded() as client:
        report = client.score(name, **RUNS[name]())
    used = list(parsed_signature(report.signature))
    assert [name for name in used if name not in names] == []
    assert {"var", "n", "items", "refs", "v"} <= {*names}


@pytest.mark.parametrize("name", list(RUNS))
def test_signatures_say_how_the_model_was_asked(name: str) -> None:
    run = RUNS[name]()
    asked = {"prompts": "0123abcd", "asked": "chat-plain"}
    with Client.embedded() as client:
        report = client.score(name, **{**run, "options": {**run.get("options", {}), **asked}})
    used = parsed_signature(report.signature)
    assert {field: used.get(field) for field in asked} == asked
