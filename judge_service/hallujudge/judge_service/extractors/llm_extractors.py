"""Extractors that use a language model, and the sentence-level baseline."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from hallujudge.metrics.framework.claims import (
    InvalidEntry,
    Sentence,
    Triplet,
    TripletError,
    triplet_of,
)

from ..llm.budget import VerdictStore
from ..llm.client import ChatClient
from ..llm.prompt_templates import (
    EXTRACT,
    as_line,
    fenced,
    object_schema,
    paper_prompt,
    read_keyword_lists,
)
from ..threads import map_cpu, of_each
from . import SYNONYMS, DescriptionPair, ExtractedTriplet, Keyword, Keywords, PairKeywords, Span
from .llm_extractor_base import Extraction, LlmExtractor, list_under, shown, sift, with_keys
from .rules.lexicon import Morphology
from .rules.rule_extractors import RuleKeywordExtractor, shared_analyser
from .rules.words import sentences

_KEYWORD_TEMPLATES = {"keep": "extract_keywords", "transfer": "extract_keywords_transfer"}
MAX_CLAIMS = 400
"""A list with more claims or keywords comes from a model that repeats itself."""

# A longer keyword is a sentence that the model put into the list.
_MAX_KEYWORD_CHARS = 100
# The prompts ask for objects of at most two words.
_OBJECT_WORDS = 2
_LISTS = ("reference_objects", "reference_behaviors", "predicted_objects", "predicted_behaviors")
_CLAIM_KEYS = ("object1", "relation", "object2")
# Words without quotation marks and backslashes: some servers put a pattern's text into the answer
# as it is, without escapes. White space is spelt out: a llama.cpp of 2026 has no class for it.
_WORD_PATTERN = r'[^ \t\r\n"\\]+'
_WORDS = {"type": "string", "pattern": f"^{_WORD_PATTERN}( {_WORD_PATTERN})*$"}
_SHORT = {"type": "string", "pattern": f"^{_WORD_PATTERN}( {_WORD_PATTERN})?$"}
# Verbs that mark a tense before the verb that names the action: "was riding", "has been seen".
_AUXILIARIES = frozenset({"be", "have"})
NOWHERE = Span(0, 0)
"""The place of words that are not in the text."""

_MOST_STARTS = 100
"""The maximum number of places tried for a keyword, which limits the cost of repeated words."""

_GAP = 4
"""How many tokens after a verb are searched for its particle: "picks the red ball up"."""


class LlmTripletExtractor(LlmExtractor[str, list[ExtractedTriplet]]):
    """Extracts (subject, relation, object) claims from texts with a language model.

    Section 3.3 of the Tri-HE paper, which asks GPT-4. The prompt, the schema and
    the checks are our own. The position of a claim is looked up in the text; a claim whose words do
    not occur there as the model wrote them has the empty position ``(0, 0)``. A claim with an empty
    or overlong part, or with other keys, is rejected.
    """

    template_name = "extract_triplets"
    slots = ("response",)

    def _known(self, source: str) -> list[ExtractedTriplet] | None:
        # A model may make up claims about an empty text.
        return None if source.strip() else []

    def _slots(self, source: str) -> Mapping[str, str]:
        return {"response": _fenced("RESPONSE", source)}

    def _schema(self, source: str) -> Mapping[str, object]:  # noqa: ARG002  # the same for all
        claim = object_schema(dict.fromkeys(_CLAIM_KEYS, _WORDS))
        return object_schema({"triplets": {"type": "array", "items": claim}})

    def _checked(self, value: object, source: str) -> Extraction[list[ExtractedTriplet]]:
        entries = list_under(with_keys(value, ["triplets"]), "triplets", MAX_CLAIMS)
        claims, invalid = sift("triplets", entries, _claim)
        places = Places(source)
        return Extraction(
            found=[places.extracted(claim) for claim in claims], invalid=tuple(invalid)
        )


class LlmKeywordExtractor(LlmExtractor[DescriptionPair, PairKeywords]):
    """Extracts object and behaviour keywords from two descriptions with one call.

    Section 3 of the Mementos paper, which asks GPT-4 for the lists of the human and of the
    generated description together. The prompt is our own. A keyword is found in its description in
    any form; one that does not occur has the empty position ``(0, 0)``.

    An object of more than two words is replaced by the object that the rules find in it ("red
    plastic cup": "plastic cup"), and rejected if they find none or several. A behaviour that is not
    in root form is put into it. Other invalid keywords are rejected.

    Args:
        client: Calls the model.
        synonyms: ``transfer`` has the model write synonyms in the four lists as one word, as the
            paper's prompt does (appendix C, Table 6).
        cache: Keeps replies between runs.
        revision: The weights' revision, where known.
        prompt: A user's own prompt instead of the shipped one.
        preset: Name of the prompt that the paper prints, whose reply has four lines of lists.
    """

    slots = ("reference", "predicted")

    def __init__(
        self,
        client: ChatClient,
        *,
        synonyms: str = SYNONYMS[0],
        cache: VerdictStore | None = None,
        revision: str = "",
        prompt: str = "",
        preset: str = "",
    ) -> None:
        super().__init__(client, cache=cache, revision=revision, prompt=prompt)
        self.template_name = _KEYWORD_TEMPLATES[synonyms]
        self._is_printed = bool(preset)
        if preset:
            self._own = paper_prompt(preset, "mementos", EXTRACT).template

    def _known(self, source: DescriptionPair) -> PairKeywords | None:
        return None if source.reference.strip() or source.predicted.strip() else PairKeywords()

    def _slots(self, source: DescriptionPair) -> Mapping[str, str]:
        return {
            "reference": _fenced("REFERENCE", source.reference),
            "predicted": _fenced("PREDICTED", source.predicted),
        }

    def _parsed(self, content: str) -> object:
        if not self._is_printed:
            return super()._parsed(content)
        return read_keyword_lists(content)

    def _schema(self, source: DescriptionPair) -> Mapping[str, object] | None:  # noqa: ARG002
        # The form of the printed prompt's reply is not JSON.
        if self._is_printed:
            return None
        lists = {
            name: {"type": "array", "items": _SHORT if name.endswith("objects") else _WORDS}
            for name in _LISTS
        }
        return object_schema(lists)

    def _checked(self, value: object, source: DescriptionPair) -> Extraction[PairKeywords]:
        lists = with_keys(value, _LISTS)
        reference, wrong = _keywords(lists, "reference", source.reference)
        predicted, wrong_too = _keywords(lists, "predicted", source.predicted)
        return Extraction(
            found=PairKeywords(reference=reference, predicted=predicted),
            invalid=(*wrong, *wrong_too),
        )


class AskedAnswer(NamedTuple):
    """An answer, and the question that it answers."""

    question: str
    """The question; may be empty."""
    response: str
    """The answer."""


class LlmObjectExtractor(LlmExtractor[AskedAnswer, tuple[str, ...]]):
    """Extracts the names of visible objects from answers with a language model.

    Object HalBench asks GPT-3.5 for them. The prompt, the schema and the checks are our own.

    Args:
        client: Calls the model.
        least_words: Answers with fewer words have no objects, and cause no call.
        cache: Keeps replies between runs.
        revision: The weights' revision, where known.
        prompt: A user's own prompt instead of the shipped one.
    """

    template_name = "extract_objects"
    slots = ("question", "response")

    def __init__(
        self,
        client: ChatClient,
        *,
        least_words: int = 1,
        cache: VerdictStore | None = None,
        revision: str = "",
        prompt: str = "",
    ) -> None:
        super().__init__(client, cache=cache, revision=revision, prompt=prompt)
        self._least_words = least_words

    def _known(self, source: AskedAnswer) -> tuple[str, ...] | None:
        return None if len(source.response.split()) >= self._least_words else ()

    def _slots(self, source: AskedAnswer) -> Mapping[str, str]:
        return {
            "question": _fenced("QUESTION", source.question),
            "response": _fenced("RESPONSE", source.response),
        }

    def _schema(self, source: AskedAnswer) -> Mapping[str, object]:  # noqa: ARG002  # the same for all
        return object_schema({"objects": {"type": "array", "items": _WORDS}})

    def _checked(self, value: object, source: AskedAnswer) -> Extraction[tuple[str, ...]]:  # noqa: ARG002
        entries = list_under(with_keys(value, ["objects"]), "objects", MAX_CLAIMS)
        found, invalid = sift("objects", entries, lambda entry: (_word(entry), ""))
        return Extraction(found=tuple(found), invalid=tuple(invalid))


class SentenceExtractor:
    """Extracts a text's sentences as claims: the baseline of the paper's Table 3, without a model.

    A sentence ends at a full stop, question mark or exclamation mark before white space and a
    capital, a digit or a quotation mark, and at a line break; common abbreviations do not end one.
    """

    label = "sentences-1"
    # CJK full stops have no space after them.
    _END = re.compile(r"(?<=[.!?])[\"')\]]*\s+(?=[\"'(\[]?[A-Z0-9])|\n+|(?<=[。！？])")
    _ABBREVIATION = re.compile(
        r"(?:\b(?:Mr|Mrs|Ms|Dr|St|No|vs|etc|approx|e\.g|i\.e|a\.m|p\.m)|\b[A-Z])\.$"
    )

    def extract(self, text: str) -> list[tuple[Sentence, Span]]:
        """Return the sentences of one text with their positions."""
        # An end after an abbreviation is none: "Dr. Smith" is one name.
        cuts = [0, *(match.end() for match in self._END.finditer(text) if self._ends(text, match))]
        found = []
        for start, end in zip(cuts, [*cuts[1:], len(text)], strict=True):
            sentence = text[start:end]
            left = start + len(sentence) - len(sentence.lstrip())
            # A line of dashes or emoji claims nothing.
            if any(map(str.isalnum, sentence)):
                span = Span(left, left + len(sentence.strip()))
                found.append((Sentence(sentence.strip()), span))
        return found

    async def extract_many(self, texts: Sequence[str]) -> list[list[tuple[Sentence, Span]]]:
        """Return the sentences of each text, while a server serves other calls."""
        return await map_cpu(of_each(self.extract), texts, chars=len)

    def _ends(self, text: str, match: re.Match[str]) -> bool:
        # The longest abbreviation has 6 characters; a search from the beginning would be quadratic.
        before = text[max(0, match.start() - 12) : match.start()]
        # A line break ends a sentence even after an abbreviation, as in lists.
        return "\n" in match[0] or not self._ABBREVIATION.search(before)


def _fenced(name: str, text: str) -> str:
    return fenced(name, [as_line(text)])


def _claim(entry: object) -> tuple[Triplet, str]:
    parts = with_keys(entry, _CLAIM_KEYS)
    try:
        return triplet_of([parts[name] for name in _CLAIM_KEYS]), ""
    except TripletError as err:
        raise ValueError(err.problem) from err


def _keywords(
    lists: Mapping[str, object], side: str, text: str
) -> tuple[Keywords, list[InvalidEntry]]:
    """The keywords of one description with their positions, and the invalid ones."""
    names = [f"{side}_{role}" for role in ("objects", "behaviors")]
    listed = [list_under(lists, name, MAX_CLAIMS) for name in names]
    if not text.strip():
        # Its lists are known to be empty, whatever the model says.
        return Keywords(), [
            InvalidEntry(name, shown(entry), f"the {side} description is empty")
            for name, entries in zip(names, listed, strict=True)
            for entry in entries
        ]
    objects, wrong = sift(names[0], listed[0], _object)
    behaviors, wrong_too = sift(names[1], listed[1], _behavior)
    places = Places(text)
    found = Keywords(
        objects=tuple(map(places.object, objects)),
        behaviors=tuple(map(places.behavior, behaviors)),
    )
    return found, wrong + wrong_too


def _object(value: object) -> tuple[str, str]:
    """Return an object of at most two words, and why it is not the one that the model wrote."""
    word = _word(value)
    if len(word.split()) <= _OBJECT_WORDS:
        return word, ""
    problem = "more than two words"
    # The last two words need not name the object: "cup of tea" is no "of tea".
    found = RuleKeywordExtractor().extract(word).words("objects")
    if len(found) != 1:
        raise ValueError(f"{problem}, of which the rules find {len(found)} objects")
    return found[0], problem


def _behavior(value: object) -> tuple[str, str]:
    """Return a behaviour in root form, and why it is not the one that the model wrote."""
    word = _word(value)
    verb, *rest = word.split()
    root = root_form(verb)
    if root == verb:
        return word, ""
    if rest and root in _AUXILIARIES:
        # A tagger needs a sentence to know a verb; "they" fits every form.
        found = RuleKeywordExtractor().extract(f"They {word}.").words("behaviors")
        root, rest = (found[0], []) if len(found) == 1 else (root, rest)
    return " ".join((root, *rest)), "not in root form"


def _word(value: object) -> str:
    word = " ".join(value.lower().split()) if isinstance(value, str) else ""
    # Unprintable characters are not words, and a lone surrogate cannot be written to a file.
    if not 0 < len(word) <= _MAX_KEYWORD_CHARS or not word.isprintable():
        raise ValueError(f"not a printable text of 1 to {_MAX_KEYWORD_CHARS} characters")
    return word


@dataclass(frozen=True)
class Places:
    """Finds words in a text, ignoring case and white space."""

    text: str

    def of(self, words: str, after: int = 0) -> Span:
        """Return the first place of words as written, from ``after`` on; ``(0, 0)`` if absent."""
        pattern = r"\s+".join(map(re.escape, words.split()))
        # Not \b, which finds no bound beside a word that begins or ends with a sign.
        bounded = rf"(?<!\w){pattern}(?!\w)"
        match = re.compile(bounded, re.IGNORECASE).search(self.text, after) if pattern else None
        return Span(*match.span()) if match else NOWHERE

    def extracted(self, claim: Triplet) -> ExtractedTriplet:
        """Return a claim with its places; the object is preferably found after the subject."""
        first = self.of(claim.subject)
        # "A dog beside a dog" has its object after the subject; a passive may have it before.
        second = self.of(claim.object, first.end)
        second = second if second.end else self.of(claim.object)
        # (0, 0) is not a place, and would stretch the claim to the text's beginning.
        known = [span for span in (first, second) if span.end]
        return ExtractedTriplet(
            subject=claim.subject,
            relation=claim.relation,
            object=claim.object,
            start=min((span.start for span in known), default=0),
            end=max((span.end for span in known), default=0),
            subject_span=first,
            object_span=second,
            # A model writes the denial into the relation; nothing else shows it.
            negated=bool(re.search(r"\b(not|no|never|n't)\b", claim.relation, re.IGNORECASE)),
        )

    def object(self, word: str) -> Keyword:
        """Return an object with its place, in the singular or plural."""
        # Words of a noun phrase stand together; only a verb and its particle may be apart.
        return self._keyword(word, gap=1)

    def behavior(self, word: str) -> Keyword:
        """Return a behaviour with its place, in any form; words may precede its particle."""
        return self._keyword(word, gap=_GAP)

    def _keyword(self, word: str, gap: int) -> Keyword:
        # As written first, which is the exact place; forms cost an analysis of the whole text.
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
    # By form, so that a keyword is looked for only where its first word occurs.
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
    # A word that the lexicon does not know as a verb's form is left as the model wrote it.
    return verb if form == "b" or weight < 0 or lexicon.is_verb(verb) else lemma
