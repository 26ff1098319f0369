"""Places in a text of the words that a language model extracted from it."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from hallujudge.metrics.framework.claims import Triplet

from .rules.analysis import shared_analyser
from .rules.morph import Morphology
from .rules.tokens import sentences
from .values import ExtractedTriplet, Keyword, Span

__all__ = ["Places", "root_form"]

NOWHERE = Span(0, 0)
"""The place of words that are not in the text."""

_MOST_STARTS = 100
"""The maximum number of places tried for a keyword, which limits the cost of repeated words."""

_GAP = 4
"""How many tokens after a verb are searched for its particle: "picks the red ball up"."""


class _Inflected(NamedTuple):
    """A token and its possible base forms."""

    forms: frozenset[str]
    """The token, its singular and its base form as a verb, in lower case."""
    span: Span
    """The place of the token."""


def root_form(verb: str) -> str:
    """Return the base form of a verb: ``ride`` for ``riding``.

    A word that can be a base form is returned unchanged, such as ``saw`` and ``found``.
    """
    lexicon = shared_analyser().lexicon
    lemma, weight, form = Morphology(lexicon).verb(verb)
    return verb if form == "b" or weight < 0 or lexicon.is_verb(verb) else lemma


@dataclass(frozen=True)
class Places:
    """Finds words in a text, ignoring case and white space."""

    text: str
    """The text."""

    def of(self, words: str, after: int = 0) -> Span:
        """Return the first place of words as written, from ``after`` on; ``(0, 0)`` if absent."""
        pattern = r"\s+".join(map(re.escape, words.split()))
        bounded = rf"(?<!\w){pattern}(?!\w)"
        match = re.compile(bounded, re.IGNORECASE).search(self.text, after) if pattern else None
        return Span(*match.span()) if match else NOWHERE

    def extracted(self, claim: Triplet) -> ExtractedTriplet:
        """Return a claim with its places; the object is preferably found after the subject."""
        first = self.of(claim.subject)
        second = self.of(claim.object, first.end)
        second = second if second.end else self.of(claim.object)
        known = [span for span in (first, second) if span.end]
        return ExtractedTriplet(
            subject=claim.subject,
            relation=claim.relation,
            object=claim.object,
            start=min((span.start for span in known), default=0),
            end=max((span.end for span in known), default=0),
            subject_span=first,
            object_span=second,
            negated=bool(re.search(r"\b(not|no|never|n't)\b", claim.relation, re.IGNORECASE)),
        )

    def object(self, word: str) -> Keyword:
        """Return an object with its place, in the singular or plural."""
        return self._keyword(word, gap=1)

    def behavior(self, word: str) -> Keyword:
        """Return a behaviour with its place, in any form; words may precede its particle."""
        return self._keyword(word, gap=_GAP)

    def _keyword(self, word: str, gap: int) -> Keyword:
        span = self.of(word)
        if not span.end:
            span = self._inflected(word.split(), gap)
        return Keyword(text=word, start=span.start, end=span.end)

    def _inflected(self, words: list[str], gap: int) -> Span:
        """Return the first place of forms of the words, at most ``gap`` tokens apart."""
        for start in self._starts.get(words[0], ())[:_MOST_STARTS]:
            end = self._followed(words, start, gap)
            if end >= 0:
                return Span(self._tokens[start].span.start, self._tokens[end].span.end)
        return NOWHERE

    def _followed(self, words: list[str], start: int, gap: int) -> int:
        """Return the token of the last word if all words follow the first; -1 if they do not."""
        at = start
        for word in words[1:]:
            near = range(at + 1, min(at + 1 + gap, len(self._tokens)))
            at = next((i for i in near if word in self._tokens[i].forms), -1)
            if at < 0:
                return -1
        return at

    @cached_property
    def _starts(self) -> dict[str, list[int]]:
        starts: dict[str, list[int]] = {}
        for index, token in enumerate(self._tokens):
            for form in token.forms:
                starts.setdefault(form, []).append(index)
        return starts

    @cached_property
    def _tokens(self) -> list[_Inflected]:
        morph = Morphology(shared_analyser().lexicon)
        tokens = (token for sentence in sentences(self.text) for token in sentence)
        return [
            _Inflected(
                frozenset((low, morph.noun(low)[0], morph.verb(low)[0])),
                Span(token.start, token.end),
            )
            for token in tokens
            for low in (token.text.lower(),)
        ]
