"""Views of verdicts: on answers to closed questions, and on claims.

Answers may stand alone or in bundles; Tri-HE, seen claims and ARGUS have claims.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from msgspec import structs

from hallujudge.metrics import Answer, AnswersEvidence, AnswerVerdict, Item, JsonValue
from hallujudge.metrics.argus import ENTAILED, ArgusEvidence, ArgusItem, LineCost
from hallujudge.metrics.argus.caption_lines import lines_of
from hallujudge.metrics.framework.claims import (
    LANGUAGE_MODELS,
    ClaimVerdict,
    Modality,
    Part,
    Triplet,
    Verdict,
    is_hallucinated,
    support_probability,
)
from hallujudge.metrics.framework.results import UnscoredReason
from hallujudge.metrics.seen_claims import SeenClaimsEvidence
from hallujudge.metrics.tri_he import TriHeEvidence

from .item_views import (
    ANSWER_WORDS,
    Claim,
    Facet,
    ItemView,
    Listing,
    Mark,
    Passage,
    Shade,
    View,
    answer_shade,
    facts,
    invalid_listing,
    item_facts,
    marked_passage,
)
from .report_text import counted

# The log probabilities of a language model are not precise enough for smaller shares.
_LEAST_PROBABILITY = 0.001
# More answers than a pair or a triplet have too many outcomes to list.
_MOST_NAMED = 3
# Fields of benchmarks by whose values a page filters its items.
_GROUPS = ("set", "split", "category", "subcategory", "type")
_WORDS = {True: "right", False: "wrong", None: "unscored"}
_FACETS = {
    "outcome": Facet("Answers and labels", rates=False),
    "answer": Facet("Answer", rates=False),
    "label": Facet("Label"),
}
_SHADES = {
    Verdict.SUPPORTED: Shade.RIGHT,
    Verdict.NOT_SUPPORTED: Shade.WRONG,
    Verdict.UNSCORED: Shade.UNSCORED,
}
# A claim may be compared with every triplet of a scene graph, which the page shows beside it.
_REFERENCES = 12


def _percent_of(share: float) -> str:
    """Return a probability in percent, with as many digits as are meaningful."""
    if share < _LEAST_PROBABILITY:
        return "under 0.1 %"
    if share > 1 - _LEAST_PROBABILITY:
        return "over 99.9 %"
    return f"{100 * share:.1f} %"


def _verdict(verdict: AnswerVerdict) -> str:
    labelled = verdict.correct is False and verdict.label
    return f"wrong: it is {verdict.label}" if labelled else _WORDS[verdict.correct]


def _answer_claim(verdict: AnswerVerdict, text: str) -> Claim:
    """Return an answer as a claim with its label and parser.

    Args:
        verdict: The answer.
        text: The claim in words; the parsed answer if empty.
    """
    answer = verdict.answer or "unreadable"
    return Claim(
        text=text or f"answer: {answer}",
        shade=answer_shade(verdict.correct),
        reasons=[("parsed as", answer), ("label", verdict.label), ("parser", verdict.how)],
    )


def _answer_facets(verdict: AnswerVerdict) -> dict[str, str]:
    """Return the cell of the confusion matrix, the answer and the label.

    More answers of a kind than labels of it, and more wrong answers to one label, show a bias.
    """
    answer = verdict.answer or "unreadable"
    if not verdict.label:
        # Judged answers that are compared with no label.
        return {"outcome": f"{answer}, {_WORDS[verdict.correct]}", "answer": answer}
    outcome = f"said {answer}, is {verdict.label}"
    return {"outcome": outcome, "answer": answer, "label": verdict.label}


def _declined_facts(judging: Sequence[Mapping[str, JsonValue]]) -> list[tuple[str, str]]:
    """Return the judges that gave no verdict, each with its reason."""
    return [
        ("no verdict from", f"{part['judge']}: {reason}")
        for part in judging
        if isinstance(part["declined"], Mapping)
        for reason in part["declined"]
    ]


def _show_answers(item: Item, evidence: AnswersEvidence) -> ItemView:
    asked: Sequence[Answer] = getattr(item, "answers", ())
    verdicts = evidence.answers
    shown = _named_by_text(asked, verdicts)
    named = [f"{verdict.name} {_WORDS[verdict.correct]}".lstrip() for verdict in shown]
    alone = verdicts[0] if len(verdicts) == 1 else None
    wrong = [verdict.name for verdict in shown if verdict.correct is False]
    return ItemView(
        summary=f"{alone.answer or 'unreadable'}, {_verdict(alone)}" if alone else ", ".join(named),
        passages=list(_answer_passages(asked, verdicts)),
        lists=list(_right_answer(asked)),
        claims=_answer_claims(structs.replace(evidence, answers=shown), named=not alone),
        facts=[*item_facts(item, without=("answers",)), *_answer_facts(item, asked)],
        wrong=len(wrong),
        total=len(verdicts),
        facets={
            **(
                _answer_facets(alone)
                if alone
                else {
                    "bundle": _outcome(
                        named if shown is verdicts else [], len(wrong), len(verdicts)
                    )
                }
            ),
            **{name: item.fields[name] for name in _GROUPS if name in item.fields},
        },
        measures={} if evidence.margin is None else {"margin": evidence.margin},
        terms={"wrong": list(filter(None, wrong))},
    )


def _named_by_text(
    asked: Sequence[Answer], verdicts: tuple[AnswerVerdict, ...]
) -> tuple[AnswerVerdict, ...]:
    """Return verdicts on numbered answers without labels, such as objects, named by their texts."""
    texts = {answer.name: answer.response or "" for answer in asked}
    if any(verdict.label or not verdict.name.isdigit() for verdict in verdicts):
        return verdicts
    return tuple(structs.replace(each, name=texts.get(each.name) or each.name) for each in verdicts)


def _outcome(named: Sequence[str], wrong: int, total: int) -> str:
    """Return the outcome of a bundle as a facet, which must not have hundreds of values."""
    return ", ".join(named) if 0 < len(named) <= _MOST_NAMED else f"{wrong} of {total} wrong"


def _right_answer(asked: Sequence[Answer]) -> Iterator[Listing]:
    """Yield the label that all answers of one question have, with the text of its option."""
    labels = {(each.question, each.label, each.options.get(each.label, "")) for each in asked}
    if len(labels) == 1 and asked[0].name:
        yield Listing(label="Right answer", entries=[": ".join(filter(None, labels.pop()[1:]))])


def _answer_facts(item: Item, asked: Sequence[Answer]) -> Iterator[tuple[str, str]]:
    """Yield the fields of answers; one value of all answers is shown once."""
    for name in dict.fromkeys(name for a in asked for name in a.fields if name not in item.fields):
        found = {a.name: value for a in asked if (value := a.fields.get(name))}
        same, words = len(set(found.values())) == 1, name.replace("_", " ")
        for which in list(found)[:1] if same else found:
            yield words if same else f"{which} {words}", found[which]


def _answer_claims(evidence: AnswersEvidence, *, named: bool) -> list[Claim]:
    """Return the answers, the last one with what its judges said."""
    claims = [
        _answer_claim(verdict, f"{verdict.name}: {verdict.answer or 'unreadable'}" * named)
        for verdict in evidence.answers
    ]
    if claims:
        share = evidence.probability
        judged = [
            ("given verdict", evidence.given or ""),
            ("margin", "" if evidence.margin is None else f"{evidence.margin:.4f}"),
            *([] if share is None else [("token probability", f"right: {_percent_of(share)}")]),
            *_declined_facts(evidence.judging),
        ]
        claims[-1] = structs.replace(claims[-1], reasons=[*claims[-1].reasons, *judged])
    return claims


def _answer_passages(
    asked: Sequence[Answer], verdicts: Sequence[AnswerVerdict]
) -> Iterator[Passage]:
    """Yield each question, its response and its options, with the chosen one marked."""
    by_name = {verdict.name: (index, verdict) for index, verdict in enumerate(verdicts)}
    shown: Mapping[str, str] = {}
    for answer in asked:
        name = f", {answer.name}" if answer.name else ""
        if answer.question:
            yield Passage(text=answer.question, label=f"Question{name}")
        label = answer.name or ("Response" if answer.options else "")
        label = f"Response{name}" if answer.question else label
        # A description without a judgement has no verdict.
        if answer.name not in by_name:
            yield Passage(text=answer.response or "", label=label)
            continue
        index, verdict = by_name[answer.name]
        shade = answer_shade(verdict.correct)
        if answer.response:
            yield marked_passage(answer.response, label, shade, index)
        # Answers to one question have the same options, which are shown once.
        for letter, text in answer.options.items() if answer.options != shown else ():
            if letter == verdict.answer:
                yield marked_passage(text, letter, shade, index)
            else:
                yield Passage(text=text, label=letter)
        shown = answer.options


def _text_of(claim: ClaimVerdict) -> str:
    return " · ".join(claim.triplet)


def _claim_view(claim: ClaimVerdict, places: Mapping[Triplet, int]) -> Claim:
    """Return a claim with its verdict and what explains it.

    Args:
        claim: The claim.
        places: Reference triplet -> its place in the shown scene graph; empty without one.
    """
    return Claim(
        text=_text_of(claim),
        shade=_SHADES[claim.verdict],
        reasons=list(_reasons(claim)),
        matched=sorted({places[t] for t in claim.references if t in places}),
        kind=", ".join(filter(None, (claim.kind, claim.moment))),
    )


def _reasons(claim: ClaimVerdict) -> Iterator[tuple[str, str]]:
    if claim.part:
        yield "wrong part", claim.part.value
    if claim.modality not in (None, Modality.STATED):
        yield "modality", claim.modality.value
    if claim.reason:
        yield "no verdict", f"{claim.reason}: {claim.detail}"
    shown = [" · ".join(triplet) for triplet in claim.references[:_REFERENCES]]
    if more := len(claim.references) - _REFERENCES:
        shown += [f"and {more:,} more"] if more > 0 else []
    yield "compared with", "; ".join(shown)
    yield from _scores(claim)
    yield "judge", claim.judge


def _scores(claim: ClaimVerdict) -> Iterator[tuple[str, str]]:
    """Yield a matcher's similarity or another judge's probability, and the margin."""
    if (share := support_probability(claim)) is not None:
        name = "token probability" if claim.judge in LANGUAGE_MODELS else "probability"
        yield name, f"supported: {_percent_of(share)}"
    elif claim.score is not None:
        yield "similarity", f"{claim.score:.4f}"
    if claim.margin is not None:
        yield "margin", f"{claim.margin:.4f}"


def _judge_facts(judging: Sequence[Mapping[str, Any]]) -> Iterator[tuple[str, str]]:
    """Yield the judges in the order of their calls, with what each declined."""
    for number, entry in enumerate(judging, 1):
        parts = [counted(int(entry.get("answered", 0)), "verdict")]
        for reason, of in dict(entry.get("declined") or {}).items():
            claims = counted(int(of.get("claims", 0)), "claim")
            parts.append(f"none on {claims}: {reason}, {of.get('detail', '')}")
        yield f"judge {number}", f"{entry.get('judge', '')}: {'; '.join(parts)}"


def _claim_passages(item: Item, claims: Sequence[ClaimVerdict]) -> Iterator[Passage]:
    """Yield the question, and the response with its claims marked."""
    if question := getattr(item, "question", ""):
        yield Passage(text=question, label="Question")
    if response := getattr(item, "response", None):
        marks = [
            Mark(*claim.span, _SHADES[claim.verdict], index)
            for index, claim in enumerate(claims)
            if claim.span
        ]
        yield Passage(text=response, marks=marks, label="Response" if question else "")


def _margin_measures(claims: Sequence[ClaimVerdict]) -> dict[str, float]:
    """Return the smallest margin of the claims' verdicts, if any is known."""
    known = [abs(claim.margin) for claim in claims if claim.margin is not None]
    return {"margin": min(known)} if known else {}


