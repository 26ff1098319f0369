"""How well a judge configuration does on known data, for the note beside its numbers.

Tri-HE's figures are data (``data/judge_agreement.json``), which
``benchmarks/bench_judge_agreement.py`` measures: claims of answers that people checked count as
true of their own image, and as false of another image.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources

from ..matchers import MatcherSettings

__all__ = [
    "KEYWORD_QUALITY",
    "Agreement",
    "KeywordQuality",
    "agreement_note",
    "agreement_table",
    "asked_judge_note",
    "best_measured",
    "given_verdicts_note",
    "keywords_note",
    "measured_agreements",
    "read_agreements",
]

_PAGE = "docs/explanation/tri-he-validation.md"
_KEYWORDS_PAGE = "docs/explanation/rule-extractor-quality.md"


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """A configuration's figures on the half of the data that no threshold was chosen by."""

    extractor: str
    """``rules`` or ``sentences``."""
    protocol: str
    """The matcher's protocol."""
    model: str
    """The name of the sentence encoder, for the table."""
    weights: str
    """The SHA-256 of its weights, by which it is known whatever its folder is called."""
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


@dataclass(frozen=True, slots=True, kw_only=True)
class KeywordQuality:
    """How well the rules find the annotated keywords of the held-out descriptions."""

    kind: str
    """``objects`` or ``behaviors``."""
    precision: float
    """Share of the listed keywords that are annotated."""
    recall: float
    """Share of the annotated keywords that are listed."""


# The row "held out, 50" of docs/explanation/rule-extractor-quality.md, which a test compares.
KEYWORD_QUALITY = (
    KeywordQuality(kind="objects", precision=0.978, recall=0.948),
    KeywordQuality(kind="behaviors", precision=0.962, recall=0.926),
)


@cache
def measured_agreements() -> tuple[Agreement, ...]:
    """Return the configurations that were measured."""
    file = resources.files(__package__).joinpath("data", "judge_agreement.json")
    return read_agreements(json.loads(file.read_text(encoding="utf-8")))


def read_agreements(rows: Sequence[Mapping[str, object]]) -> tuple[Agreement, ...]:
    """Return the rows that the benchmark writes as values."""
    return tuple(map(_agreement, rows))


def best_measured(extractor: str, protocol: str, weights: str) -> Agreement | None:
    """Return the thresholds with the best agreement on the tuning half; None: not measured.

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
    return max(known, key=lambda each: each.tuning, default=None)


def agreement_table(rows: Sequence[Agreement]) -> str:
    """Return the configurations as a Markdown table, best on the tuning half first."""
    lines = [
        "| extractor | model | keep above | support above | true claims supported | false claims "
        "supported | agreement, tuning half | agreement, check half |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for row in sorted(rows, key=lambda row: -row.tuning):
        lines.append(
            f"| `{row.extractor}` | {row.model} | {row.keep_above} | {row.support_above} | "
            f"{row.true_supported:.1%} | {row.false_supported:.1%} | {row.tuning:.3f} | "
            f"{row.check:.3f} |"
        )
    return "\n".join(lines) + "\n"


def _agreement(row: Mapping[str, object]) -> Agreement:
    tuning, check = row["tuning"], row["check"]
    assert isinstance(tuning, dict), "written by the benchmark"
    assert isinstance(check, dict), "written by the benchmark"
    named = ("extractor", "protocol", "model", "weights", "keep_above", "support_above")
    return Agreement(
        **{name: row[name] for name in named},  # type: ignore[arg-type]  # written by the benchmark
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
    for known in measured_agreements() if judge == "matcher" else ():
        if _is_of(known, extractor, settings, weights):
            return (
                f"On known data this judge calls {1 - known.true_supported:.0%} of checked true "
                f"claims unsupported and {known.false_supported:.0%} of false claims supported. "
                f"Compare models with it; do not quote it as a rate. See {_PAGE}."
            )
    return (
        "This extractor and judge were not measured together on known data. Compare models with "
        f"them; do not quote the result as a rate. See {_PAGE}."
    )


def _is_of(known: Agreement, extractor: str, settings: MatcherSettings, weights: str) -> bool:
    return (extractor, settings.protocol, weights) == (
        known.extractor,
        known.protocol,
        known.weights,
    ) and (settings.keep_above, settings.support_above) == (known.keep_above, known.support_above)


def keywords_note(extractor: str) -> str:
    """Return the note on what takes keywords from descriptions; empty: they are given.

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
        score: What rests on them, with its verb.
        verdicts: What they are, in the plural.
    """
    return (
        f"{score} on {verdicts} that came with the responses. How their judge does on known data "
        "was not measured; compare models that the same judge judged."
    )
