"""Views of objects and other words that responses name: CHAIR, open objects, AMBER and Mementos."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from hallujudge.metrics import ChairEvidence, Item, MentionVerdict
from hallujudge.metrics.amber.descriptions import AmberEvidence, AmberWord
from hallujudge.metrics.mementos import KeywordEvidence, MementosEvidence
from hallujudge.metrics.open_objects import ComparedObject, OpenObjectsEvidence

from .item_views import Claim, Facet, ItemView, Listing, Mark, Passage, Shade, View, invalid_listing
from .report_text import counted

# The verdict of AMBER's words that are not in the image.
_HALLUCINATED = "hallucinated"
_TERMS = {"hallucinated": "Most hallucinated objects", "missed": "Most missed objects"}


def _shade(wrong: bool) -> Shade:
    return Shade.WRONG if wrong else Shade.RIGHT


def _hallucinated(words: Iterable[str]) -> Listing:
    """Return each hallucinated word once."""
    return Listing(label="Hallucinated", entries=dict.fromkeys(words), style="wrong")


def _missed(words: Iterable[str]) -> Listing:
    return Listing(label="Missed", entries=words, style="missed")


def _named(word: str, name: str) -> str:
    """Return a word with the name that it stands for, if that is another one."""
    return word if word == name else f"{word} → {name}"


def _pair(mention: MentionVerdict) -> str:
    return _named(mention.word, mention.object)


def _mention_claim(mention: MentionVerdict) -> Claim:
    verdict = "not among" if mention.hallucinated else "among"
    return Claim(
        text=_pair(mention),
        shade=_shade(mention.hallucinated),
        reasons=[("object", f"{mention.object}, {verdict} the image's reference objects")],
    )


def _show_chair(item: Item, evidence: ChairEvidence) -> ItemView:
    mentions = evidence.mentions
    reference: Sequence[str] = getattr(item, "reference_objects", None) or ()
    wrong = [mention for mention in mentions if mention.hallucinated]
    # Given and extracted objects may have no place in the text.
    marks = [
        Mark(m.start, m.end, _shade(m.hallucinated), i) for i, m in enumerate(mentions) if m.end
    ]
    return ItemView(
        summary=f"{len(wrong):,} of {counted(len(mentions), 'mention')} hallucinated",
        passages=[Passage(text=getattr(item, "response", None) or "", marks=marks)],
        claims=[_mention_claim(mention) for mention in mentions],
        lists=[
            _hallucinated(map(_pair, wrong)),
            _missed(evidence.missed),
            Listing(label="Reference objects", entries=reference),
        ],
        wrong=len(wrong),
        total=len(mentions),
        terms={"hallucinated": [m.object for m in wrong], "missed": evidence.missed},
    )


def _object_claim(found: ComparedObject) -> Claim:
    reasons = [
        ("most similar", f"{found.reference or 'no reference object'}, {found.similarity:.2f}"),
        ("closeness of the sentence", f"{found.closeness:.2f}"),
        ("gain without a word", f"{found.gain:+.3f}"),
        ("doubt", f"{found.doubt:.2f}"),
    ]
    if found.uncounted:
        reasons.append(("number", "in fewer than half of the reference captions"))
    return Claim(text=found.object, shade=_shade(found.hallucinated), reasons=reasons)


def _show_open_objects(item: Item, evidence: OpenObjectsEvidence) -> ItemView:
    objects = evidence.objects
    wrong = [found.object for found in objects if found.hallucinated]
    captions: Sequence[str] = getattr(item, "reference_captions", None) or ()
    given: Sequence[str] = getattr(item, "reference_objects", None) or ()
    marks = [Mark(o.start, o.end, _shade(o.hallucinated), index) for index, o in enumerate(objects)]
    return ItemView(
        summary=f"{len(wrong):,} of {counted(len(objects), 'object')} hallucinated",
        passages=[Passage(text=getattr(item, "response", None) or "", marks=marks)],
        claims=list(map(_object_claim, objects)),
        lists=[
            _hallucinated(wrong),
            _missed(evidence.missed),
            Listing(label="Reference captions", entries=captions),
            Listing(label="Reference objects", entries=given),
        ],
        wrong=len(wrong),
        total=len(objects),
        terms={"hallucinated": wrong, "missed": evidence.missed},
    )


_WORD_REASONS = {
    "true": "an object of the image, or associated with one",
    "safe": "a word that counts as no object",
    _HALLUCINATED: "neither an object of the image nor associated with one",
}


def _word_marks(response: str, words: tuple[AmberWord, ...]) -> Iterator[Mark]:
    """Yield a mark for each word that the response contains as a whole word, in its order."""
    found = re.finditer(r"\w+", response.lower())
    places = [(match[0], *match.span()) for match in found]
    at = 0
    for index, word in enumerate(words):
        # The evidence has singular nouns.
        forms = {word.word, f"{word.word}s", f"{word.word}es"}
        # Only what follows the last mark, so that a word said twice is marked twice.
        hit = next((n for n in range(at, len(places)) if places[n][0] in forms), None)
        if hit is not None:
            yield Mark(places[hit][1], places[hit][2], _shade(word.verdict == _HALLUCINATED), index)
            at = hit + 1


def _show_amber(item: Item, evidence: AmberEvidence) -> ItemView:
    response: str = getattr(item, "response", None) or ""
    wrong = [word.word for word in evidence.words if word.verdict == _HALLUCINATED]
    return ItemView(
        summary=f"{len(wrong):,} of {counted(len(evidence.words), 'object word')} hallucinated",
        passages=[Passage(text=response, marks=list(_word_marks(response, evidence.words)))],
        claims=[
            Claim(
                text=word.word,
                shade=_shade(word.verdict == _HALLUCINATED),
                reasons=[("word", _WORD_REASONS[word.verdict])],
            )
            for word in evidence.words
        ],
        lists=[
            _hallucinated(wrong),
            Listing(
                label="Hallucination targets said", entries=evidence.targets_said, style="wrong"
            ),
            Listing(label="Covered", entries=evidence.covered),
            _missed(evidence.missed),
        ],
        wrong=len(wrong),
        total=len(evidence.words),
        facets={"cognition": "says a target" if evidence.targets_said else "says no target"},
        terms={"hallucinated": wrong, "missed": evidence.missed},
    )


def _keyword_claims(kind: str, found: KeywordEvidence) -> Iterator[Claim]:
    """Yield one claim for each predicted keyword, in order."""
    names = dict(found.matched)
    wrong = set(found.hallucinated)
    near = {miss.predicted: miss for miss in found.near}
    unknown = set(found.unknown)
    for word in found.predicted:
        reasons = [("names", names.get(word, ""))]
        if word in wrong:
            reasons.append(("human description", "has no synonym of it"))
        if word in near:
            reasons.append(("near miss", f"{near[word].reference} ({near[word].why})"))
        if word in unknown:
            reasons.append(("synonym graph", "does not know the word"))
        yield Claim(
            text=_named(word, names.get(word, word)),
            shade=_shade(word in wrong),
            reasons=reasons,
            kind=kind,
        )


def _keyword_marks(found: KeywordEvidence, first: int) -> Iterator[Mark]:
    wrong = set(found.hallucinated)
    spans = zip(found.predicted, found.predicted_spans, strict=False)
    for index, (word, (start, end)) in enumerate(spans, first):
        if end:
            yield Mark(start, end, _shade(word in wrong), index)


def _reference_marks(found: KeywordEvidence) -> Iterator[Mark]:
    shades = dict.fromkeys((pair.reference for pair in found.matched), Shade.RIGHT)
    shades |= dict.fromkeys(found.missed, Shade.MISSED)
    for word, (start, end) in zip(found.reference, found.reference_spans, strict=False):
        if end and word in shades:
            yield Mark(start, end, shades[word])


def _keyword_passages(
    item: Item, objects: KeywordEvidence, behaviors: KeywordEvidence
) -> Iterator[Passage]:
    if response := getattr(item, "response", None):
        marks = [*_keyword_marks(objects, 0), *_keyword_marks(behaviors, len(objects.predicted))]
        yield Passage(text=response, label="Model's description", marks=marks)
    if reference := getattr(item, "reference", None):
        marks = [*_reference_marks(objects), *_reference_marks(behaviors)]
        yield Passage(text=reference, label="Human description", marks=marks)


def _keyword_lists(kinds: Mapping[str, KeywordEvidence]) -> Iterator[Listing]:
    """Yield hallucinated and missed keywords, and those that no synonym graph contains."""
    for kind, found in kinds.items():
        yield Listing(label=f"Hallucinated {kind}s", entries=found.hallucinated, style="wrong")
    for kind, found in kinds.items():
        yield Listing(label=f"Missed {kind}s", entries=found.missed, style="missed")
    for kind, found in kinds.items():
        yield Listing(label=f"{kind.capitalize()}s unknown to the graph", entries=found.unknown)


def _show_mementos(item: Item, evidence: MementosEvidence) -> ItemView:
    kinds = {"object": evidence.objects, "behaviour": evidence.behaviors}
    parts = [
        f"{len(found.hallucinated):,} of {counted(len(found.predicted), kind)}"
        for kind, found in kinds.items()
    ]
    claims = [claim for kind, found in kinds.items() for claim in _keyword_claims(kind, found)]
    words = {
        name: [word for found in kinds.values() for word in getattr(found, name)]
        for name in ("hallucinated", "missed", "unknown")
    }
    return ItemView(
        summary=f"{' and '.join(parts)} hallucinated",
        passages=list(_keyword_passages(item, evidence.objects, evidence.behaviors)),
        claims=claims,
        lists=[*_keyword_lists(kinds), invalid_listing(evidence.invalid, "keywords")],
        wrong=len(words["hallucinated"]),
        total=len(claims),
        facets={"domain": evidence.domain},
        terms=words,
    )


VIEWS: dict[type[object], View] = {
    ChairEvidence: View(show=_show_chair, terms=_TERMS),
    OpenObjectsEvidence: View(show=_show_open_objects, terms=_TERMS),
    AmberEvidence: View(
        show=_show_amber,
        facets={"cognition": Facet("Hallucination targets")},
        terms={"hallucinated": "Most hallucinated words", "missed": "Most missed objects"},
    ),
    MementosEvidence: View(
        show=_show_mementos,
        facets={"domain": Facet("Domain")},
        terms={
            "hallucinated": "Most hallucinated keywords",
            "missed": "Most missed keywords",
            "unknown": "Keywords unknown to the graph",
        },
    ),
}
"""View of each kind of evidence."""
