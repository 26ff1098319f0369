"""Grouping of tagged words into chunks: noun phrases, verb groups, prepositions and links."""

from __future__ import annotations

from .lexicon import Lexicon, Morphology
from .modality import mark_denied, mark_tentative
from .phrases import Chunk, NounPhrase, VerbGroup, joined, main_verb, verb_goes_on, without_seeming
from .word_lists import (
    ALWAYS_ADVERB_PARTICLES,
    MEASURE_NOUNS,
    PARTICLES,
    SPLIT_ON,
    TANGIBLE_EXTRA,
    listed,
)
from .words import Token, Word

# The line of each word list and number in docs/explanation/rule-extractor-quality.md, "What each
# word list is for", says how many texts have other claims without it.

# Adjectives that sort or count and do not describe the thing itself.
_EMPTY_ADJECTIVES = listed(
    "other same own different certain main possible visible present various several many few more "
    "most such last next first second third previous following entire whole overall general "
    "particular specific similar additional single individual actual potential likely typical "
    "respective further final initial only very numerous multiple"
)


class Chunker:
    """Groups the tokens of a sentence.

    Args:
        lexicon: The lexicon, which has compounds and phrasal verbs.
        morphology: The lemmatiser, which has the tangible nouns.
    """

    def __init__(self, lexicon: Lexicon, morphology: Morphology) -> None:
        self._lexicon = lexicon
        self._morphology = morphology

    def chunk(self, tokens: list[Token], words: list[Word], tags: list[str]) -> list[Chunk]:
        """Return the chunks of a sentence, without adverbs and interjections."""
        chunks: list[Chunk] = []
        i, count = 0, len(tags)
        while i < count:
            tag = tags[i]
            chunk: Chunk | None = None
            if tag in "DSJNPA":
                chunk = self._noun_phrase(tokens, words, tags, i, chunks)
            # "Not" begins a verb group only where a verb follows it: "not wearing".
            elif (
                tag in "VBHMOGE"
                or tag == "T"
                or (tag == "F" and (verb_goes_on(tags, i + 1) or tags[i + 1 : i + 2] == ["T"]))
            ):
                chunk = self._verb_group(tokens, words, tags, i)
            if chunk is not None:
                # A chunk takes its words at once, so that none of them begins another.
                i = chunk.last
                if not (chunk.kind == "A" and _resultative(chunk, chunks)):
                    chunks.append(chunk)
                continue
            if tag in "IT":
                # "The person is inside" has a place, and no noun for the preposition.
                if tag == "I" and self._stands_alone(words, tags, i, chunks):
                    chunks.append(_plain("A", tokens, i))
                elif not self._late_particle(tokens, words, tags, i, chunks):
                    chunks.append(_plain("I", tokens, i))
            elif tag in "CWQX,.:":
                chunks.append(_plain(tag, tokens, i))
            elif tag == "R":
                self._adverb(tokens, words, tags, i, chunks)
            elif tag == "F" and chunks and isinstance(chunks[-1], VerbGroup):
                chunks[-1].negated = True
            i += 1
        # By the tags, which chunks that are joined below no longer match.
        mark_denied(chunks, words, tags)
        chunks = joined(_without_label(chunks))
        # Before verbs are left out: "what appears to be a dog" hedges the dog.
        mark_tentative(chunks, words)
        return without_seeming(chunks, words)

    def _adverb(
        self, tokens: list[Token], words: list[Word], tags: list[str], i: int, chunks: list[Chunk]
    ) -> None:
        """Process an adverb that belongs to a verb or places the subject."""
        if words[i].lower in PARTICLES:
            self._late_particle(tokens, words, tags, i, chunks)
        elif words[i].lower in _PLACES and _after_be(chunks):
            chunks.append(_plain("A", tokens, i))

    @staticmethod
    def _stands_alone(words: list[Word], tags: list[str], i: int, chunks: list[Chunk]) -> bool:
        """Return whether a preposition has no noun after it: "the person is inside"."""
        ends = i + 1 == len(tags) or tags[i + 1] in ".,CQ:"
        return ends and words[i].lower in _PLACES and _after_be(chunks)

    # Noun phrases.

    def _noun_phrase(
        self, tokens: list[Token], words: list[Word], tags: list[str], i: int, chunks: list[Chunk]
    ) -> Chunk | None:
        if tags[i] == "P":
            return self._pronoun(tokens, words, i)
        end, head = _noun_phrase_end(tags, i)
        if head < 0:
            if tags[i] == "A":
                return _plain("A", tokens, i)
            last = chunks[-1] if chunks else None
            if tags[end - 1] == "A" and isinstance(last, VerbGroup) and last.lemma == "be":
                return _plain("A", tokens, end - 1)  # "is the shortest"
            return self._bare(tokens, words, i, end)
        return self._owned(tokens, words, tags, self._build(tokens, words, tags, i, head), head)

    def _owned(
        self, tokens: list[Token], words: list[Word], tags: list[str], owner: NounPhrase, head: int
    ) -> Chunk:
        """Return what a phrase owns by the possessive ending after it, or else the phrase."""
        if tags[head + 1 : head + 2] != ["Z"]:
            return owner
        i = head + 2
        head = _noun_phrase_end(tags, i)[1]
        if head < 0:
            # "The man's" without a noun, such as "is the man's", names the owner.
            owner.last = i
            return owner
        phrase = self._build(tokens, words, tags, i, head)
        phrase.possessor = owner
        phrase.first, phrase.start = owner.first, owner.start
        # "The man's dog's leash" has two owners.
        return self._owned(tokens, words, tags, phrase, head)

    def _pronoun(self, tokens: list[Token], words: list[Word], i: int) -> NounPhrase:
        token = tokens[i]
        phrase = NounPhrase(words[i].lower, i, i + 1, token.start, token.end)
        phrase.pronoun = True
        phrase.plural = words[i].plural
        # Words such as "nobody" and "none" deny the whole clause.
        phrase.negated = words[i].lower in (*("none", "nobody", "nothing", "no one", "neither"),)
        return phrase

    @staticmethod
    def _bare(tokens: list[Token], words: list[Word], i: int, end: int) -> NounPhrase:
        """Return the phrase of a determiner or number without a noun: "both", "two of them"."""
        last = max(end, i + 1)
        token = tokens[last - 1]
        phrase = NounPhrase(words[last - 1].lower, i, last, tokens[i].start, token.end)
        phrase.pronoun = True
        phrase.plural = words[i].lower != "one"
        return phrase

    def _build(
        self, tokens: list[Token], words: list[Word], tags: list[str], first: int, head: int
    ) -> NounPhrase:
        start, end = tokens[first].start, tokens[head].end
        phrase = NounPhrase("", first, head + 1, start, end)
        phrase.lemma = words[head].noun_lemma
        phrase.plural = words[head].plural
        phrase.tangible = self._morphology.tangible(phrase.lemma)
        if first == head and words[head].verb > words[head].noun + 5:
            phrase.tangible = False  # a bare noun that is mostly a verb is often one here too
        phrase.measured = phrase.lemma in MEASURE_NOUNS
        named = head
        for k in range(head - 1, first - 1, -1):
            tag, lower = tags[k], words[k].lower
            if tag == "N":
                # At most three nouns are a name: "tennis ball machine".
                if named == k + 1 and head - k <= 2:
                    named = k
                    if k == head - 1:
                        phrase.modifier = lower
            elif tag in "AEG":
                named = self._modify(phrase, tokens[k], lower, k, named, head)
            elif tag in "DS":
                phrase.determiner = lower
            # "Neither cup", "no cup" and "zero cups" deny the cup.
            phrase.negated = phrase.negated or lower in ("no", "neither", "zero")
        if phrase.modifier:
            self._as_compound(phrase)
        phrase.name_start = tokens[named].start
        phrase.text = " ".join([_cased(tokens[k], words[k], k) for k in range(named, head + 1)])
        return phrase

    def _as_compound(self, phrase: NounPhrase) -> None:
        """Set whether a compound of the lexicon is tangible: a cutting board, not a bus route."""
        reading = self._lexicon.reading(f"{phrase.modifier}_{phrase.lemma}")
        if reading.noun >= 0:
            phrase.tangible = reading.tangible >= 3 or phrase.lemma in TANGIBLE_EXTRA
            # A television set measures nothing, although "set" can.
            phrase.measured = False

    def _modify(
        self, phrase: NounPhrase, token: Token, lower: str, k: int, named: int, head: int
    ) -> int:
        """Add an adjective to the name or the attributes; return the new start of the name."""
        reading = self._lexicon.reading(lower)
        person = reading.visible and self._lexicon.reading(phrase.lemma).person
        sided = lower in _SIDED
        if (
            k == head - 1
            # "Old man" is in WordNet as a phrase, and still says that the man is old.
            and not person
            and not sided
            and self._lexicon.is_noun(f"{lower}_{phrase.lemma}")
        ):
            phrase.modifier = lower
            return k
        if lower in _EMPTY_ADJECTIVES:
            return named
        # A "skiing jacket" does not ski.
        activity = lower.endswith("ing") and self._lexicon.is_noun(lower)
        seen = (reading.visible or reading.adjective < 0 or lower.endswith("ed")) and not activity
        # "Metallic" and its like sort a thing rather than describe it.
        if seen and not lower.endswith(("ic", "ical")):
            phrase.attributes.insert(0, (token.text.lower(), token.start, token.end))
            return named
        if named == k + 1:
            if k == head - 1 and lower.endswith(("ic", "ical", "oid")):
                phrase.modifier = lower
            return k
        return named

    # Verb groups.

    def _verb_group(
        self, tokens: list[Token], words: list[Word], tags: list[str], i: int
    ) -> VerbGroup | None:
        main, negated, passive, infinitive = main_verb(tags, i)
        if main < 0:
            return None
        word, tag = words[main], tags[main]
        group = VerbGroup(word.lower, i, main + 1, tokens[i].start, tokens[main].end)
        group.verb_start = tokens[main].start
        group.lemma = word.verb_lemma
        group.negated = negated
        group.passive = passive
        # Only these forms tell: "walked" and "walk" agree with both numbers.
        group.singular = words[i].form == "s" or words[i].lower in ("is", "was", "has", "does")
        if infinitive:
            group.form = "infinitive"
        elif main == i and tag == "G":
            group.form = "ing"
        # "Being held" is a participle's passive; "is held" is finite.
        elif tag == "E" and (set(tags[i:main]) <= {"F", "R"} or words[i].lower == "being"):
            group.form = "participle"
            group.passive = True
        # A modal without its verb says nothing: "as fast as it can".
        if tags[main] in "MO" and group.lemma != "do":
            return None
        if tag in "VGE":
            self._early_particle(group, tokens, words, tags, main + 1)
        return group

    def _early_particle(
        self, group: VerbGroup, tokens: list[Token], words: list[Word], tags: list[str], i: int
    ) -> None:
        """Add a particle directly after the verb, or the noun of "take place"."""
        # WordNet has "take place" as one verb; without its noun, the verb would have an object.
        if group.lemma == "take" and [word.lower for word in words[i : i + 1]] == ["place"]:
            _take_particle(group, tokens[i], "place", i + 1)
            return
        if i >= len(tags) or words[i].lower not in PARTICLES or tags[i] not in "IR":
            return
        lower = words[i].lower
        starts = i + 1 < len(tags) and (tags[i + 1] in "DSJNPG" or words[i + 1].nominal)
        # "Walks past purchased cars": the participle begins the object of a preposition.
        if tags[i] == "I" and i + 1 < len(tags) and tags[i + 1] == "A" and not starts:
            return
        if self._is_particle(group.lemma, lower, starts):
            _take_particle(group, tokens[i], lower, i + 1)

    def _is_particle(self, lemma: str, lower: str, before_noun: bool) -> bool:
        known = self._lexicon.is_verb(f"{lemma}_{lower}")
        # These are never prepositions, whatever follows.
        if lower in ALWAYS_ADVERB_PARTICLES:
            return True
        if not before_noun:
            # Without a noun after them, these are not prepositions.
            return known or lower in ("up", "down", "out", "off", "over", "around", "upright")
        if lower in ("on", "off"):
            # "Jumps off the wall" has a place; "takes off the hat" has an object.
            return known and (lemma in SPLIT_ON or (lower == "off" and lemma not in _MOVES))
        # "Walks in the park": before a noun these are prepositions, whatever verbs WordNet has.
        if lower in ("in", "by", "through", "past", "about", "across", "along", "around"):
            return False
        if lower in ("down", "over") and lemma in _MOVES:
            return False
        return known

    def _late_particle(
        self, tokens: list[Token], words: list[Word], tags: list[str], i: int, chunks: list[Chunk]
    ) -> bool:
        """Add a particle after the object to its verb: "puts the helmet on"."""
        lower = words[i].lower
        if lower not in PARTICLES or not chunks:
            return False
        following = tags[i + 1] if i + 1 < len(tags) else "."
        # A noun follows: the word is its preposition.
        if tags[i] == "I" and (following in "DSJNPAG" or following == "W"):
            return False
        last = chunks[-1]
        # The particle may stand after the object: "puts the helmet on".
        verb = chunks[-2] if isinstance(last, NounPhrase) and len(chunks) > 1 else last
        if not isinstance(verb, VerbGroup) or verb.particle or verb.lemma == "be":
            return False
        known = self._lexicon.is_verb(f"{verb.lemma}_{lower}")
        # "Forward" and "backward" say where; "back" and "away" change the verb: "gives it away".
        if known or (lower in ALWAYS_ADVERB_PARTICLES and "ward" not in lower):
            _take_particle(verb, tokens[i], lower, verb.last)
            return True
        return False


