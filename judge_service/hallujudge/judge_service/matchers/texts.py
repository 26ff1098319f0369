"""The texts of claims and references that models read."""

from __future__ import annotations

from hallujudge.metrics.framework.claims import ClaimParts, Triplet

__all__ = ["claim_text", "plain", "reference_sentence", "reference_text"]

_DROPPED = str.maketrans("", "", "(),")


def claim_text(claim: ClaimParts) -> str:
    """Return a claim as the released script compares it: its parts, joined by blanks."""
    return plain(" ".join(claim))


def reference_text(reference: Triplet) -> str:
    """Return a reference as the released script compares it.

    The script takes the triplet as written in the file, drops every bracket and comma (inside parts
    too) and appends a full stop: ``(man, riding, horse)`` becomes ``man riding horse.``
    """
    return plain(reference.written.translate(_DROPPED) + ".")


def reference_sentence(reference: Triplet) -> str:
    """Return a reference as a sentence of a small judge's premise; its punctuation is kept."""
    return plain(f"{' '.join(reference)}.")


def plain(text: str) -> str:
    """Return a text with U+FFFD in place of lone surrogates, which tokenizers reject."""
    return text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")
