"""Noun phrases and verb groups: the parts of a sentence that the rules process."""

from __future__ import annotations

from typing import NamedTuple

from msgspec import Struct

from hallujudge.metrics.framework.claims import Modality

from .word_lists import MEDIUM_NOUNS, PRESENTING_VERBS, RAISING, listed
from .words import Word

# The line of each word list and number in docs/explanation/rule-extractor-quality.md, "What each
# word list is for", says how many texts have other claims without it.


# Known by identity: two phrases with the same words are two things.
class Chunk(Struct, eq=False):
    """A part of a sentence."""

    text: str
    first: int
    """The first token."""
    last: int
    """One past the last token."""
    start: int
    """The first character."""
    end: int
    """One past the last character."""
    kind: str
    """N (noun phrase), V (verb group), I (preposition), A (predicate adjective), X (existential
    "there"), or the tag of a linking word (C , W Q . :)."""
    negated: bool = False
    modality: Modality = Modality.STATED
    """Whether the sentence states it, hedges it or makes it a condition."""


class NounPhrase(Chunk):
    """A noun phrase; its text is the name without determiners and attributes."""

    kind: str = "N"
    name_start: int = 0
    lemma: str = ""
    """The head noun in the singular."""
    modifier: str = ""
    """The word before the head that forms a compound with it; may be empty."""
    attributes: list[tuple[str, int, int]] = []
    """Visible adjectives with their places."""
    determiner: str = ""
    plural: bool = False
    pronoun: bool = False
    tangible: bool = False
    measured: bool = False
    """Whether it is a measure, such as "group", that may precede "of"."""
    possessor: NounPhrase | None = None
    named: NounPhrase | None = None
    """The phrase to which a pronoun refers."""
    complement: NounPhrase | None = None
    """The phrase after "of" that completes an abstract noun: "color of the shirt"."""

    def __post_init__(self) -> None:
        self.name_start, self.lemma = self.start, self.text


class VerbGroup(Chunk):
    """A verb with its auxiliaries and particle; its text is the main verb as written."""

    kind: str = "V"
    verb_start: int = 0
    lemma: str = ""
    particle: str = ""
    particle_span: tuple[int, int] = (0, 0)
    form: str = "finite"
    """``finite``, ``ing``, ``participle`` or ``infinitive``."""
    passive: bool = False
    singular: bool = False
    """Whether its first word agrees with a singular subject: "is", "has", "holds"."""

    def __post_init__(self) -> None:
        self.verb_start, self.lemma = self.start, self.text


# Who looks at the image is not in it: "we see a dog".
VIEWERS = listed("we you i one viewers")
# Their object does what the verb after it says: "helps the child walk".
CAUSING = listed(
    "help make let allow ask cause teach enable invite tell watch see observe show hear keep "
    "encourage force order lead prompt get depict capture feature"
)
# Verbs that without an object do not describe their subject, or nothing that an image shows.
SAYING_NOTHING = listed(
    "be have do suggest indicate imply mean seem appear feel know think show exist include involve "
    "depend make cause give help use enjoy try need want like let get go provide consider prefer "
    "require"
)
# Participles that describe the clause's subject even directly after its object.
LOOSE = listed("use suggest indicate imply give include")
# Verbs with an object that names an occasion: "have a great time playing".
SPENDING = listed("have spend enjoy take")
# What things do as well as people: in "a man in a room facing a street" the room faces it.
STANDING = listed(
    "stand sit lie hang flow shine grow contain show say display lead cover surround float "
    "fly feature depict face overlook be have include run connect separate form reflect "
    "create line fill give make provide protrude extend bear belong consist"
)
# Prepositions after which an -ing form names an activity and does not describe the subject.
NAMING = listed("for of about from to than like on")
# Verbs of what a clause means: in "..., which suggests that" the clause suggests it.
TELLING = listed(
    "suggest indicate imply mean make help allow create add give show consider cause enable "
    "involve provide contribute enhance require explain lead demonstrate convey evoke"
)
# With two objects, the first has the second afterwards.
GIVING = listed("give lend")
STANCES = listed("lie sit stand hang rest stay stop fall swing float lay")
"""Verbs after which an adjective describes the subject: "the case lies open"."""
CHANGING = listed("make keep leave turn render paint")
"""Verbs before an object and what it becomes: "makes the room bright"."""
SHARED_PLACES = listed(
    "in|on|at|near|under|inside|outside|beside|behind|next to|in front of|on top of|around", "|"
)
"""Prepositions that place all phrases of a list before them."""
HEDGES = listed("likely unlikely possible probable possibly certain sure able ready")
# Prepositions that a clause may follow as well: "considering the man wears a coat".
CLAUSE_TOO = listed("considering given like despite except")
# Their object is not another thing, but what the subject is.
EQUATING = listed("be become remain")
# What these stand for owns the noun after them.
OWNED = listed("his her their its")


