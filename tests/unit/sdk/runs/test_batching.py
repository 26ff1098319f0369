"""Batches of a run."""

from __future__ import annotations

from hallujudge.metrics import Item
from hallujudge.sdk.runs.parts import batches
from hallujudge.sdk.runs.worker import item_groups


def items(*images: tuple[str, int]) -> list[Item]:
    return [
        Item(id=f"{image}-{number}", group_id=image)
        for image, count in images
        for number in range(count)
    ]


def test_items_of_one_image_stay_together() -> None:
    made = [len(batch) for batch in batches(items(("a", 60), ("b", 10), ("c", 3)))]
    assert made == [70, 3]


def test_an_image_with_many_items_is_divided() -> None:
    assert [len(batch) for batch in batches(items(("a", 300)))] == [128, 128, 44]


def test_items_without_an_image_fill_batches() -> None:
    assert [len(batch) for batch in batches(items(("", 130)))] == [64, 64, 2]


def test_groups_of_one_batch_keep_images_whole() -> None:
    groups = list(item_groups(iter(items(("a", 60), ("b", 10), ("c", 3))), 5, 1))
    assert [(group.first, group.size) for group in groups] == [(5, 70), (75, 3)]
