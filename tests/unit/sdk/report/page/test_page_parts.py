"""Parts of a page: columns and details of a batch."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from support import report_samples as samples

from hallujudge.metrics import (
    AnswersEvidence,
    AnswersItem,
    AnswerVerdict,
    Item,
    ItemResult,
    Outcome,
)
from hallujudge.metrics.chair import ChairItem
from hallujudge.sdk import Client
from hallujudge.sdk.backends import BatchResult
from hallujudge.sdk.report.page.page_parts import (
    columns_json,
    page_part,
    read_columns,
    read_details,
)


def columns_of(*batches: Sequence[tuple[Any, ItemResult]]) -> dict[str, Any]:
    parts = [page_part(batch) for batch in batches]
    return columns_json([read_columns(parts)])


def test_columns_have_an_entry_for_each_item() -> None:
    columns = columns_of(
        [samples.caption("1"), samples.unscored_caption("2")], [samples.caption("3")]
    )
    [side] = columns["sides"]
    assert columns["ids"] == ["1", "2", "3"]
    assert (side["wrong"], side["total"]) == ([1, 0, 1], [2, 0, 2])
    assert side["unscored"] == [0, 1, 0]
    assert columns["reasons"] == ["RESPONSE_MISSING: the caption is null"]
    assert side["measures"]["words"] == [5, None, 5]
    assert side["measures"]["score:chair_i"] == [0.5, None, 0.5]
    assert side["positions"] == [[12], [], [12]]


def test_terms_are_numbers_of_a_dictionary() -> None:
    columns = columns_of([samples.caption("1")])
    [side] = columns["sides"]
    words = columns["dictionary"]
    assert [words[code] for code in side["terms"]["hallucinated"][0]] == ["dog"]
    assert [words[code] for code in side["terms"]["missed"][0]] == ["bed"]


def test_facets_tell_scored_from_unscored_and_hold_the_fields_of_the_input() -> None:
    item = ChairItem(id="1", response="A dog.", reference_objects=())
    results = [
        ItemResult(id=str(n), group_id="", outcome=Outcome.SCORED, fields={"category": value})
        for n, value in enumerate(("a", "b", "a"))
    ]
    columns = columns_of([(item, result) for result in results], [samples.unscored_caption("2")])
    assert columns["facetValues"]["field:category"][:2] == ["a", "b"]
    assert columns["sides"][0]["facets"]["field:category"][:3] == [0, 1, 0]
    assert columns["facetValues"]["status"] == ["scored", "RESPONSE_MISSING"]


def test_a_facet_of_one_value_or_of_very_many_is_left_out() -> None:
    item = ChairItem(id="1", response="A dog.", reference_objects=())
    many = [
        ItemResult(id=str(n), group_id="", outcome=Outcome.SCORED, fields={"n": str(n), "one": "1"})
        for n in range(300)
    ]
    assert columns_of([(item, result) for result in many])["facetValues"] == {}


def test_a_facet_of_ids_is_left_out() -> None:
    item = ChairItem(id="1", response="A dog.", reference_objects=())
    fields = [{"clip": f"v{n}", "scene": f"s{n // 2}"} for n in range(60)]
    results = [
        ItemResult(id=str(n), group_id="", outcome=Outcome.SCORED, fields=each)
        for n, each in enumerate(fields)
    ]
    assert list(columns_of([(item, r) for r in results])["facetValues"]) == ["field:scene"]


def test_a_field_names_its_chart() -> None:
    item = ChairItem(id="1", response="A dog.", reference_objects=())
    fields = {"order_sensitive": "true"}
    result = ItemResult(id="1", group_id="", outcome=Outcome.SCORED, fields=fields)
    charts = read_columns([page_part([(item, result)])]).charts["facets"]
    assert charts["field:order_sensitive"] == ["Order sensitive", True]


def columns_of_infact() -> dict[str, Any]:
    rows = [
        {"question_id": n, "operator": "base", "label": "A", "response": answer, "dimension": d}
        for n, (answer, d) in enumerate((("A", "factuality"), ("B", "faithfulness")))
    ]
    parts: list[bytes] = []

    def keep(batch: BatchResult) -> None:
        parts.append(page_part(zip(batch.items, batch.results, strict=True)))

    with Client.embedded() as client:
        client.score(
            "infact",
            responses=[
                *rows,
                {**rows[0], "operator": "shuffle", "response": "B", "order_sensitive": False},
            ],
            group_by=("dimension",),
            on_batch=lambda done: parts.append(
                page_part(zip(done.items, done.results, strict=True))
            ),
        )
    return columns_json([read_columns(parts)])


def test_a_field_that_repeats_a_facet_of_the_metric_is_left_out() -> None:
    evidence = AnswersEvidence(
        answers=(AnswerVerdict("basic", "yes", "yes", correct=True, how="word"),)
    )
    rows = [
        (
            AnswersItem(id=name, fields={"set": name}),
            ItemResult(
                id=name,
                group_id="",
                outcome=Outcome.SCORED,
                evidence=evidence,
                fields={"set": name},
            ),
        )
        for name in ("temporal", "fact_detect")
    ]
    values = columns_json([read_columns([page_part(rows)])])["facetValues"]
    assert sorted(values["set"]) == ["fact_detect", "temporal"]
    assert "field:set" not in values
    assert "field:dimension" in columns_of_infact()["facetValues"]


def test_each_item_has_words_for_its_verdicts() -> None:
    answer = ItemResult(id="2", group_id="", outcome=Outcome.SCORED, evidence=samples.WRONG_ANSWER)
    part = page_part([samples.caption("1"), (Item(id="2"), answer)])
    told = [detail["words"] for [detail] in read_details(part)]
    assert told == [["supported", "hallucinated"], ["right", "wrong"]]


def test_short_answers_are_listed_with_what_they_answer() -> None:
    [side] = columns_of_infact()["sides"]
    assert side["snippet"] == ["base: A · shuffle: B", "B"]


def test_parts_are_a_pure_function_of_their_items() -> None:
    assert page_part([samples.caption("1")]) == page_part([samples.caption("1")])


@given(st.text(max_size=40), st.text(max_size=20))
def test_any_text_makes_valid_data(text: str, name: str) -> None:
    part = page_part([samples.caption(name, text, ()), samples.unscored_caption(name)])
    [[detail], [other]] = read_details(part)
    assert len(detail["passages"][0]["text"]) == len(text)  # type: ignore[index, call-overload, arg-type]  # a passage
    assert other["claims"] == []
    assert json.loads(json.dumps(columns_json([read_columns([part])])))