_PLACES = {Part.SUBJECT: 0, Part.RELATION: 1, Part.OBJECT: 2}


def _wrong_parts(claims: Sequence[ClaimVerdict], *parts: Part) -> list[str]:
    """Return the wrong parts of claims, of some kinds of parts; a sentence has none."""
    # Models write one object in several ways, and charts count names.
    return [
        claim.triplet[_PLACES[claim.part]].strip().lower()
        for claim in claims
        if claim.part in parts and len(claim.triplet) >= len(_PLACES)
    ]


def _show_tri_he(item: Item, evidence: TriHeEvidence) -> ItemView:
    claims = evidence.claims
    graph: Sequence[Triplet] = getattr(item, "reference_triplets", None) or evidence.scene_graph
    places = {triplet: index for index, triplet in enumerate(graph)}
    wrong = [claim for claim in claims if claim.verdict is Verdict.NOT_SUPPORTED]
    scored = sum(claim.verdict is not Verdict.UNSCORED for claim in claims)
    human = {"human scores": list(evidence.human_scores)} if evidence.human_scores else {}
    return ItemView(
        summary=f"{len(wrong):,} of {counted(len(claims), 'claim')} hallucinated",
        passages=list(_claim_passages(item, claims)),
        claims=[_claim_view(claim, places) for claim in claims],
        lists=[
            Listing(label="Hallucinated", entries=map(_text_of, wrong), style="wrong"),
            invalid_listing(evidence.invalid, "claims"),
        ],
        facts=[
            *facts({"extractor": evidence.extractor, **human}),
            *_judge_facts(evidence.judging),
        ],
        graph=[list(triplet) for triplet in graph],
        wrong=len(wrong),
        total=scored,
        measures=_margin_measures(claims),
        terms={
            "hallucinated": _wrong_parts(wrong, Part.SUBJECT, Part.OBJECT),
            "relations": _wrong_parts(wrong, Part.RELATION),
        },
    )


