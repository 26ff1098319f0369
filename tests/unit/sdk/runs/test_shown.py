"""Items that a page shows, as a run keeps them."""

from __future__ import annotations

import asyncio
import zlib

import pytest

from hallujudge.judge_service.engine.registry import metric_entry, metric_names
from hallujudge.judge_service.engine.spec import ScoreSpec
from hallujudge.metrics import Item, ItemResult
from hallujudge.sdk.backends.embedded import EmbeddedBackend
from hallujudge.sdk.errors import ArchiveError
from hallujudge.sdk.runs.saved_items import pack_shown, shown_items
from hallujudge.sdk.score_run import SaveOptions


def scored(metric: str) -> list[tuple[Item, ItemResult]]:
    item = metric_entry(metric).trial.item

    async def evaluate() -> list[ItemResult]:
        session = await EmbeddedBackend().open(ScoreSpec(metric=metric))
        return await session.evaluate([item])

    return [(item, result) for result in asyncio.run(evaluate())]


@pytest.mark.parametrize("metric", metric_names())
def test_items_and_results_are_kept_whole(metric: str) -> None:
    pairs = scored(metric)
    kept = list(shown_items(pack_shown(pairs, 0, SaveOptions(html=True))))
    assert kept == pairs
    # The page charts the first score of an item.
    assert [list(r.scores) for _, r in kept] == [list(r.scores) for _, r in pairs]


def test_responses_are_left_out_with_no_text() -> None:
    ((item, _),) = shown_items(
        pack_shown(scored("chair"), 0, SaveOptions(keep_text=False, html=True))
    )
    assert getattr(item, "response", "") is None


def test_what_the_page_does_not_show_is_not_kept() -> None:
    pairs = scored("chair")
    assert pack_shown(pairs, 20_000, SaveOptions()) == b""
    assert pack_shown(pairs, 20_000, SaveOptions(html=True))
    assert (
        pack_shown([(Item(id="1"), result) for _, result in pairs], 0, SaveOptions(html=True))
        == b""
    )


@pytest.mark.parametrize(
    "content", [b"vChairItem ChairEvidence\n\xff", b"vNo No\n", b"m\x01\0\0\0\xff"]
)
def test_damaged_bytes_are_refused(content: bytes) -> None:
    with pytest.raises(ArchiveError, match="score the responses again"):
        list(shown_items(zlib.compress(content)))
    with pytest.raises(ArchiveError, match="score the responses again"):
        list(shown_items(content))