class Role(NamedTuple):
    """The role in a claim that a noun phrase shares with phrases coordinated with it."""

    subjects: tuple[NounPhrase, ...]
    relation: str
    negated: bool
    placing: bool = False


def worth_stating(phrase: NounPhrase, verbless: bool) -> bool:
    """Return whether a phrase may claim presence: it is tangible, or its sentence has no verb."""
    if phrase.pronoun or phrase.lemma in MEDIUM_NOUNS:
        return False
    # A title such as "Kitchen with a view" claims what it names.
    return phrase.tangible or verbless


def own_place(phrase: NounPhrase, role: Role, following: Chunk | None) -> bool:
    """Return whether a coordinated phrase has its own place, not that of the phrase before it."""
    placed = following is not None and following.kind == "I" and following.text != "of"
    # "A boy beside a dog and a girl eating": the girl is not what the boy is beside.
    if isinstance(following, VerbGroup) and following.form in ("ing", "participle"):
        return role.placing and bool(phrase.determiner)
    return placed and role.placing and phrase.determiner in ("a", "an", "another")


def verb_after_places(chunks: list[Chunk], i: int) -> VerbGroup | None:
    """Return the verb after the noun phrase at i and its places: "a boy in shorts throws"."""
    k = i + 1
    # At most three places, so that a long list is not searched for each of its nouns.
    while k + 1 < len(chunks) and k < i + 6 and chunks[k].kind == "I" and chunks[k + 1].kind == "N":
        k += 2
    verb = chunks[k] if k < len(chunks) else None
    if isinstance(verb, VerbGroup) and (k == i + 1 or verb.form == "finite"):
        return verb
    return None


def presents(verb: VerbGroup, subjects: tuple[NounPhrase, ...]) -> bool:
    """Return whether the image or its viewer shows what follows: "the image shows a dog"."""
    if verb.lemma not in PRESENTING_VERBS or verb.passive or not subjects:
        return False
    return is_shower(subjects[0])


def is_shower(subject: NounPhrase) -> bool:
    """Return whether a subject is the image or its viewer."""
    return subject.lemma in MEDIUM_NOUNS or subject.text in VIEWERS


def sharing(last: NounPhrase, prep: Chunk, role: Role | None) -> tuple[NounPhrase, ...]:
    """Return what a preposition places: the noun before it, or what shares its role."""
    # "A cup and a plate of cake": the cake is on the plate alone.
    if role is None or not role.placing or prep.text == "of":
        return (last,)
    return role.subjects


_COUNTING = listed("one some many most several both all each few two three none neither")


# "Is part of a collection": after a verb, the part is the object.
_PARTS = listed("part portion member")
# "Lack of light" claims that there is none.
_MISSING = listed("lack absence")
# "No signs of rain" denies the rain and not the signs.
_TRACES = listed("sign indication trace evidence hint")


