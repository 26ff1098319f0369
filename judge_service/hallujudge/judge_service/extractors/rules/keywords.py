"""Rules that extract keywords from chunks: objects in the singular, behaviours in root form."""

from __future__ import annotations

from ..values import Keyword
from .lexicon import Lexicon
from .measures import without_measures
from .phrases import Chunk, NounPhrase, VerbGroup
from .words import EVENTIVE_KEEP, LIGHT_VERBS, MEDIUM_NOUNS, PRESENTING_VERBS, STATE_VERBS, listed

__all__ = ["KeywordRules"]

_VIEWERS = listed("we you i one they viewer observer")


class KeywordRules:
    """Collects the objects and behaviours of a text, sentence by sentence.

    Args:
        lexicon: The lexicon, which has the nouns that are also verbs.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self.objects: dict[str, Keyword] = {}
        self.behaviors: dict[str, Keyword] = {}
        self._lexicon = lexicon

    def sentence(self, chunks: list[Chunk]) -> None:
        """Process one sentence."""
        swallowed: set[int] = set()
        subject: NounPhrase | None = None
        existential = False
        chunks = without_measures(chunks)
        for i, chunk in enumerate(chunks):
            if chunk.kind == "X":
                existential = True
            elif isinstance(chunk, NounPhrase):
                if id(chunk) not in swallowed:
                    self._object(chunk)
                if not (i and chunks[i - 1].kind == "I"):
                    subject = chunk
            elif isinstance(chunk, VerbGroup):
                following = _carrier(chunks, i + 1)
                if existential and chunk.lemma == "be":
                    existential = False
                    continue
                if self._behavior(chunk, subject, following) and following is not None:
                    swallowed.add(id(following))

    def _object(self, phrase: NounPhrase) -> None:
        if phrase.possessor is not None:
            self._object(phrase.possessor)
        if phrase.pronoun or not phrase.tangible or phrase.lemma in MEDIUM_NOUNS:
            return
        text = f"{phrase.modifier} {phrase.lemma}" if phrase.modifier else phrase.lemma
        if text not in self.objects:
            self.objects[text] = Keyword(text=text, start=phrase.name_start, end=phrase.end)

    def _behavior(
        self, verb: VerbGroup, subject: NounPhrase | None, following: Chunk | None
    ) -> bool:
        """Add a behaviour; return whether it includes the noun after a light verb."""
        lemma, light = verb.lemma, False
        if verb.lemma in LIGHT_VERBS and isinstance(following, NounPhrase):
            carried = self._carried(verb.lemma, following)
            if carried:
                lemma, light = carried, True
        if not light and (lemma in STATE_VERBS or self._presents(verb, subject)):
            return False
        text = f"{lemma} {verb.particle}" if verb.particle and not light else lemma
        end = following.end if light and following is not None else verb.end
        if text not in self.behaviors:
            self.behaviors[text] = Keyword(text=text, start=verb.verb_start, end=end)
        return light

    def _carried(self, lemma: str, noun: NounPhrase) -> str:
        """Return the behaviour of a light verb and its noun ("take a walk"); empty if none."""
        if noun.pronoun or noun.modifier:
            return ""
        if self._lexicon.is_verb(f"{lemma}_{noun.lemma}"):
            return f"{lemma} {noun.lemma}"
        if noun.lemma in ("picture", "photo", "photograph", "selfie"):
            return f"{lemma} {noun.lemma}"
        reading = self._lexicon.reading(noun.lemma)
        if noun.lemma in EVENTIVE_KEEP or (noun.tangible and reading.file != "e"):
            return ""
        if reading.verb >= 0:
            return noun.lemma
        return f"{lemma} {noun.lemma}" if reading.file == "e" and lemma != "make" else ""

    @staticmethod
    def _presents(verb: VerbGroup, subject: NounPhrase | None) -> bool:
        if verb.lemma not in PRESENTING_VERBS:
            return False
        if verb.passive and verb.form == "finite":
            return verb.lemma in ("see", "show", "depict", "capture", "display", "feature")
        if subject is None:
            return False
        return subject.lemma in MEDIUM_NOUNS or subject.text in _VIEWERS


def _carrier(chunks: list[Chunk], i: int) -> Chunk | None:
    """Return the chunk after a verb, skipping an indirect object: "gives her a hug"."""
    if i >= len(chunks):
        return None
    chunk = chunks[i]
    if isinstance(chunk, NounPhrase) and chunk.pronoun and i + 1 < len(chunks):
        following = chunks[i + 1]
        return following if isinstance(following, NounPhrase) else chunk
    return chunk
