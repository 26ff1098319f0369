"""How runs are paired: by id or by question, over the same references or not at all."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from support.messages import expected_message
from support.running import read_rows

from hallujudge.metrics.framework.signature import signature_field
from hallujudge.sdk import (
    Client,
    CompareOptions,
    GateLimits,
    RunReport,
    changed_items,
    compare,
    gate,
    leaderboard,
    read_run,
)
from hallujudge.sdk.errors import InvalidInputError

FAST = CompareOptions(replicates=300, names=("a", "b"))
CAPTIONS = {str(n): f"A dog and a cat, {n}." for n in range(8)}
OBJECTS = {name: ["dog", "cat"] for name in CAPTIONS}
HALF = OBJECTS | {str(n): ["dog"] for n in range(4)}


def chair(
    references: Mapping[str, Sequence[str]],
    responses: Mapping[str, str] = CAPTIONS,
    folder: Path | None = None,
) -> RunReport:
    with Client.embedded() as client:
        return client.score(
            "chair",
            responses=responses,
            references=references,
            folder=folder,
            keep_items=folder is None,
        )


def data_of(report: RunReport) -> tuple[str, str]:
    return signature_field(report.signature, "items"), signature_field(report.signature, "refs")


def test_other_references_are_refused_by_name() -> None:
    whole, half = chair(OBJECTS), chair(HALF)
    assert data_of(whole)[0] == data_of(half)[0]
    assert data_of(whole)[1] != data_of(half)[1]
    said = expected_message("sdk.comparison.compared_runs:references-differ")
    with pytest.raises(InvalidInputError, match=said):
        compare(whole, half, options=FAST)
    with pytest.raises(InvalidInputError, match=said):
        leaderboard(whole, half, options=FAST)
    with pytest.raises(InvalidInputError, match=said):
        gate(whole, baseline=half, limits=GateLimits(max_regression={"chair_i": 0}), options=FAST)


def test_other_references_can_be_allowed_and_are_then_noted() -> None:
    found = compare(chair(OBJECTS), chair(HALF), options=replace(FAST, allow=("refs",)))
    assert found.notes[0].startswith(
        "The references of 4 of 8 items differ between a and b, such as those of item '0'."
    )
    assert sum("refs" in note or "references" in note for note in found.notes) == 1


def test_order_and_form_of_files_change_no_hash(tmp_path: Path) -> None:
    lines = [
        json.dumps({"image_id": name, "objects": [*reversed(objects), "dog"]}) + "\n"
        for name, objects in reversed(OBJECTS.items())
    ]
    (tmp_path / "objects.jsonl").write_text("".join(lines))
    with Client.embedded() as client:
        other = client.score(
            "chair",
            responses=dict(reversed(CAPTIONS.items())),
            references=tmp_path / "objects.jsonl",
        )
    first = chair(OBJECTS)
    assert (other.item_set, other.references) == (first.item_set, first.references)
    assert data_of(other) == (first.item_set[:8], first.references[:8])
    assert compare(first, other, options=FAST)["chair_i"].difference == 0


def test_a_part_of_the_items_is_compared_over_what_both_have() -> None:
    part = chair(HALF, {name: text for name, text in CAPTIONS.items() if int(name) >= 4})
    assert data_of(part)[0] != data_of(chair(OBJECTS))[0]
    found = compare(chair(OBJECTS), part, options=FAST)
    assert found.pairs[0].coverage.only_first == 4
    assert not any("references" in note for note in found.notes)


def test_unscored_items_count_in_both_hashes() -> None:
    silent = chair(OBJECTS, dict.fromkeys(CAPTIONS, ""))
    assert silent.coverage.scored == 0
    assert data_of(silent) == data_of(chair(OBJECTS))


def test_a_run_without_hashes_can_not_be_checked(tmp_path: Path) -> None:
    chair(HALF, folder=tmp_path / "a")
    items = tmp_path / "a" / "items.jsonl"
    rows = read_rows(items)
    for row in rows:
        del row["reference_hash"]
    items.write_text("".join(f"{json.dumps(row)}\n" for row in rows))
    found = compare(tmp_path / "a", chair(OBJECTS), options=FAST)
    assert expected_message("sdk.comparison.compared_runs:cant-be-checked") in found.notes[0]


def test_a_stored_run_has_the_hashes_of_its_report(tmp_path: Path) -> None:
    report = chair(OBJECTS, folder=tmp_path / "a")
    run = read_run(tmp_path / "a")
    assert data_of(report) == (run.report.item_set[:8], run.report.references[:8])
    again = run.tally().finish(run.interval, version=run.release)
    assert (again.item_set, again.references) == (report.item_set, report.references)


def pope(rows: Sequence[Mapping[str, Any]]) -> RunReport:
    """Return a run of answers that carry their question and label."""
    with Client.embedded() as client:
        return client.score("pope", responses=list(rows), keep_items=True)


QUESTIONS = [
    {
        "question_id": n,
        "image": f"COCO_val2014_{n // 3:012}.jpg",
        "question": f"Is there a {['dog', 'cat', 'cup'][n % 3]} in the image?",
        "label": "yes" if n % 2 else "no",
    }
    for n in range(12)
]
WITH_IMAGES = [{**row, "answer": "yes"} for row in QUESTIONS]


def without(key: str, rows: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    return [{name: value for name, value in row.items() if name != key} for row in rows]


@pytest.mark.parametrize("turned", [False, True])
def test_a_log_without_images_is_paired_by_id_and_question(turned: bool) -> None:
    runs = [pope(WITH_IMAGES), pope(without("image", WITH_IMAGES))]
    found = compare(*reversed(runs) if turned else runs, options=FAST)
    assert found.pairs[0].coverage.compared == 12
    assert found["accuracy"].clusters == 4, "images, which one of the logs knows"
    assert found["accuracy"].difference == 0


def test_other_questions_under_the_ids_of_a_log_without_images_are_refused() -> None:
    moved = [
        {**row, "question": QUESTIONS[n - 1]["question"]}
        for n, row in enumerate(without("image", WITH_IMAGES))
    ]
    with pytest.raises(
        InvalidInputError,
        match=expected_message("sdk.comparison.compared_runs:item-belongs-to-in-and-to-in"),
    ):
        compare(pope(WITH_IMAGES), pope(moved), options=FAST)


def test_other_ids_are_paired_by_image_and_question() -> None:
    # Another order, ids by position, and the image's name without folder and extension.
    other = [
        {
            **row,
            "question_id": place,
            "image": f"val2014/{row['image']}",
            "answer": "no" if row["question_id"] == 5 else "yes",
        }
        for place, row in enumerate(reversed(WITH_IMAGES), 100)
    ]
    pair = (pope(WITH_IMAGES), pope(other))
    found = compare(*pair, options=FAST)
    assert found.pairs[0].coverage.compared == 12
    assert found["accuracy"].clusters == 4
    assert expected_message("sdk.comparison.compared_runs:are-paired") in found.notes[0]
    [change] = changed_items(*pair, options=FAST)
    assert (change.id, change.change, change.responses) == ("5", "worse", ("yes", "no"))
    assert leaderboard(*pair, options=FAST).items == 12


@pytest.mark.parametrize("first", [1, 500])
@pytest.mark.parametrize("turned", [False, True])
def test_other_ids_without_images_are_paired_by_the_order_of_questions(
    first: int, turned: bool
) -> None:
    other = [
        {**row, "question_id": n, "answer": "no" if n == first + 5 else "yes"}
        for n, row in enumerate(without("image", WITH_IMAGES), first)
    ]
    pair = [pope(WITH_IMAGES), pope(other)]
    found = compare(*reversed(pair) if turned else pair, options=FAST)
    assert (found.pairs[0].coverage.compared, found["accuracy"].clusters) == (12, 4)
    assert expected_message("sdk.comparison.compared_runs:are-paired-by-order") in found.notes[0]
    assert [change.change for change in changed_items(*pair, options=FAST)] == ["worse"]


def test_a_few_items_that_questions_pair_do_not_stand_for_a_run() -> None:
    rare = {**WITH_IMAGES[0], "question": "Is there a snowboard?"}
    rows = [rare, *WITH_IMAGES[1:]]
    other = [
        {**row, "question_id": n}
        for n, row in enumerate(reversed(without("image", [*rows[1:5], rare, *rows[5:]])), 1)
    ]
    with pytest.raises(
        InvalidInputError,
        match=expected_message("sdk.comparison.compared_runs:give-images-or-ids"),
    ):
        compare(pope(rows), pope(other), options=FAST)


def test_one_question_in_any_order_pairs_nothing() -> None:
    asked = [{**row, "question": "Is it a photo?"} for row in WITH_IMAGES]
    other = [{**row, "question_id": n} for n, row in enumerate(without("image", asked), 500)]
    with pytest.raises(InvalidInputError, match="no item id is in all runs"):
        compare(pope(asked), pope(other), options=FAST)


def test_labels_that_differ_are_other_references_whatever_the_ids() -> None:
    other = [{**row, "question_id": 100 + n, "label": "yes"} for n, row in enumerate(WITH_IMAGES)]
    with pytest.raises(
        InvalidInputError, match="the references of 6 of 12 items differ between a and b"
    ):
        compare(pope(WITH_IMAGES), pope(other), options=FAST)