def _counts(chunk: NounPhrase) -> bool:
    return chunk.pronoun and chunk.text in _COUNTING


def _misses(chunk: NounPhrase, before: list[Chunk]) -> bool:
    """Return whether a phrase denies the noun after "of": "lack of", "no signs of"."""
    denied = chunk.negated or bool(before and before[-1].text == "without")
    if chunk.lemma in MEDIUM_NOUNS:
        # "This is not a photo of a dog" and "no picture of a dog" are about the dog.
        last = before[-1] if before else None
        return denied or (isinstance(last, VerbGroup) and last.lemma == "be" and last.negated)
    return chunk.lemma in _MISSING or (denied and chunk.lemma in _TRACES)


def without_measures(chunks: list[Chunk]) -> list[Chunk]:
    """Return the chunks without "a group of" and similar phrases before a noun phrase."""
    out: list[Chunk] = []
    i = 0
    while i < len(chunks):
        chunk = chunks[i]
        measured = (
            isinstance(chunk, NounPhrase)
            and (chunk.measured or _counts(chunk) or _misses(chunk, out))
            and i + 2 < len(chunks)
            and chunks[i + 1].text == "of"
        )
        target = chunks[i + 2] if measured else None
        # "One of them" names nothing after "of".
        if isinstance(chunk, NounPhrase) and isinstance(target, NounPhrase) and not target.pronoun:
            if chunk.lemma in _PARTS and out and isinstance(out[-1], VerbGroup):
                chunk.measured = chunk.tangible = False  # "is part of a collection"
                out.append(chunk)
                i += 1
                continue
            medium = chunk.lemma in MEDIUM_NOUNS and _misses(chunk, out)
            missing = medium or chunk.lemma in _MISSING
            target.negated = target.negated or chunk.negated or missing
            # The claim's place shows the measure, too: "a group of people".
            target.start, target.first = chunk.start, chunk.first
            i += 2
            continue
        out.append(chunk)
        i += 1
    return out


def with_alternatives(chunks: list[Chunk]) -> list[Chunk]:
    """Return the chunks with the alternatives of a guess joined: "could be a zoo or a park".

    The sentence claims one of them and not each, so that they make one claim. What it denies, it
    denies of each.
    """
    # The usual sentence has no "or", and is not looked at twice.
    if not any(chunk.text == "or" for chunk in chunks):
        return chunks
    out: list[Chunk] = []
    denied = False
    i = 0
    while i < len(chunks):
        chunk = chunks[i]
        if isinstance(chunk, VerbGroup):
            denied = chunk.negated
        # "Is not a zoo or a park" denies each, so that they stay two.
        options, last = ([chunk], i) if denied else _alternatives(chunks, i)
        if len(options) > 1:
            _join(options)
        out.append(chunk)
        i = last + 1
    return out


def _alternatives(chunks: list[Chunk], i: int) -> tuple[list[Chunk], int]:
    """Return the phrases that "or" joins to the one at i, with it, and the place of the last."""
    options = [chunks[i]]
    k = i
    while _is_option(chunks, k):
        link = k + 1
        if link + 1 < len(chunks) and chunks[link].kind == "," and chunks[link + 1].kind == "C":
            link += 1
        if link + 1 >= len(chunks) or chunks[link].kind not in "C,":
            break
        k = link + 1
        if chunks[k].kind != chunks[i].kind:
            break
        options.append(chunks[k])
        if chunks[link].text == "or":
            following = chunks[k + 1] if k + 1 < len(chunks) else None
            clause = isinstance(following, VerbGroup) and following.form == "finite"
            # "Or a man stands": the option is the subject of another clause.
            opens = clause and any(isinstance(chunk, VerbGroup) for chunk in chunks[:i])
            return (options, k) if _is_option(chunks, k) and not opens else (options[:1], i)
    return options[:1], i


