"""A real browser for tests of report.html."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pytest
from support.threads import eventually

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

__all__ = ["AXE", "CHROMIUM", "Watched", "browser", "contains", "holds", "needs_browser", "reads"]

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
AXE = Path(__file__).parents[2] / "web/report/node_modules/axe-core/axe.min.js"

needs_browser = pytest.mark.skipif(
    not CHROMIUM, reason="no Chromium is installed to look at the page with"
)


@contextmanager
def browser() -> Iterator[Browser]:
    """Start a headless browser, and stop it at the end."""
    api = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with api.sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        try:
            yield started
        finally:
            started.close()


class Watched:
    """A page in a browser, with everything that it said or asked for."""

    def __init__(self, page: Page) -> None:
        self.page = page
        self.said: list[str] = []
        self.requests: list[str] = []
        page.on("console", lambda message: self.said.append(message.text))
        page.on("pageerror", lambda error: self.said.append(str(error)))
        page.on("request", lambda request: self.requests.append(request.url))

    def open(self, path: Path, fragment: str = "") -> Page:
        """Open a file and wait until its items are shown."""
        # Another fragment alone would not load the page again.
        self.page.goto("about:blank")
        self.requests.clear()
        self.page.goto(f"{path.as_uri()}{fragment}")
        self.page.wait_for_selector("html[data-ready]")
        return self.page


def contains(page: Page, selector: str, text: str) -> None:
    """Wait until an element contains a text: a page draws after a click or a key, not within it."""
    from playwright.sync_api import expect

    expect(page.locator(selector).first).to_contain_text(text, timeout=30_000)


def reads(page: Page, selector: str, text: str) -> None:
    """Wait until an element has exactly this text."""
    from playwright.sync_api import expect

    expect(page.locator(selector).first).to_have_text(text, timeout=30_000)


def holds(page: Page, condition: str) -> None:
    """Wait until a JavaScript condition is true.

    ``wait_for_function`` has the page evaluate a text again and again, which the page's policy
    forbids: it fails whenever the first look comes too early.
    """
    assert eventually(lambda: bool(page.evaluate(condition))), condition
