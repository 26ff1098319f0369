"""Batches of items, and the reasons for unscored items and claims."""

from __future__ import annotations

from dataclasses import dataclass

from hallujudge.metrics import Item, ItemResult, Outcome
from hallujudge.metrics.framework.claims import ClaimVerdict, Sentence, Verdict
from hallujudge.metrics.framework.results import JsonValue
from hallujudge.sdk.runs.parts import UnscoredCounts, batches_of
from hallujudge.sdk.runs.worker import item_groups


def items(*images: tuple[str, int]) -> list[Item]:
    return [
        Item(id=f"{image}-{number}", group_id=image)
        for image, count in images
        for number in range(count)
    ]


def test_items_of_one_image_stay_together() -> None:
    made = [len(batch) for batch in batches_of(items(("a", 60), ("b", 10), ("c", 3)))]
    assert made == [70, 3]


def test_an_image_with_many_items_is_divided() -> None:
    assert [len(batch) for batch in batches_of(items(("a", 300)))] == [128, 128, 44]


def test_items_without_an_image_fill_batches() -> None:
    assert [len(batch) for batch in batches_of(items(("", 130)))] == [64, 64, 2]


def test_groups_of_one_batch_keep_images_whole() -> None:
    groups = list(item_groups(iter(items(("a", 60), ("b", 10), ("c", 3))), 5, 64, 1))
    assert [(group.first, group.size) for group in groups] == [(5, 70), (75, 3)]


@dataclass(frozen=True)
class PlugInEvidence:
    """Evidence as a plug-in may have it: its class alone does not show that it has claims."""

    claims: tuple[ClaimVerdict, ...]

    def to_json(self) -> dict[str, JsonValue]:
        return {}


def test_claims_of_any_evidence_are_counted() -> None:
    unscored = ClaimVerdict(
        triplet=Sentence("A dog."),
        judge="llm",
        verdict=Verdict.UNSCORED,
        reason="JUDGE_FAILED",
        detail="timed out",
    )
    results = [
        ItemResult(id="1", group_id="1", outcome=Outcome.SCORED),
        ItemResult(
            id="2", group_id="2", outcome=Outcome.SCORED, evidence=PlugInEvidence((unscored,) * 2)
        ),
        ItemResult(id="3", group_id="3", outcome=Outcome.UNSCORED, reason="RESPONSE_MISSING"),
    ]
    counts = UnscoredCounts()
    counts.add(results)
    assert counts.to_json() == {
        "items": {"RESPONSE_MISSING": [1, "3", ""]},
        "claims": {"JUDGE_FAILED": [2, "2", "timed out"]},
    }


def test_batches_may_be_larger() -> None:
    made = [len(batch) for batch in batches_of(items(("a", 300), ("b", 700), ("", 3)), 256)]
    assert made == [300, 512, 191]
