"""The texts that models see of claims and references."""

from __future__ import annotations

from hallujudge.metrics.framework.triplets import ClaimParts, Triplet

__all__ = ["claim_text", "plain", "reference_sentence", "reference_text"]

_DROPPED = str.maketrans("", "", "(),")


def claim_text(claim: ClaimParts) -> str:
    """The claim as the released script compares it: its parts with spaces, without a full stop."""
    return plain(" ".join(claim))


def reference_text(reference: Triplet) -> str:
    """The reference as the released script compares it.

    It takes the triplet as its file writes it, drops every bracket and comma, those inside parts as
    well, and adds a full stop: ``(man, riding, horse)`` becomes ``man riding horse.``
    """
    return plain(reference.written.translate(_DROPPED) + ".")


def reference_sentence(reference: Triplet) -> str:
    """The reference as a sentence of an entailment premise, with its own punctuation."""
    return plain(f"{' '.join(reference)}.")


def plain(text: str) -> str:
    """The text without lone surrogates, which tokenizers can't read; each becomes U+FFFD."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
