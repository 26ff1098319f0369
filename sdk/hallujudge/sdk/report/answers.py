"""View of answers to closed questions, alone or in bundles."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TypeAlias

from hallujudge.metrics import Answer, AnswersEvidence, AnswerVerdict, Item, ItemResult, JsonValue
from hallujudge.metrics.answers.closed_questions import AnswerEvidence

from .item_views import (
    ANSWER_WORDS,
    Claim,
    Facet,
    ItemView,
    Passage,
    View,
    answer_shade,
    item_facts,
    marked_passage,
)

# The log probabilities of a language model are not precise enough for smaller shares.
_LEAST_PROBABILITY = 0.001
_Evidence: TypeAlias = "AnswerEvidence | AnswerVerdict"
_WORDS = {True: "right", False: "wrong", None: "unscored"}
ANSWER_FACETS = {
    "outcome": Facet("Answers and labels", rates=False),
    "answer": Facet("Answer", rates=False),
    "label": Facet("Label"),
}
"""Facets of :func:`answer_facets` with the titles of their charts."""


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


def _verdict(evidence: _Evidence) -> str:
    return (
        f"wrong: it is {evidence.label}" if evidence.correct is False else _WORDS[evidence.correct]
    )


def answer_claim(evidence: _Evidence, text: str = "") -> Claim:
    """Return an answer as a claim with its label and parser.

    Args:
        evidence: The answer.
        text: The claim in words; the parsed answer if empty.
    """
    answer = evidence.answer or "unreadable"
    return Claim(
        text=text or f"answer: {answer}",
        shade=answer_shade(evidence.correct),
        reasons=[("parsed as", answer), ("label", evidence.label), ("parser", evidence.how)],
    )


def answer_facets(evidence: _Evidence) -> dict[str, str]:
    """Return the cell of the confusion matrix, the answer and the label.

    More answers of a kind than labels of it, and more wrong answers to one label, show a bias.
    """
    answer = evidence.answer or "unreadable"
    outcome = f"said {answer}, is {evidence.label}"
    return {"outcome": outcome, "answer": answer, "label": evidence.label}


def declined_facts(judging: Sequence[Mapping[str, JsonValue]]) -> list[tuple[str, str]]:
    """Return the judges that gave no verdict, each with its reason."""
    return [
        ("no verdict from", f"{part['judge']}: {reason}")
        for part in judging
        if isinstance(part["declined"], Mapping)
        for reason in part["declined"]
    ]


def answer_passages(item: Item, evidence: AnswerEvidence) -> Iterator[Passage]:
    """Yield the question, the response and the options, with the chosen one marked."""
    if question := getattr(item, "question", ""):
        yield Passage(text=question, label="Question")
    options = dict(_options(item))
    shade = answer_shade(evidence.correct)
    if response := getattr(item, "response", None):
        yield marked_passage(response, "Response" if question or options else "", shade)
    for letter, text in options.items():
        if letter == evidence.answer:
            yield marked_passage(text, letter, shade)
        else:
            yield Passage(text=text, label=letter)


def _options(item: Item) -> Iterator[tuple[str, str]]:
    """Yield the letters that the model chose from, each with its caption."""
    captions: Sequence[str] = getattr(item, "captions", ())
    display: Mapping[str, int] = getattr(item, "display", {})
    for letter, rank in sorted(display.items()):
        if 0 < rank <= len(captions):
            yield letter, captions[rank - 1]


def _show(item: Item, result: ItemResult) -> ItemView:
    evidence = result.evidence
    assert isinstance(evidence, AnswerEvidence)
    return ItemView(
        summary=f"{evidence.answer or 'unreadable'}, {_verdict(evidence)}",
        passages=list(answer_passages(item, evidence)),
        claims=[answer_claim(evidence)],
        facts=item_facts(item, without=("question", "label", "captions", "display")),
        wrong=int(not evidence.correct),
        total=1,
        facets=answer_facets(evidence),
    )


def _show_bundle(item: Item, result: ItemResult) -> ItemView:
    evidence = result.evidence
    assert isinstance(evidence, AnswersEvidence)
    asked: Sequence[Answer] = getattr(item, "answers", ())
    verdicts = evidence.answers
    named = [f"{_named(verdict)}{_WORDS[verdict.correct]}" for verdict in verdicts]
    alone = verdicts[0] if len(verdicts) == 1 else None
    return ItemView(
        summary=f"{alone.answer or 'unreadable'}, {_verdict(alone)}" if alone else ", ".join(named),
        passages=list(_passages(asked, verdicts)),
        claims=[
            answer_claim(verdict, f"{verdict.name}: {verdict.answer or 'unreadable'}" * (not alone))
            for verdict in verdicts
        ],
        facts=item_facts(item, without=("answers",)),
        wrong=sum(verdict.correct is False for verdict in verdicts),
        total=len(verdicts),
        facets={
            **(answer_facets(alone) if alone else {"bundle": ", ".join(named)}),
            **({"set": item.fields["set"]} if "set" in item.fields else {}),
        },
    )


def _named(verdict: AnswerVerdict) -> str:
    return f"{verdict.name} " if verdict.name else ""


def _passages(asked: Sequence[Answer], verdicts: Sequence[AnswerVerdict]) -> Iterator[Passage]:
    """Yield each question, its response and its options, with the chosen one marked."""
    by_name = {verdict.name: (index, verdict) for index, verdict in enumerate(verdicts)}
    for answer in asked:
        index, verdict = by_name[answer.name]
        name, shade = f", {answer.name}" if answer.name else "", answer_shade(verdict.correct)
        if answer.question:
            yield Passage(text=answer.question, label=f"Question{name}")
        if answer.response:
            plain = not (answer.question or answer.options or name)
            label = "" if plain else f"Response{name}"
            yield marked_passage(answer.response, label, shade, index)
        for letter, text in answer.options.items():
            if letter == verdict.answer:
                yield marked_passage(text, letter, shade, index)
            else:
                yield Passage(text=text, label=letter)


VIEWS: dict[type[object], View] = {
    AnswerEvidence: View(show=_show, words=ANSWER_WORDS, facets=ANSWER_FACETS),
    AnswersEvidence: View(
        show=_show_bundle,
        words=ANSWER_WORDS,
        facets={
            **ANSWER_FACETS,
            "bundle": Facet("Outcome of the answers", rates=False),
            "set": Facet("Set"),
        },
    ),
}
"""View of each kind of evidence."""
