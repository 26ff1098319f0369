"""Part-of-speech tagging by rules: the readings of a word are weighted by counts and context.

A word outside the closed classes has up to four readings, with WordNet's logarithmic counts as
weights. The context adds to the weights and subtracts from them, and the highest weight wins. The
context is the word before, the word after, and the tags of the clause so far.

The numbers below are set by hand on the development half of the answers that
docs/explanation/rule-extractor-quality.md describes. A weight is 2.5 times the binary logarithm of
a count, so that a change of 10 outweighs a reading that is sixteen times as frequent.
"""

from __future__ import annotations

from .lexicon import Lexicon
from .word_lists import COPULAS, FEELINGS, PLURAL_ONLY, listed
from .words import NEVER, Word

# The line of each word list and number in docs/explanation/rule-extractor-quality.md, "What each
# word list is for", says how many texts have other claims without it.

_LIVING = frozenset("dof")
"""Lexicographer files of nouns that can act, other than persons: tops, animals and groups."""
# A noun follows determiners, possessives and numbers, if not at once.
_DETERMINING = frozenset("DSZJ")
# What begins a noun phrase after a verb, and makes a verb of the word before.
_NOUN_START = frozenset("DSJP")
# Be, have, modal and do, whose verb agrees with what is coordinated with it.
_AUXILIARY = frozenset("BHMO")
_ANNOUNCING = listed(
    "likelihood possibility probability chance fact idea sign indication evidence hint suggestion"
)
"""Nouns before a clause that says what they are: "the likelihood that the street is busy"."""
# After these, a list is one of things: "has forks, knives and cups".
_HOLDING = listed("be have contain include feature show display hold carry sell line fill cover")


