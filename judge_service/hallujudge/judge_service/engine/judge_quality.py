"""What is known about a judge: its agreement with known data, and its report card.

Tri-HE's figures are data (``data/judge_agreement.json``) that
``benchmarks/bench_judge_agreement.py`` measures: claims of answers that people checked count as
true for their own image, and as false for another image.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from hashlib import sha256
from importlib import resources
from typing import TYPE_CHECKING, Any

from msgspec import Struct

from hallujudge.metrics.framework.metric import JudgeOption
from hallujudge.metrics.framework.signature import CARD_MARK, CARD_NOTE, signature_value

from ..errors import InvalidInputError
from ..judges.judge_rules import option_file
from ..matchers import MatcherSettings
from .judge_options import ALL_SMALL_JUDGES, LLM_NAMES, judges_of

if TYPE_CHECKING:
    from .judge_factory import JudgeFactory
    from .spec import ScoreSpec


CARD_OPTION = JudgeOption(
    name="card",
    meaning="Report card of the judge, as JSON.",
    details="Its hash is in the signature, and its main figures are in the report.",
    file=True,
)
"""The report card of a run's judge."""
_PAGE = "docs/explanation/tri-he-validation.md"
_KEYWORDS_PAGE = "docs/explanation/rule-extractor-quality.md"
_SHOWN_HASH = 12


class Agreement(Struct, frozen=True, kw_only=True):
    """A configuration's figures on the half of the data that did not choose its thresholds."""

    extractor: str
    """``rules`` or ``sentences``."""
    protocol: str
    """The matcher's protocol."""
    model: str
    """The name of the sentence encoder, for the table."""
    weights: str
    """The SHA-256 of its weights, which do not depend on the name of its folder."""
    keep_above: float
    """Cosine above which a reference is kept."""
    support_above: float
    """Cosine above which a claim is supported."""
    true_supported: float
    """Share of true claims that it supports."""
    false_supported: float
    """Share of false claims that it supports."""
    tuning: float
    """Agreement on the tuning half."""

    @property
    def check(self) -> float:
        """Agreement on the check half: the mean of both shares that are right."""
        return (self.true_supported + 1 - self.false_supported) / 2


class KeywordQuality(Struct, frozen=True, kw_only=True):
    """How well the rules find the annotated keywords of the held-out descriptions."""

    kind: str
    """``objects`` or ``behaviors``."""
    precision: float
    """Share of the extracted keywords that are annotated."""
    recall: float
    """Share of the annotated keywords that are extracted."""


# The row "held out, 50" of docs/explanation/rule-extractor-quality.md, which a test compares.
KEYWORD_QUALITY = (
    KeywordQuality(kind="objects", precision=0.978, recall=0.952),
    KeywordQuality(kind="behaviors", precision=0.968, recall=0.932),
)


@cache
def measured_agreements() -> tuple[Agreement, ...]:
    """Return the configurations that were measured."""
    file = resources.files(__package__).joinpath("data", "judge_agreement.json")
    return read_agreements(json.loads(file.read_text(encoding="utf-8")))


def read_agreements(rows: Sequence[Mapping[str, Any]]) -> tuple[Agreement, ...]:
    """Return the rows that the benchmark writes as values."""
    return tuple(_agreement(**row) for row in rows)


def best_measured(extractor: str, protocol: str, weights: str) -> Agreement | None:
    """Return the thresholds with the best agreement on the tuning half, if they were measured.

    Args:
        extractor: Extracts claims from answers.
        protocol: The matcher's protocol.
        weights: The SHA-256 of the sentence encoder's weights.
    """
    known = [
        each
        for each in measured_agreements()
        if (each.extractor, each.protocol, each.weights) == (extractor, protocol, weights)
    ]
    # By the tuning half alone: the other half measures what was chosen, and must not choose it.
    return max(known, key=lambda each: each.tuning, default=None)


def _agreement(*, tuning: Mapping[str, Any], check: Mapping[str, Any], **named: Any) -> Agreement:
    return Agreement(
        **named,
        true_supported=check["true_supported"],
        false_supported=check["false_supported"],
        tuning=(tuning["true_supported"] + 1 - tuning["false_supported"]) / 2,
    )


def agreement_note(extractor: str, judge: str, settings: MatcherSettings, weights: str) -> str:
    """Return the note on a judge: how it did on known data, or that it was not measured.

    Args:
        extractor: Extracts claims from answers.
        judge: The name of the judge.
        settings: How the matcher compares, where it is the judge.
        weights: The SHA-256 of the matcher's sentence encoder.
    """
    thresholds = settings.keep_above, settings.support_above
    # Only the matcher was measured; language models have report cards instead.
    for known in measured_agreements() if judge == "matcher" else ():
        found = known.extractor, known.protocol, known.weights
        same = (known.keep_above, known.support_above) == thresholds
        if same and found == (extractor, settings.protocol, weights):
            return (
                f"On known data this judge calls {1 - known.true_supported:.0%} of checked true "
                f"claims unsupported and {known.false_supported:.0%} of false claims supported. "
                f"Compare models with it; do not quote it as a rate. See {_PAGE}."
            )
    return (
        "This extractor and judge were not measured together on known data. Compare models with "
        f"them; do not quote the result as a rate. See {_PAGE}."
    )