def _show_seen_claims(item: Item, evidence: SeenClaimsEvidence) -> ItemView:
    claims = evidence.claims
    wrong = list(filter(is_hallucinated, claims))
    unseen = [c for c in claims if c.reason == UnscoredReason.CLAIM_NOT_VISIBLE]
    names = dict.fromkeys(picture.name for picture in evidence.pictures)
    return ItemView(
        summary=f"{len(wrong):,} of {counted(len(claims), 'claim')} not supported by the picture",
        passages=list(_claim_passages(item, claims)),
        claims=[_claim_view(claim, {}) for claim in claims],
        lists=[
            Listing(label="Hallucinated", entries=map(_text_of, wrong), style="wrong"),
            Listing(label="Not visible", entries=map(_text_of, unseen)),
            invalid_listing(evidence.invalid, "claims"),
        ],
        facts=[
            *facts({"picture": list(names), "extractor": evidence.extractor}),
            *_judge_facts(evidence.judging),
        ],
        wrong=len(wrong),
        total=sum(claim.verdict is not Verdict.UNSCORED for claim in claims),
        measures=_margin_measures(claims),
        terms={"hallucinated": [_text_of(claim).strip().lower() for claim in wrong]},
    )


def _line_shade(line: LineCost) -> Shade:
    return Shade.WRONG if line.cost or line.penalty else Shade.RIGHT


