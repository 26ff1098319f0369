"""The small judge: checks whether references, in words, support a claim."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from hallujudge.metrics.framework.claims import ClaimVerdict, Triplet

from . import (
    ClaimQuery,
    MatcherSettings,
    SmallPreset,
    VectorStore,
    plain,
    preset_of,
)
from .cosine_matcher import RoundsMatcher, retained_of, without_verdict

WORDING = "words-1"
"""The version of the template that puts scene graphs into words, for signatures."""
# Words are shorter than this. A longer "word" of a hostile text is cut before it is tokenized.
_CHARACTERS_PER_TOKEN = 32


class SmallMatcher(RoundsMatcher):
    """A sentence-pair classifier over the references of a claim, put into words.

    1. The references become sentences: the whole scene graph and the other objects, or the
       triplets that a claim retains by cosine, as in the paper (``SmallPreset.reads``).
    2. The sentences are the premise, and the claim is the hypothesis. A premise that is too long
       is split between sentences; the claim's score is the highest one, as in MiniCheck. The model
       cannot combine sentences of different pieces.
    3. The claim is supported if the probability of "supported" is above ``small_above``.

    A sentence that does not fit together with the claim is cut, and the verdict's ``detail`` says
    so. A claim that leaves no room for a premise is unscored.

    None of this is from the Tri-HE paper, whose "NLI judge" compares vectors. :class:`PartRule`
    names the wrong parts, as with ``published``.

    Args:
        settings: The thresholds, the preset's name and the rule for parts.
        store: Vectors by text, for retaining references and for parts.
        encoder: The sentence encoder and its backend, for the signature.
        model: The classifier.
    """

    # Seconds on a CPU.
    claims_per_round = 16
    is_short = False

    def __init__(
        self, settings: MatcherSettings, store: VectorStore, encoder: str, model: PairModel
    ) -> None:
        super().__init__(settings, store)
        self._preset: SmallPreset = preset_of(settings.protocol)
        self._encoder = encoder
        self._model = model
        self.name = f"{self._preset.name}/{model.label.partition('@')[0]}"
        retained = [f"top{settings.top}"] if self._preset.reads == "retained" else []
        self.label = "/".join(
            [
                f"{self._preset.name}/{model.label}",
                f"{WORDING}-{self._preset.reads}",
                *retained,
                f"prob>{settings.small_above:g}",
                f"parts-{settings.parts}",
                f"keep>{settings.keep_above:g}",
                encoder,
            ]
        )

    @property
    def settings(self) -> Mapping[str, str]:
        """The models, the wording of references and the thresholds."""
        return {
            "small_judge": self._preset.name,
            "small_model": self._model.label,
            "small_above": f"{self._settings.small_above:g}",
            "small_wording": f"{WORDING}-{self._preset.reads}",
            "matcher_model": self._encoder,
            "matcher_keep_above": f"{self._settings.keep_above:g}",
            "matcher_top": str(self._settings.top),
            "matcher_parts": self._settings.parts,
        }

    def _compared(self, queries: Sequence[ClaimQuery]) -> list[ClaimVerdict]:
        candidates = self._candidates(queries)
        scores = self._scores(candidates)
        return [
            self._verdict(query, found, scores)
            for query, found in zip(queries, candidates, strict=True)
        ]

    def _scores(self, candidates: Sequence[_Candidates]) -> dict[tuple[str, str], float]:
        pairs = list(
            dict.fromkeys((p.text, found.claim) for found in candidates for p in found.premises)
        )
        return dict(zip(pairs, self._model.supported(pairs), strict=True))

    def _candidates(self, queries: Sequence[ClaimQuery]) -> list[_Candidates]:
        facts = self._facts(queries)
        texts = list(dict.fromkeys(fact.text for found in facts for fact in found))
        tokens = dict(zip(texts, self._model.lengths(texts), strict=True))
        by_words = self._preset.unit == "words"
        units = {text: len(text.split()) for text in texts} if by_words else tokens
        claims = [hypothesis(query.claim) for query in queries]
        overheads = self._model.sizes([("", claim) for claim in claims])
        drafts = []
        for claim, found, overhead in zip(claims, facts, overheads, strict=True):
            room = Room(tokens=self._model.limit - overhead, chunk=self._preset.chunk)
            premises = tuple(packed(found, tokens, units, room)) if room.tokens > 0 else ()
            drafts.append(
                _Candidates(claim=claim, facts=len(found), premises=premises, overhead=overhead)
            )
        return self._fitted(drafts)

    def _facts(self, queries: Sequence[ClaimQuery]) -> list[list[Fact]]:
        characters = self._model.limit * _CHARACTERS_PER_TOKEN
        if self._preset.reads == "all":
            return [facts_of(query, characters=characters) for query in queries]
        return [
            facts_of(query, found.kept or found.top, characters=characters)
            for query, found in zip(
                queries, retained_of(queries, self._store, self._settings), strict=True
            )
        ]

    def _fitted(self, drafts: Sequence[_Candidates]) -> list[_Candidates]:
        """Return the candidates with premises whose inputs are not too long, measured whole."""
        # With some vocabularies, joined sentences have more tokens than they have separately.
        pairs = [(p.text, draft.claim) for draft in drafts for p in draft.premises]
        sizes = iter(self._model.sizes(pairs))
        return [
            replace(
                draft,
                premises=tuple(
                    part
                    for premise in draft.premises
                    for part in self._parts(premise, draft.claim, next(sizes))
                ),
            )
            for draft in drafts
        ]

    def _parts(self, premise: Premise, claim: str, size: int) -> list[Premise]:
        if size <= self._model.limit:
            return [premise]
        return cut_to_fit(
            premise, lambda text: self._model.sizes([(text, claim)])[0] <= self._model.limit
        )

    def _verdict(
        self,
        query: ClaimQuery,
        found: _Candidates,
        scores: Mapping[tuple[str, str], float],
    ) -> ClaimVerdict:
        if not found.premises:
            detail = (
                f"the claim has {found.overhead} tokens with the prompt; the model reads "
                f"{self._model.limit}"
            )
            return without_verdict(query, self.name, "CLAIM_TOO_LONG", detail)
        best = max(found.premises, key=lambda premise: scores[premise.text, found.claim])
        score = scores[best.text, found.claim]
        whole = self._preset.reads == "all" and len(found.premises) == 1
        chosen = () if whole else best.positions
        return self._scored(query, score, self._settings.small_above, chosen, self._cut(found))

    def _cut(self, found: _Candidates) -> str:
        cut = sum(fact.is_cut for premise in found.premises for fact in premise.facts)
        if not cut:
            return ""
        return (
            f"input truncated: {cut} of {found.facts} sentences of the references were cut to fit "
            f"into the model's {self._model.limit} tokens"
        )


class _Candidates(Struct, frozen=True, kw_only=True):
    """The premises that a claim is compared with."""

    claim: str
    """The claim as a sentence."""
    facts: int
    """How many sentences its references have."""
    premises: tuple[Premise, ...]
    """The premises; empty if the claim itself is too long."""
    overhead: int
    """The number of tokens of the input without a premise."""


class Fact(Struct, frozen=True, kw_only=True):
    """A sentence of a premise."""

    text: str
    """The sentence."""
    position: int | None
    """The position of the reference triplet that it states; None if it states an object."""
    is_cut: bool = False
    """Whether its end was cut off, because it is too long for the model."""


class Premise(Struct, frozen=True, kw_only=True):
    """A text that may support a claim."""

    facts: tuple[Fact, ...]
    """Its sentences."""

    @property
    def text(self) -> str:
        """The sentences with blanks between them."""
        return " ".join(fact.text for fact in self.facts)

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of the reference triplets that it states."""
        return tuple(fact.position for fact in self.facts if fact.position is not None)