_SIDED = listed("left right upper lower long short small big little great")
"""Adjectives that are attributes even in compounds of WordNet, such as "right hand"."""
_PLACES = listed(
    "outdoors indoors nearby alone upright upstairs downstairs inside outside together overhead "
    "apart upside down underwater aloft off on open ajar"
)
_MOVES = listed(
    "walk run drive ride roll slide fly jump climb fall move go come leap crawl march sail ski "
    "skate travel flow hang bend lean look hover sit stand lie hop swim step race skateboard "
    "gallop stumble trip slip stretch tumble glide cycle"
)


_OPENED = listed("open shut closed")
_OPENING = listed(
    "pull push slide swing tear cut crack pry force break kick throw flip smash slam yank"
)


def _resultative(chunk: Chunk, chunks: list[Chunk]) -> bool:
    """Add "open" in "pulls it open" to the verb; return whether it did."""
    if chunk.text not in _OPENED or not chunks:
        return False
    verb = chunks[-2] if isinstance(chunks[-1], NounPhrase) and len(chunks) > 1 else chunks[-1]
    if not isinstance(verb, VerbGroup) or verb.particle or verb.lemma not in _OPENING:
        return False
    verb.particle, verb.particle_span = chunk.text, (chunk.start, chunk.end)
    return True