class Tagger:
    """Tags the words of a sentence.

    Args:
        lexicon: The lexicon.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self._lexicon = lexicon

    def tag(self, words: list[Word]) -> list[str]:
        """Return one tag for each word."""
        tags: list[str] = []
        has_verb = owed = plural = False
        prev = "."
        last = len(words) - 1
        for i, word in enumerate(words):
            following = words[i + 1] if i < last else _END
            # A word with one reading needs no context.
            tag = word.tag or self._choose(word, prev, following, words, tags, has_verb, plural)
            if word.contextual:
                before = words[i - 1].noun_lemma if i else ""
                tag = _settle(word, prev, following, tag, before)
            tags.append(tag)
            if tag == "N" or tag == "P":
                # The number of the last noun tells whether a verb or another noun follows it.
                plural = word.plural
            if tag in "VBMHO":
                # The first verb of "the man who has a hat sleeps" belongs to the relative clause.
                has_verb = not owed
                owed = owed and tag in "MBHO" and following.form in ("g", "b", "d", "e")
            elif tag == "W" and prev == "N" and not has_verb:
                owed = True
            elif (
                tag in "QW:"
                or (tag == "," and following.tag in ("P", "D", "X", "S"))
                or (tag == "C" and following.tag in ("P", "D", "X"))
            ):
                has_verb = False
            # Adverbs do not part an auxiliary or a noun from its verb: "is slowly riding".
            if (tag != "R" and tag != "F") or prev not in "BHMON":
                prev = tag
        return tags

    def _choose(
        self,
        word: Word,
        prev: str,
        following: Word,
        words: list[Word],
        tags: list[str],
        has_verb: bool,
        plural: bool,
    ) -> str:
        if word.form == "g" and word.verb > NEVER:
            # Participles need the context of a noun and of a verb, each by rules of its own.
            return self._choose_ing(word, prev, following, words, tags)
        if word.form in ("d", "e", "p") and word.verb > NEVER:
            return self._choose_past(word, prev, following, words, tags, has_verb)
        noun, verb, adjective, adverb = word.noun, word.verb, word.adjective, word.adverb
        if prev in _DETERMINING:
            if max(noun, adjective, adverb) <= NEVER and not following.nominal:
                return "N"  # "a selfie"
            # "the ride": a noun, or an adjective if something nominal follows.
            verb -= 40
            adverb -= 30
            if following.nominal and following.tag in ("", "N", "A"):
                adjective += 7
            elif not following.nominal and not _adjectives_go_on(words, len(tags)):
                adjective -= 14
        elif prev == "T":  # "to ride", but also "to town"
            if word.form == "b":
                verb += 16
            noun -= 2
            adverb -= 10
        elif prev == "M" or prev == "O":  # "can ride"
            verb += 25
            adverb += 2
        elif prev == "P":
            # "they ride"; after a verb or a preposition the pronoun is an object: "sees them ride"
            verb += -10 if len(tags) > 1 and tags[-2] in "VGEI" else 14
            noun -= 14
        elif prev == "N":  # "dogs ride"
            verb += self._after_noun(word, following, has_verb, plural)
            adjective -= 5 if plural else 9
            noun -= 8 if plural else 0
        elif prev == "A":  # "a big ride"
            verb -= 25
            adverb -= 12
            noun += 4
        elif prev == "R":  # "quickly rides", "very open"
            verb += 6 if not has_verb else -6
        elif prev == "I":  # "in light"
            verb -= 30
            adverb -= 12
        elif prev == "B":  # "is open", "are rides"
            verb -= 30
            adjective += 9
            if word.plural or following.nominal:
                noun += 3
        elif prev == "C" or prev == ",":
            verb += self._after_and(word, following, tags, words, has_verb)
            if words[len(tags) - 1].lower == "or" and len(tags) > 1 and words[len(tags) - 2].plural:
                verb -= 10
            if len(tags) > 1 and tags[-2] == "A":
                adjective += 12
        elif prev == "W":  # "who rides"
            verb += 12
        elif prev in "VGEH":  # "sees light"
            verb -= 22
        else:
            verb -= 12
            adverb += 2
        # What follows: an object makes a verb of it, a finite verb makes a subject of it.
        if following.tag in _NOUN_START and not word.plural:
            verb += 4
            noun -= 2
        elif following.tag in ("B", "M", "H") or (following.noun < 0 <= following.verb):
            noun += 8
            verb -= 16
        elif following.tag == "N" or (not following.tag and following.noun > following.verb):
            adjective += 5
        if adjective >= noun and adjective >= verb and adjective >= adverb:
            return "A"
        if noun >= verb and noun >= adverb:
            return "N"
        return "V" if verb >= adverb else "R"

    def _after_noun(self, word: Word, following: Word, has_verb: bool, plural: bool) -> int:
        """Return the change of a verb's weight after a noun."""
        if word.verb_lemma in COPULAS and following.adjective > following.noun:
            return 20  # "the girl looks excited"
        if has_verb:
            return -14 if word.form == "s" else -20
        if word.form == "s":
            if word.noun > word.verb + 8 or word.lower in PLURAL_ONLY:
                return -2  # "wine glasses"
            return -2 if plural else 13
        if plural:
            return 13
        return -12 if following.tag in ("B", "M", "H") or following.form == "s" else -9

    def _after_and(
        self, word: Word, following: Word, tags: list[str], words: list[Word], has_verb: bool
    ) -> int:
        """Return the change of a verb's weight after a coordinator: coordinated forms agree."""
        if word.noun > NEVER and _lists_nouns(word, following, words, tags):
            return -30
        # Bounded, so that a list without end is not searched for each of its words.
        for i in range(len(tags) - 1, max(-1, len(tags) - 14), -1):
            if tags[i] == "V" and i and tags[i - 1] == "T" and word.form == "s":
                continue
            if tags[i] == "V" or tags[i] in _AUXILIARY:
                form = "b" if words[i].verb_lemma == words[i].lower else words[i].form
                same = form == word.form or tags[i] in ("M", "O")
                if not same:
                    # Coordinated verbs agree: "sits and reads", "to sit and read".
                    return -14
                if following.tag in _VERB_FOLLOWERS or following.tag == "":
                    return 13
                return 9 if word.form == "s" else -6
            if tags[i] in "QW":
                break
        return 2 if has_verb else -12

    def _choose_ing(
        self, word: Word, prev: str, following: Word, words: list[Word], tags: list[str]
    ) -> str:
        nominal = following.tag in ("", "N") and following.noun > NEVER
        if (
            nominal
            and prev not in "BTN"
            and self._lexicon.is_noun(f"{word.lower}_{following.noun_lemma}")
        ):
            return "A"  # "fishing boats"
        if prev == "B" and word.noun > word.verb + 6:
            return "N"
        if prev == "C" and nominal and len(tags) > 1 and tags[-2] == "A":
            return "A"
        if prev == "B" or prev == "T":
            return "A" if word.adjective >= word.verb and following.tag != "D" else "G"
        if prev in _DETERMINING or prev == "A":
            if nominal and following.noun >= following.verb:
                return "A"
            if prev in "DS" and word.adjective > NEVER and _adjectives_go_on(words, len(tags)):
                return "A"
            return "N" if word.noun > NEVER or prev in "DS" else "G"
        if word.noun > NEVER and self._ends_list(following, prev, words, tags):
            return "N"
        if prev == "I" and nominal and (word.adjective > 5 or following.plural):
            return "A" if word.adjective > NEVER else "G"
        if prev == "N" and word.noun > NEVER and following.tag in (".", ",", "C"):
            # "A man reading." reads, "a street crossing." does not.
            return "G" if self._lives(words[len(tags) - 1].noun_lemma) else "N"
        if prev in ".,C" and word.noun > NEVER and following.tag in ("B", "M", "H"):
            return "N"
        if word.noun >= word.verb + 8:
            return "N"
        if word.adjective >= word.verb + 4 and nominal:
            return "A"
        return "G"

    @staticmethod
    def _ends_list(following: Word, prev: str, words: list[Word], tags: list[str]) -> bool:
        """Return whether an -ing form is a thing: "without frosting", "the attire and setting"."""
        if following.tag not in (".", ",", "C"):
            return False
        if prev == "C":
            return tags[-2:-1] == ["N"] and "G" not in tags
        return prev == "I" and words[len(tags) - 1].lower in ("with", "without")

    def _lives(self, noun: str) -> bool:
        """Return whether a noun can act, so that an -ing form after it is its action."""
        return self._lexicon.reading(noun).file in _LIVING or self._lexicon.is_person(noun)

    def _choose_past(
        self,
        word: Word,
        prev: str,
        following: Word,
        words: list[Word],
        tags: list[str],
        has_verb: bool,
    ) -> str:
        if word.form == "p":  # "ate", which is not a participle
            return "V" if word.noun < word.verb + 8 or prev not in _DETERMINING else "N"
        if prev in "BH":
            # "is tired" is a state, "is tired by" and "has tired" are not.
            mood = word.lower in FEELINGS or word.adjective > word.verb
            stative = prev == "B" and mood and following.lower != "by"
            return "A" if stative else "E"
        if prev in _DETERMINING or prev == "A":
            if prev == "J" or (word.noun > word.verb + 4 and following.noun <= word.noun - 8):
                return "N" if word.noun > NEVER else "E"
            return "A"
        if word.form == "e":
            return "E"
        if prev == "I" and following.nominal:
            return "A"
        if word.adjective > word.verb + 6 and prev != "P":
            return "A"
        if word.noun > word.verb + 6 and prev not in "PN":
            return "N"
        if prev == "P":  # "it opened"
            return "V"
        if prev == "C" and tags[-2:-1] == ["N"] and following.nominal and not has_verb:
            return "A"
        if prev == "," and following.tag in (",", "C") and not has_verb:
            return "E"  # "glasses, polished and clean, stand"
        if prev in "VG" and following.nominal and following.tag in ("", "N"):
            return "A"
        if prev in ".," and following.nominal and following.tag in ("", "N") and len(tags) < 2:
            return "A"
        if has_verb and prev not in "CRW":  # "sits on a bench made of wood"
            return "E"
        if prev == "N" and _present(words, tags):
            return "E"
        if prev == "C" or prev == "R":
            return _like_the_last(tags)
        if following.lower in ("by", "with") or _finite_ahead(words, len(tags)):
            return "E"
        return "V"


