"""A judge's report card in runs with that judge: its hash in the signature, its main line."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from typing import TYPE_CHECKING, Any

from hallujudge.metrics.framework.metric import OptionDefinition
from hallujudge.metrics.framework.signature import CARD_MARK, CARD_NOTE, signature_value

from ..errors import InvalidInputError
from ..faults import fault_of

if TYPE_CHECKING:
    from .spec import ScoreSpec

__all__ = ["CARD_OPTION", "CARD_SCHEMA", "ReportCard", "card_of", "card_sha256"]

CARD_SCHEMA = "hallujudge.judge-card/1"
_SHOWN = 12

CARD_OPTION = OptionDefinition(
    name="card",
    default="",
    meaning="Report card of the judge, as JSON.",
    details="Its hash is in the signature, and its main figures are in the report.",
    purpose="judge",
    file=True,
)
"""The report card of a run's judge."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportCard:
    """What a run keeps of its judge's report card."""

    judge: str
    """The signature of the judge that the card is of."""
    sha256: str
    """The card's hash."""
    note: str
    """Its main figures, as a sentence for the report."""

    @property
    def mark(self) -> str:
        """The end of the judge's field in the signature."""
        return f"{CARD_MARK}{self.sha256[:_SHOWN]}"


def card_sha256(content: Mapping[str, Any]) -> str:
    """Return the hash of a card's content, which is all but the hash itself."""
    kept = {name: value for name, value in content.items() if name != "sha256"}
    return sha256(json.dumps(kept, sort_keys=True).encode()).hexdigest()


def card_of(spec: ScoreSpec, signatures: Sequence[str]) -> ReportCard | None:
    """Return the report card that a spec gives; None: it gives none.

    Args:
        spec: The spec.
        signatures: Of the run's judge, and of each judge of a router.

    Raises:
        InvalidInputError: The card can't be read, was changed, or is of another judge.
    """
    text = spec.options.get(CARD_OPTION.name, "")
    if not text:
        return None
    card = _read(text)
    known = list(dict.fromkeys(map(signature_value, signatures)))
    if card.judge not in known:
        raise InvalidInputError(
            f"the card is of the judge {card.judge!r:.300}, but this run's is "
            f"{' with '.join(map(repr, known))[:600]}; make a card of a run of this judge"
        )
    return card


def _read(text: str) -> ReportCard:
    try:
        content: Any = json.loads(text)
        if content["schema"] != CARD_SCHEMA:
            raise ValueError(f"its schema is {content['schema']!r:.40}")
        if content["sha256"] != card_sha256(content):
            raise ValueError("its hash is not that of its content, so it was changed")
        return ReportCard(
            judge=str(content["judge"]), sha256=content["sha256"], note=_note(content)
        )
    except (ValueError, KeyError, TypeError, AttributeError, RecursionError) as err:
        raise InvalidInputError(
            f"the option card is not a judge's report card: {fault_of(err)}; give the JSON file of "
            "a card as it was written"
        ) from err


def _note(content: Mapping[str, Any]) -> str:
    agreement = content["accuracy"]["agreement"]
    truth = "labels" if content["compared_with"] == "labels" else "a reference judge"
    bias = float(content["yes_bias"]["difference"])
    interval = f"[{agreement['ci_low']:.1%}, {agreement['ci_high']:.1%}]"
    parts = [
        f"agrees with {truth} on {agreement['value']:.1%} {interval} of {content['labels']:,} "
        "verdicts",
        *_errors(content["accuracy"]),
        f"says supported {abs(bias):.1%} too {'often' if bias >= 0 else 'seldom'}",
    ]
    if content["reliability"]["ece"] is not None:
        parts.append(f"has an expected calibration error of {content['reliability']['ece']:.3f}")
    if flips := _flips(content["flips"]):
        parts.append(flips)
    card = content["sha256"][:_SHOWN]
    return f"{CARD_NOTE} ({card}) of {content['judge'].partition(',')[0]}: it {'; '.join(parts)}."


def _errors(accuracy: Mapping[str, Any]) -> Iterator[str]:
    """Yield which claims it gets right; a rate without claims has no value."""
    for rate, does in (
        ("sensitivity", "rejects {} of hallucinated claims"),
        ("specificity", "accepts {} of other claims"),
    ):
        if (value := accuracy[rate]["value"]) is not None:
            yield does.format(f"{value:.1%}")


def _flips(rows: Sequence[Mapping[str, Any]]) -> str:
    shares = {row["change"]: float(row["share"]) for row in rows if row["share"] is not None}
    told = []
    if "repetition" in shares:
        told.append(f"{shares['repetition']:.1%} of verdicts on repetition")
    if reworded := [share for change, share in shares.items() if change.startswith("rewording")]:
        told.append(f"up to {max(reworded):.1%} on rewording")
    return f"flips {', '.join(told)}" if told else ""
