"""View of AMBER's descriptions; a question is shown as any answer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.amber.descriptions import AmberEvidence, AmberWord

from .item_views import Claim, Facet, ItemView, Listing, Mark, Passage, Shade, View
from .report_text import counted

_REASONS = {
    "true": "an object of the image, or associated with one",
    "safe": "a word that counts as no object",
    "hallucinated": "neither an object of the image nor associated with one",
}


def _shade(word: AmberWord) -> Shade:
    return Shade.WRONG if word.verdict == "hallucinated" else Shade.RIGHT


def _marks(response: str, words: tuple[AmberWord, ...]) -> Iterator[Mark]:
    """Yield a mark for each word that the response contains as a whole word, in its order."""
    found = re.finditer(r"\w+", response.lower())
    places = [(match[0], *match.span()) for match in found]
    at = 0
    for index, word in enumerate(words):
        # The evidence has singular nouns.
        forms = {word.word, f"{word.word}s", f"{word.word}es"}
        hit = next((n for n in range(at, len(places)) if places[n][0] in forms), None)
        if hit is not None:
            yield Mark(places[hit][1], places[hit][2], _shade(word), index)
            at = hit + 1


def _show(item: Item, result: ItemResult) -> ItemView:
    evidence = result.evidence
    assert isinstance(evidence, AmberEvidence)
    response: str = getattr(item, "response", None) or ""
    wrong = [word.word for word in evidence.words if word.verdict == "hallucinated"]
    return ItemView(
        summary=f"{len(wrong):,} of {counted(len(evidence.words), 'object word')} hallucinated",
        passages=[Passage(text=response, marks=list(_marks(response, evidence.words)))],
        claims=[
            Claim(text=word.word, shade=_shade(word), reasons=[("word", _REASONS[word.verdict])])
            for word in evidence.words
        ],
        lists=[
            Listing(label="Hallucinated", entries=dict.fromkeys(wrong), style="wrong"),
            Listing(
                label="Hallucination targets said", entries=evidence.targets_said, style="wrong"
            ),
            Listing(label="Covered", entries=evidence.covered),
            Listing(label="Missed", entries=evidence.missed, style="missed"),
        ],
        wrong=len(wrong),
        total=len(evidence.words),
        facets={"cognition": "says a target" if evidence.targets_said else "says no target"},
        terms={"hallucinated": wrong, "missed": evidence.missed},
    )


VIEWS: dict[type[object], View] = {
    AmberEvidence: View(
        show=_show,
        facets={"cognition": Facet("Hallucination targets")},
        terms={"hallucinated": "Most hallucinated words", "missed": "Most missed objects"},
    ),
}
"""View of each kind of evidence."""
