"""View of answers to closed questions, alone or in bundles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import structs

from hallujudge.metrics import Answer, AnswersEvidence, AnswerVerdict, Item, JsonValue

from .item_views import (
    ANSWER_WORDS,
    Claim,
    Facet,
    ItemView,
    Listing,
    Passage,
    View,
    answer_shade,
    item_facts,
    marked_passage,
)

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


def token_probability(answer: str, share: float | None) -> Iterator[tuple[str, str]]:
    """Yield how probable an answer is, if the judge reported it.

    Args:
        answer: The answer, such as ``right``.
        share: Its probability; None if the judge reported none.
    """
    if share is not None:
        yield "token probability", f"{answer}: {percent_of(share)}"


def percent_of(share: float) -> str:
    """Return a probability in percent, with as many digits as are meaningful."""
    if share < _LEAST_PROBABILITY:
        return "under 0.1 %"
    if share > 1 - _LEAST_PROBABILITY:
        return "over 99.9 %"
    return f"{100 * share:.1f} %"


def _verdict(verdict: AnswerVerdict) -> str:
    labelled = verdict.correct is False and verdict.label
    return f"wrong: it is {verdict.label}" if labelled else _WORDS[verdict.correct]


def _claim(verdict: AnswerVerdict, text: str) -> Claim:
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


def _facets(verdict: AnswerVerdict) -> dict[str, str]:
    """Return the cell of the confusion matrix, the answer and the label.

    More answers of a kind than labels of it, and more wrong answers to one label, show a bias.
    """
    answer = verdict.answer or "unreadable"
    if not verdict.label:
        # Judged answers that are compared with no label.
        return {"outcome": f"{answer}, {_WORDS[verdict.correct]}", "answer": answer}
    outcome = f"said {answer}, is {verdict.label}"
    return {"outcome": outcome, "answer": answer, "label": verdict.label}


def declined_facts(judging: Sequence[Mapping[str, JsonValue]]) -> list[tuple[str, str]]:
    """Return the judges that gave no verdict, each with its reason."""
    return [
        ("no verdict from", f"{part['judge']}: {reason}")
        for part in judging
        if isinstance(part["declined"], Mapping)
        for reason in part["declined"]
    ]


def _show(item: Item, evidence: AnswersEvidence) -> ItemView:
    asked: Sequence[Answer] = getattr(item, "answers", ())
    verdicts = evidence.answers
    shown = _named_by_text(asked, verdicts)
    named = [f"{verdict.name} {_WORDS[verdict.correct]}".lstrip() for verdict in shown]
    alone = verdicts[0] if len(verdicts) == 1 else None
    wrong = [verdict.name for verdict in shown if verdict.correct is False]
    return ItemView(
        summary=f"{alone.answer or 'unreadable'}, {_verdict(alone)}" if alone else ", ".join(named),
        passages=list(_passages(asked, verdicts)),
        lists=list(_right_answer(asked)),
        claims=_claims(structs.replace(evidence, answers=shown), named=not alone),
        facts=[*item_facts(item, without=("answers",)), *_facts(item, asked)],
        wrong=len(wrong),
        total=len(verdicts),
        facets={
            **(
                _facets(alone)
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


def _facts(item: Item, asked: Sequence[Answer]) -> Iterator[tuple[str, str]]:
    """Yield the fields of answers; one value of all answers is shown once."""
    for name in dict.fromkeys(name for a in asked for name in a.fields if name not in item.fields):
        found = {a.name: value for a in asked if (value := a.fields.get(name))}
        same, words = len(set(found.values())) == 1, name.replace("_", " ")
        for which in list(found)[:1] if same else found:
            yield words if same else f"{which} {words}", found[which]


def _claims(evidence: AnswersEvidence, *, named: bool) -> list[Claim]:
    """Return the answers, the last one with what its judges said."""
    claims = [
        _claim(verdict, f"{verdict.name}: {verdict.answer or 'unreadable'}" * named)
        for verdict in evidence.answers
    ]
    if claims:
        judged = [
            ("given verdict", evidence.given or ""),
            ("margin", "" if evidence.margin is None else f"{evidence.margin:.4f}"),
            *token_probability("right", evidence.probability),
            *declined_facts(evidence.judging),
        ]
        claims[-1] = structs.replace(claims[-1], reasons=[*claims[-1].reasons, *judged])
    return claims


def _passages(asked: Sequence[Answer], verdicts: Sequence[AnswerVerdict]) -> Iterator[Passage]:
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


VIEWS: dict[type[object], View] = {
    AnswersEvidence: View(
        show=_show,
        words=ANSWER_WORDS,
        facets={
            **_FACETS,
            "bundle": Facet("Outcome of the answers", rates=False),
            **{name: Facet(name.capitalize()) for name in _GROUPS},
        },
        terms={"wrong": "Wrong answers"},
    ),
}
"""View of each kind of evidence."""