class Room(Struct, frozen=True, kw_only=True):
    """How long a premise may be."""

    tokens: int
    chunk: int = 0
    """In the unit of the preset; 0 if only tokens are limited."""


def hypothesis(claim: Sequence[str]) -> str:
    """Return a claim as a sentence: its parts joined by blanks, with a final full stop."""
    text = plain(" ".join(claim)).strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def facts_of(
    query: ClaimQuery, retained: Iterable[int] | None = None, *, characters: int
) -> list[Fact]:
    """Return the references of a claim in words, each sentence once.

    A triplet becomes ``SUBJECT RELATION OBJECT.``, and an object that no triplet names becomes
    ``There is OBJECT.``

    Args:
        query: The claim with its references.
        retained: The positions of the only triplets to state; by default, all triplets and objects.
        characters: The maximum length of a sentence, which is cut there.
    """
    references = query.references or ()
    chosen = range(len(references)) if retained is None else sorted(retained)
    sentences: dict[str, int | None] = {}
    for position in chosen:
        sentences.setdefault(reference_sentence(references[position]), position)
    for name in () if retained is not None else _unnamed(query.objects, references):
        sentences.setdefault(f"There is {name}.", None)
    return [
        Fact(text=text[:characters], position=position, is_cut=len(text) > characters)
        for text, position in sentences.items()
    ]