def _after_be(chunks: list[Chunk]) -> bool:
    last = chunks[-1] if chunks else None
    return isinstance(last, VerbGroup) and last.lemma in ("be", "stand", "remain", "stay")


def _take_particle(group: VerbGroup, token: Token, lower: str, last: int) -> None:
    group.particle = lower
    group.particle_span = (token.start, token.end)
    group.last = last
    group.end = max(group.end, token.end)


def _plain(kind: str, tokens: list[Token], i: int) -> Chunk:
    token = tokens[i]
    return Chunk(token.text.lower(), i, i + 1, token.start, token.end, kind)


def _cased(token: Token, word: Word, position: int) -> str:
    """Return the word as written, except for a sentence's capital letter on a known word."""
    return token.text.lower() if position == 0 and word.known else token.text


def _noun_phrase_end(tags: list[str], i: int) -> tuple[int, int]:
    """Return the end of the phrase that starts at i, and its head (-1: none)."""
    head, k, count = -1, i, len(tags)
    while k < count:
        tag = tags[k]
        if tag == "N":
            head = k
            k += 1
        elif head >= 0:
            # Only a number may follow the head: "Platform 9".
            break
        elif (
            tag in "DSJA"
            # "a broken chair", "two very old men", "light, casual clothing"
            or (tag in "EG" and k + 1 < count and tags[k + 1] in "NA" and k > i)
            or (tag == "R" and k + 1 < count and tags[k + 1] in "AJ" and k + 2 < count)
            or (tag in ",C" and k > i and tags[k - 1] == "A" and _adjective_goes_on(tags, k + 1))
        ):
            k += 1
        else:
            break
    return k, head


def _adjective_goes_on(tags: list[str], k: int) -> bool:
    """Return whether adjectives and then a noun follow: "light, casual clothing"."""
    start = k
    while k < len(tags) and (tags[k] in "AR" or (tags[k] in ",C" and tags[k - 1] == "A")):
        k += 1
    return k > start and tags[k - 1] == "A" and tags[k : k + 1] == ["N"]


def _without_label(chunks: list[Chunk]) -> list[Chunk]:
    """Return the chunks after a label: "Foreground: a red bus"."""
    # A label is a title, and claims nothing.
    labelled = len(chunks) > 2 and chunks[0].kind == "N" and chunks[1].text == ":"
    return chunks[2:] if labelled else chunks
