"""HTML pages of runs, from what their journals keep."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from hallujudge.metrics import Report

from .shown import unpacked

if TYPE_CHECKING:
    from ..report import HtmlPage, PageAbout
    from ..report.page import Images
    from .manifest import Manifest

__all__ = ["about_of", "page_parts", "render_page"]


def render_page(
    report: Report,
    shown: Iterable[bytes],
    about: PageAbout | None = None,
    images: Images | None = None,
) -> str:
    """Return the page of a report.

    Args:
        report: The report.
        shown: What the parts of the run keep for the page.
        about: Title, inputs and baseline.
        images: Where pictures come from; None for no pictures.
    """
    return _page(shown).render(report, about, images)


def page_parts(shown: Iterable[bytes]) -> Sequence[bytes]:
    """Return what a page of several runs shows of a run's items."""
    return _page(shown).parts()


def _page(shown: Iterable[bytes]) -> HtmlPage:
    from ..report import HtmlPage

    page = HtmlPage()
    for part in shown:
        for item, result in unpacked(part):
            page.add(item, result)
    return page


def about_of(manifest: Manifest | None) -> PageAbout:
    """Return what a manifest says about a run: the responses' file as title, inputs by hash."""
    from ..report import PageAbout

    if manifest is None:
        return PageAbout()
    inputs = tuple(_inputs(manifest.inputs))
    title = next((file for name, file, _ in inputs if name == "responses"), "")
    return PageAbout(
        title=title,
        inputs=tuple((f"{n}: {f}", digest) for n, f, digest in inputs),
        card=str(manifest.settings.get("option.card", "")),
    )


def _inputs(inputs: Mapping[str, Mapping[str, Any]]) -> Iterator[tuple[str, str, str]]:
    """Yield name, file name and SHA-256 of each file; the page does not show folders."""
    for name, described in inputs.items():
        path, digest = described.get("path"), described.get("sha256")
        if isinstance(path, str) and isinstance(digest, str):
            yield name, Path(path).name, digest