def _is_option(chunks: list[Chunk], i: int) -> bool:
    chunk = chunks[i]
    if chunk.kind not in "NA" or chunk.modality is Modality.STATED or chunk.negated:
        return False
    pronoun = isinstance(chunk, NounPhrase) and chunk.pronoun
    return not pronoun and (i == 0 or chunks[i - 1].text != "without")


def _join(options: list[Chunk]) -> None:
    """Give the first of several phrases the names of all."""
    first = options[0]
    # An attribute belongs to one option: "a red car or a blue one".
    names = [_described(each) for each in options]
    first.text = f"{', '.join(names[:-1])} or {names[-1]}"
    if isinstance(first, NounPhrase):
        first.name_start = min([first.name_start, *(start for _, start, _ in first.attributes)])
        first.attributes = []
    first.end, first.last = options[-1].end, options[-1].last


def _described(chunk: Chunk) -> str:
    """Return the name of a phrase with its attributes."""
    attributes = chunk.attributes if isinstance(chunk, NounPhrase) else ()
    return " ".join([*(text for text, _, _ in attributes), chunk.text])


_FRAMES = {
    "of": frozenset[str](),
    "between": listed("relationship connection bond interaction contrast difference distance"),
    "for": listed("reason"),
}
"""Prepositions whose phrase completes an abstract noun: any for "of", else these nouns."""
PERSONAL = listed("role relationship profession occupation job identity")
"""Nouns of which what is said is said of their complement: "the role of the man is a chef"."""
PURPOSES = listed("purpose reason role action activity goal intention function task aim focus job")
"""Nouns of which a verb is said of their complement: "the purpose of the net is to stop"."""


def with_complements(chunks: list[Chunk]) -> list[Chunk]:
    """Return the chunks with a preposition and its phrase joined to an abstract noun before them.

    "The color of the shirt" names one thing, of which neither half makes a claim. Coordinated
    complements stay apart, because the nouns that they share are several things.
    """
    # Most sentences have no such preposition.
    if not any(chunk.text in _FRAMES for chunk in chunks):
        return chunks
    out: list[Chunk] = []
    for i, chunk in enumerate(chunks):
        head = out[-2] if len(out) > 1 and out[-1].text in _FRAMES else None
        if (
            isinstance(chunk, NounPhrase)
            and isinstance(head, NounPhrase)
            and _completes(head, out[-1].text, chunk)
            and not _lists_on(chunks, i)
        ):
            prep = out.pop()
            head.complement = chunk
            head.text = f"{head.text} {prep.text} {chunk.text}"
            head.end, head.last = chunk.end, chunk.last
            continue
        out.append(chunk)
    return out


def _lists_on(chunks: list[Chunk], i: int) -> bool:
    """Return whether another noun phrase is coordinated with the one at i."""
    after = chunks[i + 1 : i + 3]
    return len(after) > 1 and after[0].kind in "C," and after[1].kind == "N"


def _completes(head: NounPhrase, prep: str, phrase: NounPhrase) -> bool:
    # A lake and not somebody's body; both nouns are tangible.
    if head.lemma == "body" and phrase.lemma == "water":
        return True
    if head.tangible or head.complement is not None or head.measured or phrase.pronoun:
        return False
    if head.pronoun:
        return head.text in ("that", "those") and prep == "of"
    # "The image of a dog" claims a dog, and nothing of an image.
    if MEDIUM_NOUNS & {head.lemma, phrase.lemma}:
        return False
    return prep == "of" or head.lemma in _FRAMES[prep]


DOUBTS = listed("unlikely unable doubtful improbable impossible")
"""Adjectives that negate what follows them: "is unlikely to be", "it is doubtful that"."""

_LIKELY = listed("likely unlikely able unable ready about set supposed going bound")
# "What appears to be a dog" is a dog, with a hedge that is marked already.
_SEEMING = listed("appear seem look")
# "Is seen riding" is "rides": who sees it is the viewer.
_REPORTING = listed(
    "see show depict capture portray picture observe photograph illustrate find catch leave"
)


