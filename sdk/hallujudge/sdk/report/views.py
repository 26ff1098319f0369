"""How an item looks on the page: one view for each kind of evidence."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from hallujudge.metrics import ChairEvidence, Evidence, Item, ItemResult, MentionVerdict
from hallujudge.metrics.answers.evidence import AnswerEvidence
from hallujudge.metrics.framework.claims import ClaimVerdict, Verdict
from hallujudge.metrics.infact.evidence import InfactEvidence
from hallujudge.metrics.mementos.evidence import KeywordEvidence, MementosEvidence
from hallujudge.metrics.tri_he.evidence import TriHeEvidence

from .markup import Markup, joined
from .pieces import Mark, facts, item_facts, listing, marked
from .text import counted

__all__ = ["VIEWS", "View", "view_of", "weight_of"]

Body: TypeAlias = "Callable[[Item, ItemResult], Markup]"


@dataclass(frozen=True, slots=True, kw_only=True)
class View:
    """How items with one kind of evidence look."""

    body: Body
    """The item's part of the page, without its heading."""
    weight: Callable[[Evidence], int] = lambda _: 0
    """How much in the item is wrong; the page keeps the items with most."""
    summary: Callable[[Evidence], str] = lambda _: ""
    """The item in a few words, for its heading."""
    order: str = "the worst first"
    """What the order by weight means."""
    legend: bool = False
    """Whether responses are marked, so that the marks want an explanation."""


def view_of(evidence: Evidence | None) -> View:
    """The view of a kind of evidence; a general one where it has none of its own."""
    return VIEWS.get(type(evidence), _GENERAL)


def weight_of(evidence: Evidence | None) -> int:
    """How much in an item is wrong."""
    return view_of(evidence).weight(evidence) if evidence is not None else 0


def _general_body(item: Item, result: ItemResult) -> Markup:
    response = getattr(item, "response", None)
    evidence = result.evidence.to_json() if result.evidence is not None else {}
    return joined(
        [
            *([marked(response, ())] if isinstance(response, str) else []),
            item_facts(item),
            facts(evidence),
        ]
    )


# CHAIR ------------------------------------------------------------------------------------------


def _pair(mention: MentionVerdict) -> str:
    return mention.word if mention.word == mention.object else f"{mention.word} → {mention.object}"


def _mention_mark(mention: MentionVerdict) -> Mark:
    word, thing, start, end, wrong = mention
    verdict = "not among" if wrong else "among"
    return Mark(start, end, wrong, f"{word} → {thing}, {verdict} the image's reference objects")


def _chair_body(item: Item, result: ItemResult) -> Markup:
    evidence = result.evidence
    assert isinstance(evidence, ChairEvidence)
    response = getattr(item, "response", None) or ""
    reference: Sequence[str] = getattr(item, "reference_objects", None) or ()
    wrong = [_pair(mention) for mention in evidence.mentions if mention.hallucinated]
    return joined(
        [
            marked(response, [_mention_mark(mention) for mention in evidence.mentions]),
            # Titles don't show under a finger or on paper, so what they say stands here too.
            *listing("Hallucinated", dict.fromkeys(wrong), "wrong"),
            *listing("Missed", evidence.missed),
            *listing("Reference", reference),
        ]
    )


def _chair_weight(evidence: Evidence) -> int:
    assert isinstance(evidence, ChairEvidence)
    return sum(mention.hallucinated for mention in evidence.mentions)


def _chair_summary(evidence: Evidence) -> str:
    assert isinstance(evidence, ChairEvidence)
    total = counted(len(evidence.mentions), "mention")
    return f"{_chair_weight(evidence):,} of {total} hallucinated"


# Tri-HE -----------------------------------------------------------------------------------------


def _claims(evidence: Evidence, verdict: Verdict) -> Iterator[ClaimVerdict]:
    assert isinstance(evidence, TriHeEvidence)
    return (claim for claim in evidence.claims if claim.verdict is verdict)


def _claim_text(claim: ClaimVerdict) -> str:
    about = claim.part.value if claim.part else claim.reason
    return " · ".join(claim.triplet) + (f" ({about})" if about else "")


def _claim_marks(evidence: TriHeEvidence) -> Iterator[Mark]:
    for claim in evidence.claims:
        if claim.span and claim.verdict is not Verdict.UNSCORED:
            wrong = claim.verdict is Verdict.NOT_SUPPORTED
            verdict = "not supported" if wrong else "supported"
            yield Mark(*claim.span, wrong, f"{_claim_text(claim)}, {verdict} by the scene graph")


def _tri_he_body(item: Item, result: ItemResult) -> Markup:
    evidence = result.evidence
    assert isinstance(evidence, TriHeEvidence)
    shown = {verdict: list(map(_claim_text, _claims(evidence, verdict))) for verdict in Verdict}
    question: str = getattr(item, "question", "")
    response = getattr(item, "response", None)
    return joined(
        [
            *listing("Question", [question] if question else []),
            *([marked(response, list(_claim_marks(evidence)))] if response else []),
            *listing("Hallucinated", shown[Verdict.NOT_SUPPORTED], "wrong"),
            *listing("Supported", shown[Verdict.SUPPORTED]),
            *listing("Without a verdict", shown[Verdict.UNSCORED]),
        ]
    )