_END = Word(".", ".")
_VERB_FOLLOWERS = frozenset("DSIPTRJG")


def _settle(word: Word, prev: str, following: Word, tag: str, before: str) -> str:
    """Return the tag of a closed-class word with several readings, by its neighbours."""
    lower = word.lower
    if lower == "as":
        # "Dressed as a pirate" is a preposition, "as he walks" a conjunction.
        return "I" if prev in "VGE" and following.lower in ("a", "an") else tag
    if lower == "'s":
        # "He's" is "he is"; after a noun, only a possessive is expected.
        return "B" if prev in "PXW" else "Z"
    if lower == "likely" or lower == "unlikely":
        # Before "to" and at the end it is an adjective: "is likely to", "is likely."
        return "A" if following.tag in ("T", ".", ",", "C") else "R"
    if lower.endswith(("self", "selves")):
        return "R" if prev == "N" else tag
    if lower == "home":
        return "R" if prev in "NVGP" and not following.nominal else tag
    if lower == "first":
        return "A" if prev in "DS" else "R"
    if lower == "no":
        # "No, the man": an answer, and no determiner.
        return "K" if prev == "." and following.lower == "," else "D"
    if lower == "can":
        # "A can", "a red can": the thing.
        return "N" if prev in ("D", "A", "J") or following.lower == "of" else tag
    if lower == "there":
        near = following.tag in ("B", "M") or following.lower in ("seem", "seems", "appear")
        return "X" if near or following.lower in ("appears", "exist", "exists", "'s") else "R"
    if lower == "that":
        if prev == "N":
            # "The fact that he" explains; "the dog that runs" describes.
            return "Q" if before in _ANNOUNCING and following.tag in _NOUN_START else "W"
        return "Q" if following.tag in ("D", "P", "S", "X") or prev in "VG" else "D"
    if lower == "her":
        # "Her dog" owns, "sees her" names.
        return "S" if following.nominal and following.tag != "P" else "P"
    if lower == "both" and prev == "P":
        return "R"
    if lower in ("those", "all", "both", "some", "each") and following.form == "g":
        return "P"
    if lower in ("this", "these", "those", "some", "all", "both", "each", "many", "several"):
        nominal = following.nominal or following.tag in ("D", "S", "J", "R", "?")
        return "D" if nominal and following.lower != "of" else "P"
    if lower == "neither" and (following.tag == "I" or prev in "NP") and following.lower != "of":
        # "Is neither on the sofa nor", "the man neither runs nor": no noun follows.
        return "F"
    if lower in ("another", "most", "either", "few", "any", "neither", "much"):
        return "D" if following.nominal or following.tag in ("D", "J", "R") else "P"
    if lower == "so" and following.tag not in ("P", "D", "S", "X"):
        return "R"
    if lower == "like" and prev in ("P", "T", "M"):
        # "They like" is a verb, "looks like" is not.
        return "V"
    if lower == "one" and following.form == "s" and following.verb > following.noun:
        return "P"
    if lower == "one" and (following.tag in ("I", "B", "W", "M", ",", ".") or prev in "AD"):
        return "J" if following.nominal else "P"
    return tag


