"""Take the README's screenshot: score the example captions and photograph the HTML report.

Needs a `hallujudge` beside this interpreter and a headless Chromium (`apt-get install chromium`):

    .venv/bin/python tools/report_screenshot.py
"""

from __future__ import annotations

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "images" / "report.png"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
MOST_BYTES = 300_000
OPENED = "103"
"""The item that the screenshot shows."""


def main() -> None:
    """Write the screenshot where the README expects it."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=TARGET, help="PNG file to write")
    parser.add_argument("--size", default="1280,1900", help="width and height in pixels")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        page = _report(Path(folder))
        _photograph(page, options.out, options.size)
    size = options.out.stat().st_size
    if size > MOST_BYTES:
        raise SystemExit(f"{options.out} has {size} bytes, more than {MOST_BYTES}: lower --size")
    print(f"{options.out}: {size} bytes")


def _report(folder: Path) -> Path:
    """Score the examples and return the HTML report."""
    command = Path(sys.executable).parent / "hallujudge"
    examples = ROOT / "examples"
    subprocess.run(
        [
            *(command, "score", "chair"),
            *("--responses", examples / "captions.jsonl"),
            *("--references", examples / "references.json"),
            *("--out", folder, "--format", "html"),
        ],
        check=True,
        stdout=subprocess.DEVNULL,
    )
    return folder / "report.html"


def _photograph(page: Path, target: Path, size: str) -> None:
    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise SystemExit(f"none of {', '.join(BROWSERS)} is installed: apt-get install chromium")
    target.parent.mkdir(parents=True, exist_ok=True)
    subprocess.run(
        [
            *(browser, "--headless", "--no-sandbox", "--hide-scrollbars", "--disable-gpu"),
            # The items are decoded after the page is loaded.
            "--virtual-time-budget=10000",
            *(f"--window-size={size}", f"--screenshot={target}", f"{page.as_uri()}#item={OPENED}"),
        ],
        check=True,
        stderr=subprocess.DEVNULL,
    )


if __name__ == "__main__":
    main()
