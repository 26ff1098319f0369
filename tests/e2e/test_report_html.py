"""The page in a real browser: what it paints, and that nothing in it runs."""

from __future__ import annotations

import shutil
import struct
import subprocess
import zlib
from pathlib import Path

import pytest
from support import report_samples as samples

from hallujudge.metrics import MentionVerdict
from hallujudge.sdk.report import HtmlPage

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), ""
)
FLAGS = (
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--hide-scrollbars",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
)
WIDTH, HEIGHT = 600, 1200
WRONG = bytes.fromhex("ffdcd9")
WRONG_DARK = bytes.fromhex("5f1519")
PAGE_DARK = bytes.fromhex("0d1117")

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(not CHROMIUM, reason="no Chromium is installed to look at the page with"),
]


def write_page(path: Path, *, hallucinated: bool) -> Path:
    page = HtmlPage()
    page.add(*samples.caption("1", mentions=(MentionVerdict("dog", "dog", 2, 5, hallucinated),)))
    hostile = "<script>document.title = 'ran'</script><img src=x onerror=\"document.title='ran'\">"
    page.add(*samples.caption(hostile, hostile, ()))
    path.write_text(page.render(samples.report()), encoding="utf-8")
    return path


def browse(tmp_path: Path, *flags: str) -> str:
    profile = tmp_path / "profile"
    shutil.rmtree(profile, ignore_errors=True)
    done = subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={profile}", *flags],
        capture_output=True,
        text=True,
        timeout=600,
    )
    assert done.returncode == 0, done.stderr[-2000:]
    return done.stdout


def screenshot(tmp_path: Path, page: Path, *flags: str) -> set[bytes]:
    """Colours of the page's picture."""
    picture = tmp_path / "page.png"
    browse(
        tmp_path,
        *flags,
        f"--window-size={WIDTH},{HEIGHT}",
        f"--screenshot={picture}",
        page.as_uri(),
    )
    return colours(picture.read_bytes())


def colours(png: bytes) -> set[bytes]:
    """Colours of a PNG of 8 bits a channel, without interlacing."""
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    width, height, depth, kind, _, _, interlaced = struct.unpack(">IIBBBBB", png[16:29])
    assert (width, height, depth, interlaced) == (WIDTH, HEIGHT, 8, 0)
    channels = {2: 3, 6: 4}[kind]
    data, at = b"", 8
    while at < len(png):
        length = int.from_bytes(png[at : at + 4])
        if png[at + 4 : at + 8] == b"IDAT":
            data += png[at + 8 : at + 8 + length]
        at += length + 12
    raw, size = zlib.decompress(data), width * channels
    above, found = bytes(size), set[bytes]()
    for row in range(height):
        start = row * (size + 1)
        above = unfiltered(raw[start], raw[start + 1 : start + 1 + size], above, channels)
        found.update(above[x : x + 3] for x in range(0, size, channels))
    return found


def unfiltered(kind: int, line: bytes, above: bytes, step: int) -> bytes:
    """A line of a PNG without its filter (PNG specification, section 9)."""
    out = bytearray(step) + bytearray(line)
    up = bytes(step) + above
    for x in range(step, len(out)):
        a, b, c = out[x - step], up[x], up[x - step]
        out[x] = (out[x] + (0, a, b, (a + b) // 2, paeth(a, b, c))[kind]) & 255
    return bytes(out[step:])


def paeth(a: int, b: int, c: int) -> int:
    p = a + b - c
    return min((abs(p - a), 0, a), (abs(p - b), 1, b), (abs(p - c), 2, c))[2]


def test_hallucinated_words_are_painted(tmp_path: Path) -> None:
    page = write_page(tmp_path / "page.html", hallucinated=True)
    assert WRONG in screenshot(tmp_path, page)


def test_dark_mode_has_colours_of_its_own(tmp_path: Path) -> None:
    page = write_page(tmp_path / "page.html", hallucinated=True)
    painted = screenshot(tmp_path, page, "--blink-settings=preferredColorScheme=0")
    assert {WRONG_DARK, PAGE_DARK} <= painted
    assert b"\xff\xff\xff" not in painted


def test_nothing_in_the_page_runs(tmp_path: Path) -> None:
    page = write_page(tmp_path / "page.html", hallucinated=True)
    dom = browse(tmp_path, "--dump-dom", page.as_uri())
    assert "<title>chair (published) – Hallujudge</title>" in dom
    assert "<script" not in dom
    assert "<img" not in dom
    assert "&lt;script&gt;" in dom
