"""Time until report.html shows its items, its size and the browser's memory, by number of items.

Run with: python benchmarks/bench_page.py [--items 5000 50000]
"""

from __future__ import annotations

import random
import shutil
import tempfile
from pathlib import Path
from statistics import median
from typing import Any

import needs
from arguments import Arguments

from hallujudge.metrics import (
    ChairEvidence,
    ChairItem,
    Coverage,
    ItemResult,
    MentionVerdict,
    Outcome,
    Report,
    Score,
)
from hallujudge.sdk.report import HtmlPage

BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WORDS = (
    "a",
    "the",
    "man",
    "woman",
    "dog",
    "cat",
    "sofa",
    "bus",
    "red",
    "large",
    "near",
    "on",
    "with",
)
OBJECTS = ("person", "dog", "cat", "couch", "bus", "chair", "cup", "bottle", "car", "bench")


def main() -> None:
    """Print one line for each number of items."""
    parser = Arguments(__doc__)
    parser.size("--items", [5_000, 50_000], smoke=[50])
    parser.size("--rounds", 5, smoke=1, help="times that each page is opened")
    options = parser.given()
    needs.packages("playwright", get=needs.EVERYTHING)
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        needs.stop("no Chromium is installed; run `apt-get install chromium`")
    from playwright.sync_api import sync_playwright

    print(f"{'items':>7} {'MB':>6} {'first screen ms':>16} {'items shown ms':>15} {'heap MB':>8}")
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        for count in options.items:
            path = write_page(Path(folder), count)
            figures = [opened(started, path) for _ in range(options.rounds)]
            first, ready, heap = map(median, zip(*figures, strict=True))
            size = path.stat().st_size / 1e6
            print(f"{count:>7,} {size:>6.1f} {first:>16.0f} {ready:>15.0f} {heap:>8.0f}")
        started.close()


def write_page(folder: Path, count: int) -> Path:
    """Write the page of captions of 90 words with eight mentions each."""
    source = random.Random(count)
    page = HtmlPage()
    for number in range(count):
        page.add(*caption(str(number), source))
    score = Score(name="chair_i", value=0.2, ci_low=0.19, ci_high=0.21, n=count)
    report = Report(
        metric="chair",
        variant="published",
        signature="chair|var:published",
        scores={"chair_i": score},
        coverage=Coverage(items=count, scored=count, unscored=0),
    )
    path = folder / f"{count}.html"
    path.write_text(page.render(report), encoding="utf-8")
    return path


def caption(name: str, source: random.Random) -> tuple[ChairItem, ItemResult]:
    """Return a caption and its result."""
    words = source.choices(WORDS, k=90)
    text = " ".join(words)
    starts = [sum(len(word) + 1 for word in words[:at]) for at in range(0, 88, 11)]
    mentions = tuple(
        MentionVerdict("dog", source.choice(OBJECTS), start, start + 3, source.random() < 0.2)
        for start in starts
    )
    item = ChairItem(id=name, response=text, reference_objects=OBJECTS[:5])
    result = ItemResult(
        id=name,
        group_id=name,
        outcome=Outcome.SCORED,
        scores={"chair_i": sum(mention.hallucinated for mention in mentions) / len(mentions)},
        evidence=ChairEvidence(mentions=mentions, missed=(source.choice(OBJECTS),)),
    )
    return item, result


def opened(browser: Any, path: Path) -> tuple[float, float, float]:
    """Return the times to the first paint and to the list, in ms, and the script's heap in MB."""
    page = browser.new_page(viewport={"width": 1280, "height": 900})
    page.goto(path.as_uri(), wait_until="commit")
    page.wait_for_selector("html[data-ready]", timeout=120_000)
    told = page.evaluate(
        "() => [performance.getEntriesByName('first-contentful-paint')[0]?.startTime ?? 0, "
        "performance.now(), performance.memory.usedJSHeapSize / 1e6]"
    )
    page.close()
    return tuple(told)


if __name__ == "__main__":
    main()