def _tri_he_weight(evidence: Evidence) -> int:
    return sum(1 for _ in _claims(evidence, Verdict.NOT_SUPPORTED))


def _tri_he_summary(evidence: Evidence) -> str:
    assert isinstance(evidence, TriHeEvidence)
    return f"{_tri_he_weight(evidence):,} of {counted(len(evidence.claims), 'claim')} hallucinated"


# Mementos ---------------------------------------------------------------------------------------


def _keyword_marks(found: KeywordEvidence) -> Iterator[Mark]:
    """Keywords where they stand in the response, wrong where they name nothing of the reference."""
    named = dict(found.matched)
    wrong = set(found.hallucinated)
    for word, (start, end) in zip(found.predicted, found.predicted_spans, strict=False):
        if end:
            verdict = "not in the human description" if word in wrong else "right"
            told = f"{word} → {named[word]}" if word in named else word
            yield Mark(start, end, word in wrong, f"{told}, {verdict}")


def _without_overlaps(marks: Iterable[Mark]) -> list[Mark]:
    kept: list[Mark] = []
    for mark in sorted(marks):
        if not kept or mark[0] >= kept[-1][1]:
            kept.append(mark)
    return kept


def _mementos_body(item: Item, result: ItemResult) -> Markup:
    evidence = result.evidence
    assert isinstance(evidence, MementosEvidence)
    response: str = getattr(item, "response", None) or ""
    reference: str = getattr(item, "reference", None) or ""
    kinds = {"objects": evidence.objects, "behaviours": evidence.behaviors}
    marks = _without_overlaps(mark for found in kinds.values() for mark in _keyword_marks(found))
    listings: list[Markup] = []
    for name, found in kinds.items():
        listings += listing(f"Hallucinated {name}", found.hallucinated, "wrong")
        listings += listing(f"Missed {name}", found.missed)
        listings += listing(f"Right {name}", [_named(*pair) for pair in found.matched])
        near = [f"{miss.predicted} ≈ {miss.reference} ({miss.why})" for miss in found.near]
        listings += listing(f"Near misses, {name}", near)
        listings += listing(f"Unknown to the graph, {name}", found.unknown)
    return joined(
        [
            *([marked(response, marks)] if response else []),
            *listing("Human description", [reference] if reference else []),
            *listings,
        ]
    )


def _named(predicted: str, reference: str) -> str:
    return predicted if predicted == reference else f"{predicted} → {reference}"


def _mementos_weight(evidence: Evidence) -> int:
    assert isinstance(evidence, MementosEvidence)
    return len(evidence.objects.hallucinated) + len(evidence.behaviors.hallucinated)


def _mementos_summary(evidence: Evidence) -> str:
    assert isinstance(evidence, MementosEvidence)
    parts = [
        f"{len(found.hallucinated):,} of {counted(len(found.predicted), noun)}"
        for found, noun in ((evidence.objects, "object"), (evidence.behaviors, "behaviour"))
    ]
    return f"{' and '.join(parts)} hallucinated"


# Questions --------------------------------------------------------------------------------------


def _answer_weight(evidence: Evidence) -> int:
    assert isinstance(evidence, AnswerEvidence)
    return int(not evidence.correct)


def _answer_summary(evidence: Evidence) -> str:
    assert isinstance(evidence, AnswerEvidence)
    verdict = "right" if evidence.correct else f"wrong: it is {evidence.label}"
    return f"{evidence.answer or 'unreadable'}, {verdict}"


def _infact_weight(evidence: Evidence) -> int:
    assert isinstance(evidence, InfactEvidence)
    return sum(not run.correct for run in evidence.runs)


_GENERAL = View(body=_general_body)

VIEWS: dict[type[object], View] = {
    ChairEvidence: View(
        body=_chair_body,
        weight=_chair_weight,
        summary=_chair_summary,
        order="those with the most hallucinated mentions first",
        legend=True,
    ),
    TriHeEvidence: View(
        body=_tri_he_body,
        weight=_tri_he_weight,
        summary=_tri_he_summary,
        order="those with the most hallucinated claims first",
        legend=True,
    ),
    MementosEvidence: View(
        body=_mementos_body,
        weight=_mementos_weight,
        summary=_mementos_summary,
        order="those with the most hallucinated keywords first",
        legend=True,
    ),
    AnswerEvidence: View(body=_general_body, weight=_answer_weight, summary=_answer_summary),
    InfactEvidence: View(body=_general_body, weight=_infact_weight),
}
"""Views by type of evidence. A protocol without an entry is shown in the general way."""