def main_verb(tags: list[str], i: int) -> tuple[int, bool, bool, bool]:
    """Return the place of the main verb (-1: none), and if it is negated, passive, infinitive."""
    main, negated, passive = -1, False, False
    infinitive = tags[i] == "T"
    k = i + 1 if infinitive else i
    aux = ""
    while k < len(tags):
        tag = tags[k]
        if tag == "F":
            negated = True
        elif tag == "R":
            # "Is slowly riding" has its adverb inside; "rides quickly" ends before it.
            if not verb_goes_on(tags, k + 1):
                break
        elif tag in "MBHO":
            main, aux = k, tag
        elif tag == "V":
            # "Is ride" is no verb: the tagger took a noun for one.
            if main < 0 or aux in "MO":
                main = k
            break
        elif tag in "GE":
            if main < 0 or aux in "BH" or (aux == "M" and tag == "E"):
                passive = tag == "E" and aux == "B"
                main = k
            break
        else:
            break
        k += 1
    # "Forward to riding" has a preposition.
    if infinitive and main >= 0 and tags[main] in "GE" and tags[i + 1] in "GE":
        return -1, False, False, False
    return main, negated, passive, infinitive


def verb_goes_on(tags: list[str], k: int) -> bool:
    """Return whether a verb follows at k, perhaps after adverbs and negations."""
    while k < len(tags) and tags[k] in "RF":
        k += 1
    return k < len(tags) and tags[k] in "VGEBHMO"


def joined(chunks: list[Chunk]) -> list[Chunk]:
    """Return the chunks with verb chains joined, such as "seems to be walking"."""
    out: list[Chunk] = []
    for chunk in chunks:
        if isinstance(chunk, VerbGroup) and out and chunk.form in ("infinitive", "ing"):
            before = out[-1]
            hinge = None
            # An adjective between: "is likely to be".
            if chunk.form == "infinitive" and before.text in _LIKELY and len(out) > 1:
                hinge, before = before, out[-2]
            if isinstance(before, VerbGroup) and _hands_on(before, chunk, hinge):
                chunk.form = before.form
                doubted = hinge is not None and hinge.text in DOUBTS
                # "Fails to show" denies it, and "does not fail to" does not.
                denied = before.negated is not (before.lemma == "fail")
                chunk.negated = chunk.negated or denied or doubted
                chunk.first, chunk.start = before.first, before.start
                del out[-2 if hinge is not None else -1 :]
        out.append(chunk)
    return out


def _hands_on(before: VerbGroup, after: VerbGroup, hinge: Chunk | None) -> bool:
    if hinge is not None:
        return before.lemma == "be"
    if before.particle:
        # "Goes on to" and "keeps on" continue; other particles change the verb.
        return before.particle == "on" and before.lemma in ("go", "keep")
    if before.lemma in RAISING or (before.lemma in ("go", "fail") and after.form == "infinitive"):
        return True
    return before.passive and before.lemma in _REPORTING


def ends_absence(following: Chunk | None) -> bool:
    """Return whether what follows a negated "be" leaves it whole: "is not there", "to be seen"."""
    if isinstance(following, VerbGroup):
        return following.form == "infinitive" and following.lemma in _REPORTING
    return following is None or following.kind in ".,"


def without_seeming(chunks: list[Chunk], words: list[Word]) -> list[Chunk]:
    """Return the chunks without "what appears to be" before a noun phrase."""
    out: list[Chunk] = []
    for chunk in chunks:
        last = out[-1] if out else None
        seeming = isinstance(chunk, VerbGroup) and chunk.lemma == "be"
        what = last is not None and last.kind == "W" and last.text == "what"
        if seeming and what and words[chunk.first].verb_lemma in _SEEMING:
            out.pop()
        else:
            out.append(chunk)
    return out
