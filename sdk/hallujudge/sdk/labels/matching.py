"""Joins labels with the claims of a run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

from hallujudge.metrics.framework.agreement import krippendorff_alpha

from ..errors import InvalidInputError
from ..report.spreadsheets import csv_cell
from ..verdicts import DecidedItem
from .values import Label

__all__ = ["MatchedLabels", "match_labels", "matched_labels"]


# Pages and sheets cut longer texts, and sheets put an apostrophe before what looks like a formula.
_COMPARED = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class MatchedLabels:
    """Labels by claim and by item, with several annotators joined by majority."""

    claims: Mapping[tuple[str, int], bool]
    """Item and claim -> whether it is hallucinated."""
    items: Mapping[str, bool]
    """Item -> whether anything in it is hallucinated."""
    annotators: tuple[str, ...]
    """Names of the annotators."""
    alpha: float | None
    """Krippendorff's alpha over annotators; None if no claim or item has two labels."""
    unsure: int
    """Claims and items without a majority."""
    unknown: int
    """Labels of items or claims that the run does not have, or that have another text."""


def match_labels(labels: Sequence[Label], items: Iterable[DecidedItem]) -> MatchedLabels:
    """Join labels with the claims of a run.

    A label of words counts for every claim that shares a character with them; a claim is then
    hallucinated if any of its words is. An item whose claims are all labelled has a label too: it
    is hallucinated if one of its claims is. A label of the whole item takes precedence.

    Args:
        labels: The labels.
        items: The items of the run.
    """
    items = list(items)
    names = _names_in_sheets(items)
    by_item: dict[str, list[Label]] = defaultdict(list)
    for label in labels:
        by_item[names.get(label.item, label.item)].append(label)
    claims: dict[tuple[str, int], list[bool | None]] = {}
    whole: dict[str, list[bool | None]] = {}
    unknown, seen = 0, set()
    for item in items:
        seen.add(item.id)
        if given := by_item.get(item.id):
            found, one, other = _of_item(item, given)
            claims |= found
            unknown += other
            if one:
                whole[item.id] = one
    unknown += sum(len(given) for key, given in by_item.items() if key not in seen)
    return _joined(claims, whole, labels, unknown)


def matched_labels(
    labels: Sequence[Label], items: Sequence[DecidedItem], run: str
) -> MatchedLabels:
    """Join labels with the claims of a run that must be theirs.

    Args:
        labels: The labels.
        items: The items of the run.
        run: What messages call the run.

    Raises:
        InvalidInputError: No label says anything of a claim or item of the run.
    """
    matched = match_labels(labels, items)
    if matched.claims or matched.items:
        return matched
    if matched.unsure:
        raise InvalidInputError(
            f"every label of {run} is unsure, or contradicted by another annotator; label some "
            "claims as supported or not"
        )
    names = _names_in_sheets(items)
    known = next((label for label in labels if label.item in names), None)
    if known is None:
        raise InvalidInputError(
            f"none of {len(labels):,} labels is of a claim or item of {run}; labels name the "
            "run's items by id; marked words may name them by their response"
        )
    item = next(item for item in items if item.id == names[known.item])
    raise InvalidInputError(
        f"none of {len(labels):,} labels is of a claim of {run}: {_mismatch(known, item)}"
    )


def _mismatch(label: Label, item: DecidedItem) -> str:
    """Return why a label is of no claim of its item."""
    texts = {claim.index: claim.text for claim in item.claims}
    if label.claim is None:
        return f"the words of the first one are in no claim of item {label.item!r:.80}"
    if label.claim not in texts:
        return (
            f"item {label.item!r:.80} has no claim {label.claim!s:.20}; a claim's number is its "
            f"place in the item's evidence, from 0 to {max(texts, default=0)}"
        )
    return (
        f"claim {label.claim} of item {label.item!r:.80} is {texts[label.claim]!r:.80}, but the "
        f"label's text is {label.text!r:.80}; label this run's claims"
    )


def _names_in_sheets(items: Sequence[DecidedItem]) -> dict[str, str]:
    """Return the ids of items by what a sheet shows where it can't show the id itself."""
    shown = {csv_cell(item.id): item.id for item in items}
    return shown | {item.id: item.id for item in items}


def _joined(
    claims: Mapping[tuple[str, int], list[bool | None]],
    whole: Mapping[str, list[bool | None]],
    labels: Sequence[Label],
    unknown: int,
) -> MatchedLabels:
    truths = {key: _majority(said) for key, said in claims.items()}
    items = {key: _majority(said) for key, said in whole.items()}
    of_claims = Counter(item for item, _ in truths)
    units = [
        [value for value in said if value is not None]
        for said in (*claims.values(), *whole.values())
    ]
    return MatchedLabels(
        claims={key: truth for key, truth in truths.items() if truth is not None},
        items={key: truth for key, truth in items.items() if truth is not None},
        annotators=tuple(sorted({label.annotator for label in labels if label.annotator})),
        alpha=krippendorff_alpha(units),
        unsure=sum(truth is None for truth in truths.values())
        + sum(truth is None and not of_claims.get(item) for item, truth in items.items()),
        unknown=unknown,
    )


def _of_item(
    item: DecidedItem, labels: Sequence[Label]
) -> tuple[dict[tuple[str, int], list[bool | None]], list[bool | None], int]:
    """Return what annotators say of an item's claims and of the item, and labels of neither."""
    by_annotator: dict[str, list[Label]] = defaultdict(list)
    for label in labels:
        by_annotator[label.annotator].append(label)
    claims: dict[tuple[str, int], list[bool | None]] = defaultdict(list)
    whole: list[bool | None] = []
    unknown = 0
    for given in by_annotator.values():
        found, other = _of_annotator(item, given)
        for index, said in found.items():
            claims[item.id, index].append(said)
        unknown += other
        about = [label.hallucinated for label in given if label.claim is None and not label.span]
        if about:
            whole.append(about[-1])
        elif item.claims and len(found) == len(item.claims):
            whole.append(None if None in found.values() else any(found.values()))
    return dict(claims), whole, unknown


def _of_annotator(item: DecidedItem, labels: Sequence[Label]) -> tuple[dict[int, bool | None], int]:
    """Return what one annotator says of the claims, and the number of labels of other claims."""
    texts = {claim.index: claim.text for claim in item.claims}
    found: dict[int, bool | None] = {}
    unknown = 0
    for claim in item.claims:
        words = [label.hallucinated for label in labels if _overlap(label.span, claim.span)]
        if words:
            found[claim.index] = True if True in words else (None if None in words else False)
    for label in labels:
        if label.claim is None:
            continue
        if label.claim in texts and _same(label.text, texts[label.claim]):
            found[label.claim] = label.hallucinated
        else:
            unknown += 1
    return found, unknown


def _same(text: str, claim: str) -> bool:
    """Return whether a label's text is that of a claim, as sheets and pages shorten it."""
    begin = text.removeprefix("'")[:_COMPARED]
    return begin == claim.removeprefix("'")[:_COMPARED] or not text


def _overlap(one: tuple[int, int] | None, other: tuple[int, int] | None) -> bool:
    return bool(one and other and one[0] < other[1] and other[0] < one[1])


def _majority(said: Sequence[bool | None]) -> bool | None:
    """Return what most annotators say; None without a majority."""
    wrong, right = said.count(True), said.count(False)
    return None if wrong == right else wrong > right