def _unnamed(objects: Sequence[str], references: Sequence[Triplet]) -> Iterator[str]:
    named = {end.casefold() for triplet in references for end in (triplet[0], triplet[2])}
    return (plain(name) for name in objects if name.casefold() not in named)


def packed(
    facts: Sequence[Fact], tokens: Mapping[str, int], units: Mapping[str, int], room: Room
) -> list[Premise]:
    """Return premises of consecutive sentences, each as long as possible.

    Args:
        facts: The sentences.
        tokens: The number of tokens of each sentence.
        units: The length of each sentence in the unit of ``room.chunk``.
        room: The maximum length of a premise. A longer sentence is a premise by itself.
    """
    pieces: list[list[Fact]] = []
    used = filled = 0
    for fact in facts:
        size, unit = tokens[fact.text], units[fact.text]
        full = used + size > room.tokens or (room.chunk and filled + unit > room.chunk)
        # A sentence that is too long by itself gets its own piece, which is cut later.
        if not pieces or full:
            pieces.append([])
            used = filled = 0
        pieces[-1].append(fact)
        used, filled = used + size, filled + unit
    return [Premise(facts=tuple(piece)) for piece in pieces]


def cut_to_fit(premise: Premise, fits: Callable[[str], bool]) -> list[Premise]:
    """Return a premise that is too long in parts that fit: split between sentences, or else cut.

    Args:
        premise: A premise that does not fit.
        fits: Whether a text fits.
    """
    if len(premise.facts) > 1:
        middle = len(premise.facts) // 2
        halves = (premise.facts[:middle], premise.facts[middle:])
        parts = [Premise(facts=half) for half in halves]
        return [
            p for part in parts for p in ([part] if fits(part.text) else cut_to_fit(part, fits))
        ]
    (fact,) = premise.facts
    low, high = 0, len(fact.text)
    # Halving works, because a longer text has no fewer tokens.
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if fits(fact.text[:middle]) else (low, middle - 1)
    if not (text := fact.text[:low].strip()):
        return []
    return [Premise(facts=(Fact(text=text, position=fact.position, is_cut=True),))]


class PairModel(Protocol):
    """A classifier that returns the probability that a premise supports a claim."""

    @property
    def label(self) -> str:
        """The model's name in signatures."""

    @property
    def limit(self) -> int:
        """The maximum number of tokens of an input."""

    def lengths(self, texts: Sequence[str]) -> list[int]:
        """Return the number of tokens of each text by itself."""

    def sizes(self, pairs: Sequence[tuple[str, str]]) -> list[int]:
        """Return the number of tokens of the input that a premise and a claim make."""

    def supported(self, pairs: Sequence[tuple[str, str]]) -> list[float]:
        """Return the probability that each premise supports its claim."""


def reference_sentence(reference: Triplet) -> str:
    """Return a reference as a sentence of a small judge's premise; its punctuation is kept."""
    return plain(f"{' '.join(reference)}.")
