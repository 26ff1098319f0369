"""Fields of signatures, hashes of records and their sums."""

from __future__ import annotations

import random
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import pytest

from hallujudge.metrics import ItemResult, Outcome
from hallujudge.metrics.framework.signature import (
    SIGNATURE_FIELDS,
    DataSums,
    data_fields,
    differing_fields,
    media_name,
    same_but_versions,
    shown_apart,
    unmarked_judges,
)

ROOT = Path(__file__).resolve().parents[4]


def digest(record: object) -> str:
    return blake2b(repr(record).encode(), digest_size=8).hexdigest()


def result(
    name: str, group: str = "a", question: str = "", reference: object = "yes"
) -> ItemResult:
    return ItemResult(
        id=name,
        group_id=group,
        outcome=Outcome.SCORED,
        question_hash=question and digest(question),
        reference_hash=digest(reference),
    )


def sums(results: Sequence[ItemResult]) -> tuple[str, str]:
    made = DataSums()
    made.add(results)
    return made.texts()


RESULTS = [result(str(n), str(n // 3), f"Is there a {n}?", ["cat", n]) for n in range(20)]


def test_the_fields_and_their_order_are_pinned() -> None:
    assert " ".join(SIGNATURE_FIELDS) == (
        "var decl match graph count threshold objects behaviors domain nouns words extract avg "
        "unparsed mode tentative judgements ratings verdicts encoder correctness soft "
        "shown judge "
        "prompts asked panel responses thoughts template ci n unscored items refs v labels "
        "calibrated"
    )
    assert all(text and not text.endswith(".") for text in SIGNATURE_FIELDS.values())


def test_the_page_explains_the_fields_in_their_order() -> None:
    page = (ROOT / "docs/reference/signature.md").read_text(encoding="utf-8")
    rows = "".join(f"| `{key}` | {text} |\n" for key, text in SIGNATURE_FIELDS.items())
    assert f"|---|---|\n{rows}\n" in page


def test_sums_are_pinned() -> None:
    assert sums(RESULTS) == ("e6629b38707afb89d62c38145a8e4ba1", "24dc90be5d384c151deb83ec9b1b72d9")
    made = DataSums()
    made.add(RESULTS)
    assert data_fields(*made.texts()) == (("items", "e6629b38"), ("refs", "24dc90be"))


def test_sums_depend_on_neither_order_nor_parts() -> None:
    shuffled = list(RESULTS)
    random.Random(1).shuffle(shuffled)
    merged = DataSums()
    for part in (shuffled[:7], shuffled[7:8], shuffled[8:], []):
        piece = DataSums()
        piece.add(part)
        merged.merge(DataSums(*piece.to_json()))
    assert merged.texts() == sums(RESULTS)


def test_each_sum_moves_with_its_own_records() -> None:
    items, references = sums(RESULTS)
    fewer = sums(RESULTS[1:])
    assert fewer[0] != items
    assert fewer[1] != references
    other_image = sums([result("0", "z", "Is there a 0?", ["cat", 0]), *RESULTS[1:]])
    assert other_image[0] != items
    assert other_image[1] == references
    other_reference = sums([result("0", "0", "Is there a 0?", ["dog", 0]), *RESULTS[1:]])
    assert other_reference[0] == items
    assert other_reference[1] != references


def test_swapped_references_do_not_cancel_out() -> None:
    right = [result("1", reference="yes"), result("2", reference="no")]
    swapped = [result("1", reference="no"), result("2", reference="yes")]
    assert sums(right)[1] != sums(swapped)[1]


def test_neighbouring_texts_are_told_apart() -> None:
    assert sums([result("12", "3")])[0] != sums([result("1", "23")])[0]


@pytest.mark.parametrize(
    ("path", "name"),
    [
        ("val2014/COCO_val2014_000000000042.jpg", "COCO_val2014_000000000042"),
        ("clip.MP4", "clip"),
        ("clip.2", "clip.2"),
        ("42", "42"),
        ("", ""),
    ],
)
def test_names_of_media_have_no_folder_and_extension(path: str, name: str) -> None:
    assert media_name(path) == name
    assert sums([result("1", path)]) == sums([result("1", name)])


def test_one_item_without_a_hash_makes_the_sums_unknown() -> None:
    old = ItemResult(id="9", group_id="a", outcome=Outcome.SCORED)
    assert sums([*RESULTS, old]) == ("", "")
    made = DataSums()
    made.add([old])
    assert data_fields(*made.texts()) == ()


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("judge:m|v:1", "judge:m (vllm 0.32.0)|v:1", True),
        ("judge:m (vllm 0.32.0)|v:1", "judge:m (vllm 0.33.0)|v:1", False),
        ("judge:m|v:1", "judge:n (vllm 0.32.0)|v:1", False),
        ("judge:m>n (vllm 2)|v:1", "judge:m (vllm 1)>n (vllm 2)|v:1", True),
        ("judge:m (vllm 2)>n|v:1", "judge:m (vllm 1)>n (vllm 2)|v:1", True),
        ("judge:m (vllm 3)>n|v:1", "judge:m (vllm 1)>n (vllm 2)|v:1", False),
    ],
)
def test_a_version_that_was_unknown_is_no_change(one: str, other: str, same: bool) -> None:
    assert same_but_versions(one, other) is same
    assert same_but_versions(other, one) is same


def test_what_margins_mean_makes_no_other_judge_and_is_told_apart() -> None:
    old = {"judge": "m,prompt,temperature=0.0,top_logprobs=8,constraint=choice"}
    new = {"judge": f"{old['judge']},masked=yes"}
    routed = {"judge": f"m>n,llm.top_logprobs=8,llm.masked=yes,fallback.{new['judge']}"}
    assert differing_fields(old, new) == []
    assert differing_fields(new, {"judge": f"{new['judge']},abstain=yes"}) == ["judge"]
    assert differing_fields(new, routed) == ["judge"]
    silent = "m,prompt,temperature=0.0"
    names = {"a": new["judge"], "b": old["judge"], "c": "", "d": silent, "e": routed["judge"]}
    assert unmarked_judges(names) == ["b"]
    assert unmarked_judges({"b": old["judge"], "c": old["judge"]}) == []


def test_long_values_are_shown_where_they_differ() -> None:
    assert shown_apart("tuned", "strict", 10) == ("tuned", "strict")
    same = "llm=model;" * 20
    one, other = shown_apart(f"{same}prompt=a", f"{same}prompt=b;{same}", 40)
    assert one.startswith("…")
    assert one.endswith("prompt=a")
    assert "prompt=b" in other
    assert other.endswith("…")
    assert len(other) == 42
    # One value may be the beginning of the other.
    assert shown_apart(same, f"{same}x", 40)[1].endswith("llm=model;x")