def keywords_note(extractor: str) -> str:
    """Return the note on how well the extractor finds keywords.

    Args:
        extractor: ``rules``, ``llm`` or ``given``.
    """
    if extractor == "given":
        return (
            "Keywords came with the descriptions; what took them was not measured on known data. "
            "Compare models whose keywords were taken in the same way."
        )
    if extractor != "rules":
        return (
            "This keyword extractor was not measured on known data. Compare models with it; do "
            f"not quote the result as a rate. {_KEYWORDS_PAGE} has the figures of the rules."
        )
    return (
        "On 50 annotated descriptions the rules find "
        + " and ".join(
            f"{row.recall:.0%} of the {row.kind} ({row.precision:.0%} of what they list is right)"
            for row in KEYWORD_QUALITY
        )
        + f"; expect less on longer texts. Compare models with them. See {_KEYWORDS_PAGE}."
    )


def asked_judge_note() -> str:
    """Return the note on a language model that judges with its own or a user's prompt."""
    return (
        "This judge was not measured on known data. Compare models with it; do not quote the "
        "result as a rate. hallujudge analyze prints its agreement with judgements that came with "
        "the responses."
    )


def given_verdicts_note(score: str, verdicts: str) -> str:
    """Return the note on scores that rest on verdicts of an unknown judge.

    Args:
        score: The scores that rest on them, with the verb.
        verdicts: The plural noun for them.
    """
    return (
        f"{score} on {verdicts} that came with the responses. How their judge does on known data "
        "was not measured; compare models that the same judge judged."
    )


class ReportCard(Struct, frozen=True, kw_only=True):
    """The parts of a judge's report card that a run keeps."""

    judge: str
    """The signature of the card's judge."""
    sha256: str
    """The card's hash."""
    note: str
    """Its main figures, as a sentence for the report."""

    @property
    def mark(self) -> str:
        """The end of the judge's field in the signature."""
        return f"{CARD_MARK}{self.sha256[:_SHOWN_HASH]}"


def card_sha256(content: Mapping[str, Any]) -> str:
    """Return the hash of a card's content, which is all but the hash itself."""
    kept = {name: value for name, value in content.items() if name != "sha256"}
    return sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def card_of(spec: ScoreSpec, signatures: Sequence[str]) -> ReportCard | None:
    """Return the report card of a spec, or None if it has none.

    Args:
        spec: The spec.
        signatures: Of the run's judge, and of each judge of a router.

    Raises:
        InvalidInputError: The card can't be read, was changed, or is of another judge.
    """
    text = spec.options.get(CARD_OPTION.name, "")
    if not text:
        return None
    card = _read_card(text)
    # Members of a panel may be one model with several wordings.
    known = list(dict.fromkeys(map(signature_value, signatures)))
    if card.judge not in known:
        raise InvalidInputError(
            f"the card is of the judge {card.judge!r:.300}, but this run's is "
            f"{' with '.join(map(repr, known))[:600]}; make a card of a run of this judge"
        )
    return card


def _read_card(text: str) -> ReportCard:
    advice = "give the JSON file of a card as it was written"
    with option_file(
        "card", text, "judge-card", what="a judge's report card", advice=advice
    ) as content:
        if content["sha256"] != card_sha256(content):
            raise ValueError("its hash is not that of its content, so it was changed")
        return ReportCard(
            judge=str(content["judge"]), sha256=content["sha256"], note=_card_note(content)
        )


def _card_note(content: Mapping[str, Any]) -> str:
    agreement = content["accuracy"]["agreement"]
    truth = "labels" if content["compared_with"] == "labels" else "a reference judge"
    bias = float(content["yes_bias"]["difference"])
    interval = f"[{agreement['ci_low']:.1%}, {agreement['ci_high']:.1%}]"
    parts = [
        f"agrees with {truth} on {agreement['value']:.1%} {interval} of {content['labels']:,} "
        "verdicts",
        *_accuracy_parts(content["accuracy"]),
        f"says supported {abs(bias):.1%} too {'often' if bias >= 0 else 'seldom'}",
    ]
    if content["reliability"]["ece"] is not None:
        parts.append(f"has an expected calibration error of {content['reliability']['ece']:.3f}")
    if flips := _flips_part(content["flips"]):
        parts.append(flips)
    card = content["sha256"][:_SHOWN_HASH]
    return f"{CARD_NOTE} ({card}) of {content['judge'].partition(',')[0]}: it {'; '.join(parts)}."


def _accuracy_parts(accuracy: Mapping[str, Any]) -> Iterator[str]:
    """Yield which claims it gets right; a rate without claims has no value."""
    for rate, does in (
        ("sensitivity", "rejects {} of hallucinated claims"),
        ("specificity", "accepts {} of other claims"),
    ):
        if (value := accuracy[rate]["value"]) is not None:
            yield does.format(f"{value:.1%}")


def _flips_part(rows: Sequence[Mapping[str, Any]]) -> str:
    shares = {row["change"]: float(row["share"]) for row in rows if row["share"] is not None}
    parts = []
    if "repetition" in shares:
        parts.append(f"{shares['repetition']:.1%} of verdicts on repetition")
    if reworded := [share for change, share in shares.items() if change.startswith("rewording")]:
        parts.append(f"up to {max(reworded):.1%} on rewording")
    return f"flips {', '.join(parts)}" if parts else ""


def check_probabilities(
    factory: JudgeFactory, name: str, others: str = "a small judge, or "
) -> None:
    """Reject a judge that reports no probabilities, without loading a model.

    Args:
        factory: Builds the judges.
        name: The judge's name; for ``router``, one judge that reports them is enough.
        others: Other judges of the family that report them, for the message.

    Raises:
        InvalidInputError: The judge reports none, is unknown or is not configured.
    """
    if not any(
        factory.llm(part).reports_probabilities if part in LLM_NAMES else part in ALL_SMALL_JUDGES
        for part in judges_of(factory.settings, name)
    ):
        raise InvalidInputError(
            f"the option soft needs probabilities, and the judge {name!r} gives none; use "
            f"{others}a language model whose server reports log-probabilities"
        )
