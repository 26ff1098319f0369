"""What a judge is shown for each claim: frames of its moment, and crops of what it names."""

from __future__ import annotations

from hallujudge.metrics.framework.claims import ClaimParts
from hallujudge.metrics.framework.pictures import Picture
from hallujudge.metrics.seen_claims.items import MOMENT, SeenClaimsItem
from hallujudge.metrics.seen_claims.moments import moment_of

from ..extractors.rules.rule_extractors import lemma_key
from .extraction import ExtractedClaims

# Servers take few pictures in a call; the largest objects are the likeliest to be meant.
_MOST_CROPS = 4


def claimed_moment(
    item: SeenClaimsItem, claim: ClaimParts, span: tuple[int, int] | None
) -> str | None:
    """Return the moment that a claim's text names, empty without any; None of a picture.

    Args:
        item: The response.
        claim: The claim, whose own words are read where it has no place in the response.
        span: Its place in the response.
    """
    if item.seconds is None:
        return None
    if span is None or item.response is None:
        found = moment_of(" ".join(claim), None, item.seconds)
    else:
        found = moment_of(item.response, span, item.seconds)
    return found.label if found else ""


def shown_for_claims(
    item: SeenClaimsItem, claims: ExtractedClaims
) -> tuple[tuple[Picture, ...], ...]:
    """Return what is shown for each claim; nothing if all are shown the same."""
    if not item.looks:
        return ()
    placed = [(claim, span) for claim, span, _ in claims.placed()]
    return tuple(_shown(item, claim, span) for claim, span in placed)


def _shown(
    item: SeenClaimsItem, claim: ClaimParts, span: tuple[int, int] | None
) -> tuple[Picture, ...]:
    moment = claimed_moment(item, claim, span)
    whole, crops = item.pictures, list[Picture]()
    for look in item.looks:
        if look.kind == MOMENT and look.of == moment:
            whole = look.pictures
        elif look.kind != MOMENT and _names(claim, look.of):
            crops += look.pictures
    crops.sort(key=lambda picture: -picture.width * picture.height)
    return (*whole, *crops[:_MOST_CROPS])


def _names(claim: ClaimParts, name: str) -> bool:
    """Return whether a claim has the words of a name beside each other, in any of their forms."""
    wanted = _words(name)
    return any(
        said[at : at + len(wanted)] == wanted
        for said in map(_words, claim)
        for at in range(len(said) - len(wanted) + 1)
    )


def _words(text: str) -> tuple[str, ...]:
    found = lemma_key(text)
    return (found,) if isinstance(found, str) else found
