"""View of ARGUS captions."""

from __future__ import annotations

from collections.abc import Iterator

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.argus import ENTAILED, ArgusEvidence, ArgusItem, LineCost
from hallujudge.metrics.argus.caption_lines import lines_of

from .item_views import Claim, Facet, ItemView, Mark, Passage, Shade, View
from .report_text import counted
from .verdict_views import declined_facts


def _shade(line: LineCost) -> Shade:
    return Shade.WRONG if line.cost or line.penalty else Shade.RIGHT


def _claim(line: LineCost, sources: list[str]) -> Claim:
    placed = 0 <= line.place < len(sources) and line.verdict == ENTAILED
    return Claim(
        text=line.text,
        shade=_shade(line),
        reasons=[
            ("verdict", line.verdict),
            ("kind", line.kind),
            ("evidence", line.evidence),
            ("placed at", f"{line.place + 1}: {sources[line.place]}" if placed else ""),
            ("cost", f"{line.cost:g}"),
            ("penalty for order", f"{line.penalty:.1f}" if line.penalty else ""),
        ],
    )


def _marks(text: str, lines: tuple[LineCost, ...]) -> Iterator[Mark]:
    """Yield the place of each line in its caption; lines that were joined or changed have none."""
    start = 0
    for index, line in enumerate(lines):
        at = text.find(line.text, start)
        if at >= 0:
            start = at + len(line.text)
            yield Mark(at, start, _shade(line), index)


def _show(item: Item, result: ItemResult) -> ItemView:
    evidence = result.evidence
    assert isinstance(evidence, ArgusEvidence)
    target = getattr(item, "response", None) or ""
    source, mode = (item.source or "", item.mode) if isinstance(item, ArgusItem) else ("", "")
    lines, sources = evidence.lines, lines_of(source)
    wrong = sum(line.cost > 0 for line in lines)
    later = sum(line.penalty > 0 for line in lines)
    return ItemView(
        summary=f"{wrong} of {counted(len(lines), 'line')} unsupported or misplaced, "
        f"{later} out of order",
        passages=[
            Passage(text=target, label="Target caption", marks=list(_marks(target, lines))),
            Passage(text=source, label="Source caption"),
        ],
        claims=[_claim(line, sources) for line in lines],
        facts=[
            ("cost", f"{evidence.cost:.4g} of {evidence.max_cost:.4g}"),
            ("entailed actions", str(evidence.actions)),
            *declined_facts(evidence.judging),
        ],
        wrong=wrong,
        total=len(lines),
        facets={"mode": mode} if mode else {},
        measures={"cost": evidence.cost},
    )


VIEWS: dict[type[object], View] = {
    ArgusEvidence: View(show=_show, facets={"mode": Facet("Examined for")}),
}
"""View of each kind of evidence."""
