"""The clause that the triplet rules read: its verb, and who its subjects are."""

from __future__ import annotations

from .attachment import Attachment
from .lexicon import Lexicon
from .phrases import Chunk, NounPhrase, VerbGroup
from .roles import CAUSING, LOOSE, SPENDING, Role

__all__ = ["Clause"]


class Clause:
    """What was read of a sentence so far, from left to right.

    Args:
        lexicon: The lexicon, which has the nouns for persons.
    """

    def __init__(self, lexicon: Lexicon) -> None:
        self._attachment = Attachment(lexicon)
        self._reset()

    def _reset(self) -> None:
        self._phrases: list[NounPhrase] = []
        self._subjects: tuple[NounPhrase, ...] = ()
        self._verb: VerbGroup | None = None
        self._verb_subjects: tuple[NounPhrase, ...] = ()
        self._verb_said = True
        self._objects: list[NounPhrase] = []
        self._last: NounPhrase | None = None
        self._prep: Chunk | None = None
        self._role: Role | None = None
        self._fronted: list[tuple[Chunk, NounPhrase]] = []
        self._relative: NounPhrase | None = None
        self._existential = False
        self._linked = self._parallel = self._absolute = False
        self._had_main_verb = False
        self._predicate: Chunk | None = None
        self._aside = False
        self._outer: tuple[NounPhrase, ...] = ()
        self._gap: NounPhrase | None = None
        self._denied = False

    def _opens_clause(self, following: Chunk | None) -> bool:
        """Return whether this phrase is the subject of a finite verb that follows.

        In "a woman wearing sunglasses holds" and "the man who has a hat holds" the subject is the
        phrase before the participle or the relative clause instead.
        """
        if not isinstance(following, VerbGroup) or following.form != "finite":
            return False
        owing = not self._had_main_verb and bool(self._subjects)
        if owing and self._linked and self._role is not None:
            # "A man in a shirt and trousers is": the verb agrees with the man alone.
            alone = len(self._subjects) == 1 and not self._subjects[0].plural
            return not (alone and following.singular)
        return self._linked or self._verb is None or not owing

    def _besides(self, following: Chunk | None) -> tuple[NounPhrase, ...]:
        """Return what a pronoun cannot refer to: subjects and objects of the verb before it."""
        if self._verb is None or self._absolute or self._opens_clause(following):
            return ()
        whole = (*self._verb_subjects, *self._objects)
        return tuple(each if each.named is None else each.named for each in whole)

    def _subjects_of(self, verb: VerbGroup, before: Chunk | None) -> tuple[NounPhrase, ...]:
        if self._relative is not None:
            return (self._relative,)
        if verb.form in ("ing", "participle"):
            if isinstance(before, NounPhrase) and not before.pronoun and verb.lemma not in LOOSE:
                joined = self._subjects and before is self._subjects[-1]
                if joined:
                    return self._subjects
                said = self._verb_subjects if self._spends(before) else ()
                return said or self._attachment.described(before, verb, self._role)
            if isinstance(before, VerbGroup):
                return self._verb_subjects
            if before is None or self._verb is None:
                return self._subjects
            linked = before.kind == "C" or self._verb.form == verb.form
            return self._verb_subjects if linked else self._subjects
        if verb.form == "infinitive":
            caused = self._objects and self._verb is not None and self._verb.lemma in CAUSING
            return (self._objects[-1],) if caused else self._verb_subjects or self._subjects
        if self._outer and self._verb is not None and before is not None and before.kind != "C":
            self._subjects, self._outer = self._outer, ()
            return self._subjects
        if before is not None and before.kind == "C" and self._verb is not None:
            finite = self._verb.form == "finite"
            return self._verb_subjects or self._subjects if finite else self._subjects
        return self._subjects

    def _spends(self, before: NounPhrase) -> bool:
        """Return whether a noun is the occasion of an activity: "have a great time playing"."""
        verb = self._verb
        spent = verb is not None and verb.lemma in SPENDING and not before.tangible
        return spent and bool(self._objects) and before is self._objects[-1]