def _line_claim(line: LineCost, sources: list[str]) -> Claim:
    placed = 0 <= line.place < len(sources) and line.verdict == ENTAILED
    return Claim(
        text=line.text,
        shade=_line_shade(line),
        reasons=[
            ("verdict", line.verdict),
            ("kind", line.kind),
            ("evidence", line.evidence),
            ("placed at", f"{line.place + 1}: {sources[line.place]}" if placed else ""),
            ("cost", f"{line.cost:g}"),
            ("penalty for order", f"{line.penalty:.1f}" if line.penalty else ""),
        ],
    )


def _line_marks(text: str, lines: tuple[LineCost, ...]) -> Iterator[Mark]:
    """Yield the place of each line in its caption; lines that were joined or changed have none."""
    start = 0
    for index, line in enumerate(lines):
        # From the end of the line before: equal lines have places of their own.
        at = text.find(line.text, start)
        if at >= 0:
            start = at + len(line.text)
            yield Mark(at, start, _line_shade(line), index)


def _show_argus(item: Item, evidence: ArgusEvidence) -> ItemView:
    target = getattr(item, "response", None) or ""
    source, mode = (item.source or "", item.mode) if isinstance(item, ArgusItem) else ("", "")
    lines, sources = evidence.lines, lines_of(source)
    wrong = sum(line.cost > 0 for line in lines)
    later = sum(line.penalty > 0 for line in lines)
    return ItemView(
        summary=f"{wrong} of {counted(len(lines), 'line')} unsupported or misplaced, "
        f"{later} out of order",
        passages=[
            Passage(text=target, label="Target caption", marks=list(_line_marks(target, lines))),
            Passage(text=source, label="Source caption"),
        ],
        claims=[_line_claim(line, sources) for line in lines],
        facts=[
            ("cost", f"{evidence.cost:.4g} of {evidence.max_cost:.4g}"),
            ("entailed actions", str(evidence.actions)),
            *_declined_facts(evidence.judging),
        ],
        wrong=wrong,
        total=len(lines),
        facets={"mode": mode} if mode else {},
        measures={"cost": evidence.cost},
    )


VIEWS: dict[type[object], View] = {
    AnswersEvidence: View(
        show=_show_answers,
        words=ANSWER_WORDS,
        facets={
            **_FACETS,
            "bundle": Facet("Outcome of the answers", rates=False),
            **{name: Facet(name.capitalize()) for name in _GROUPS},
        },
        terms={"wrong": "Wrong answers"},
    ),
    TriHeEvidence: View(
        show=_show_tri_he,
        terms={
            "hallucinated": "Most hallucinated objects",
            "relations": "Most hallucinated relations",
        },
    ),
    SeenClaimsEvidence: View(
        show=_show_seen_claims, terms={"hallucinated": "Most hallucinated claims"}
    ),
    ArgusEvidence: View(show=_show_argus, facets={"mode": Facet("Examined for")}),
}
"""View of each kind of evidence."""