def _present(words: list[Word], tags: list[str]) -> bool:
    """Return whether the sentence is in the present, so that a past form is a participle."""
    return any(
        (tag == "V" and word.form == "s") or word.lower in ("is", "are")
        for word, tag in zip(words, tags, strict=False)
    )


def _adjectives_go_on(words: list[Word], i: int) -> bool:
    """Return whether a coordinator and an adjective follow word i: "a rough or uneven path"."""
    if i + 2 >= len(words) or words[i + 1].tag not in ("C", ","):
        return False
    after = words[i + 2]
    return after.adjective > NEVER and after.adjective >= after.noun


def _lists_nouns(word: Word, following: Word, words: list[Word], tags: list[str]) -> bool:
    """Return whether a word goes on a list of nouns: "forks, knives, and cups".

    The word before the comma is a noun, and the word itself ends the list or another comma
    follows. After a noun with a determiner the clause's verb or the word's weights must allow a
    list: in "opens the box, smiles, and leaves" the words after the comma are verbs.
    """
    i = len(tags) - 1
    while i >= 0 and tags[i] in ",C":
        i -= 1
    if i < 0 or tags[i] != "N" or following.tag not in (",", ".", "C", "I"):
        return False
    bare = i > 0 and words[i].plural and tags[i - 1] in "VGEHBIX,CA"
    if following.tag == "I":
        return bare and i > 1 and tags[i - 1] in ",C" and tags[i - 2] == "N"
    return bare or word.noun >= word.verb or _holds_things(words, tags)


def _holds_things(words: list[Word], tags: list[str]) -> bool:
    """Return whether the last verb says what something has, so that a list of things follows."""
    for i in range(len(tags) - 1, -1, -1):
        if tags[i] in "VGEBH":
            return words[i].verb_lemma in _HOLDING
    return False


def _like_the_last(tags: list[str]) -> str:
    """Return the tag of a past form after "and", which agrees with the verb before."""
    for tag in reversed(tags):
        if tag in "VE":
            return tag
        if tag in "BH":
            return "E"
        if tag == "G":
            return "E"
    return "V"


def _finite_ahead(words: list[Word], i: int) -> bool:
    """Return whether a finite verb follows in the clause, which makes word i a participle."""
    for word in words[i + 1 : i + 9]:
        tag = word.tag
        if tag in ("B", "M", "O"):
            return True
        if tag in (",", "Q", "W", "C", ".", ":"):
            return False
        if not tag and word.form == "s" and word.verb > word.noun + 6:
            return True
    return False
