"""Take the screenshots of README and docs: made-up captions of two models, scored and photographed.

Needs a `hallujudge` beside this interpreter, playwright (extra `ci`) and a Chromium:

    .venv/bin/python tools/report_screenshot.py
"""

from __future__ import annotations

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

from hallujudge.sdk.cli.viewer import Viewer
from hallujudge.sdk.runs.manifest import ITEMS, JOURNAL, MANIFEST, partial

if TYPE_CHECKING:
    from playwright.sync_api import Page

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "images"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
MOST_BYTES = 300_000
IMAGES = 600
WIDTH = 1280
SCENES = {
    "kitchen": ("oven", "sink", "refrigerator", "bowl", "cup", "bottle", "dining table"),
    "living room": ("couch", "tv", "book", "vase", "chair", "cat", "remote"),
    "street": ("car", "bus", "bicycle", "person", "traffic light", "dog", "truck"),
    "park": ("bench", "dog", "frisbee", "person", "kite", "bird", "bicycle"),
    "study": ("laptop", "keyboard", "mouse", "cup", "book", "cell phone", "chair"),
}
MODELS = {"model-a": (5, 0.3), "model-b": (3, 0.12)}
"""Name -> the most objects that a caption names, and the share of them that are made up."""

Scenes: TypeAlias = "dict[str, tuple[str, list[str]]]"


def main() -> None:
    """Write the screenshots where README and docs expect them."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, default=TARGET, help="folder to write to")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory() as folder:
        runs = _runs(Path(folder))
        with _served(runs) as address, _page() as page:
            _photograph(page, address, options.out)
    for path in sorted(options.out.glob("*.png")):
        size = path.stat().st_size
        if size > MOST_BYTES:
            raise SystemExit(f"{path} has {size} bytes, more than {MOST_BYTES}: show less of it")
        print(f"{path}: {size} bytes")


def _runs(folder: Path) -> Path:
    """Return a folder of three runs: of two models, and one that stopped."""
    source = random.Random(7)  # noqa: S311  # made-up captions, the same each time
    scenes: Scenes = {}
    for number in range(1, IMAGES + 1):
        scene = source.choice(list(SCENES))
        scenes[str(number)] = scene, source.sample(SCENES[scene], 4)
    references = folder / "objects.json"
    references.write_text(json.dumps({name: objects for name, (_, objects) in scenes.items()}))
    for model in MODELS:
        _score(folder, model, scenes, references, source)
    _stop(folder / "runs" / "model-b", folder / "runs" / "model-c")
    return folder / "runs"


def _score(
    folder: Path, model: str, scenes: Scenes, references: Path, source: random.Random
) -> None:
    responses = folder / f"{model}.jsonl"
    with responses.open("w") as file:
        for name, (scene, objects) in scenes.items():
            caption = _caption(scene, objects, *MODELS[model], source)
            file.write(json.dumps({"image_id": name, "caption": caption}) + "\n")
    command = Path(sys.executable).parent / "hallujudge"
    inputs: list[str | Path] = ["--responses", responses, "--references", references]
    subprocess.run(
        [command, "score", "chair", *inputs, "--out", folder / "runs" / model, "--quiet"],
        check=True,
        stdout=subprocess.DEVNULL,
    )


def _caption(
    scene: str, objects: list[str], most: int, made_up: float, source: random.Random
) -> str:
    """Return a caption that names some objects of the image, and some that it does not show."""
    absent = [name for name in SCENES[scene] if name not in objects]
    count = source.randint(2, most)
    names = [source.choice(absent if source.random() < made_up else objects) for _ in range(count)]
    first, *others = dict.fromkeys(names)
    text = f"A {scene} with a {first}."
    for name in others:
        text += source.choice(
            (
                f" Next to it there is a {name}.",
                f" A {name} can be seen in the background.",
                f" In front of it stands a {name}, which catches the light.",
            )
        )
    return text


def _stop(complete: Path, stopped: Path) -> None:
    """Make a run that holds two thirds of what a complete one does."""
    stopped.mkdir()
    for name in (MANIFEST, ITEMS):
        shutil.copy(complete / name, partial(stopped, name))
    journal = (complete / JOURNAL).read_bytes()
    partial(stopped, JOURNAL).write_bytes(journal[: len(journal) * 2 // 3])


@contextmanager
def _served(runs: Path) -> Iterator[str]:
    viewer = Viewer(runs)
    thread = threading.Thread(target=viewer.serve)
    thread.start()
    try:
        yield viewer.address
    finally:
        viewer.close()
        thread.join()


@contextmanager
def _page() -> Iterator[Page]:
    from playwright.sync_api import sync_playwright

    browser = next((found for name in BROWSERS if (found := shutil.which(name))), None)
    if browser is None:
        raise SystemExit(f"none of {', '.join(BROWSERS)} is installed: apt-get install chromium")
    with sync_playwright() as playwright:
        started = playwright.chromium.launch(executable_path=browser, args=["--no-sandbox"])
        yield started.new_page(viewport={"width": WIDTH, "height": 800})
        started.close()


def _photograph(page: Page, address: str, out: Path) -> None:
    page.goto(address)
    page.check("input[name=a][value=model-b]")
    page.check("input[name=b][value=model-a]")
    page.screenshot(path=out / "viewer.png", full_page=True)
    _open(page, f"{address}run?name=model-a")
    page.screenshot(path=out / "first-screen.png")
    page.keyboard.press("j")
    page.locator("mark.wrong").first.focus()
    _below(page, "body", out / "report.png", 1950)
    _below(page, "#app", out / "items.png", 1250)
    _open(page, f"{address}compare?a=model-b&b=model-a")
    page.click(".bars button:has-text('A right, B wrong')")
    page.keyboard.press("j")
    page.wait_for_selector(".detail")
    _below(page, "main", out / "comparison.png", 1780)


def _open(page: Page, address: str) -> None:
    page.goto(address)
    page.wait_for_selector("html[data-ready]")


def _below(page: Page, selector: str, path: Path, height: int) -> None:
    """Photograph what begins at an element."""
    top = page.evaluate(f"document.querySelector('{selector}').getBoundingClientRect().top")
    top += page.evaluate("scrollY")
    clip = {"x": 0, "y": top, "width": WIDTH, "height": height}
    page.screenshot(path=path, full_page=True, clip=clip)


if __name__ == "__main__":
    main()
