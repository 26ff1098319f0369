"""Small judges: a matcher in this process, or a model behind a server that checks claims.

Served models read their own prompts, whose words are part of their training, and reply in one
word.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from typing import Generic, Self, TypeVar

from msgspec.structs import replace

from hallujudge.metrics.framework.claims import ClaimParts, ClaimVerdict, Verdict

from ..llm.budget import Usage, VerdictStore
from ..llm.chat import ChatRequest
from ..llm.chat_replies import TIED
from ..llm.client import ChatClient
from ..llm.prompt_templates import Template, defused, load_template
from ..matchers import (
    ClaimMatcher,
    ClaimQuery,
    JudgePreset,
    MatcherSettings,
    SmallPreset,
    verdict_by,
)
from ..matchers.small_matcher import WORDING, Fact, Room, facts_of, hypothesis, packed
from . import (
    JudgedItem,
    JudgeIdentity,
    JudgeRequestItem,
    count_verdicts,
    logistic,
    unscored_claim,
)
from .llm_judge import LlmJudge
from .questions import SENTENCE_CHOICES, Question
from .replies import ReadAnswer

_MAX_SENTENCE = 8_000
"""Characters of a sentence of a document; longer ones are cut."""


class ServedPreset(JudgePreset, frozen=True, kw_only=True):
    """A small judge behind a server, which usually calls the model by its hub id."""

    template: str
    """The prompt's file."""
    supported: str
    """The reply that means "supported"."""
    unsupported: str
    """The reply that means "not supported"."""
    max_tokens: int
    """Tokens of a reply at most."""
    envelope: tuple[str, str] = ("", "")
    """The text before and after the word in a reply."""
    settings: Mapping[str, object] = {}
    """Values for the model's chat template."""
    takes_documents: bool = False
    """Whether the document is a parameter of the request instead of a part of the prompt."""
    shown: str
    """The input, for the table of small judges."""


_AGGREFACT = "LLM-AggreFact leaderboard (llm-aggrefact.github.io)"
_PRESETS = (
    # Liyan06/MiniCheck, minicheck/utils.py (SYSTEM_PROMPT, USER_PROMPT).
    ServedPreset(
        name="bespoke-minicheck",
        title="Bespoke-MiniCheck-7B",
        model="bespokelabs/Bespoke-MiniCheck-7B",
        template="bespoke_minicheck",
        supported="yes",
        unsupported="no",
        max_tokens=8,
        shown="its system prompt, then `Document: {premise}⏎Claim: {claim}`; replies Yes or No",
        licence="CC-BY-NC-4.0",
        reported=f"77.4 % balanced accuracy, {_AGGREFACT}",
    ),
    # Model card of ibm-granite/granite-guardian-3.3-8b: criterion "groundedness" without thinking;
    # "yes" means that the response is not grounded.
    ServedPreset(
        name="granite-guardian",
        title="Granite Guardian 3.3 8B",
        model="ibm-granite/granite-guardian-3.3-8b",
        template="granite_guardian",
        supported="no",
        unsupported="yes",
        max_tokens=20,
        envelope=("<score>", "</score>"),
        settings={"guardian_config": {"criteria_id": "groundedness"}, "think": False},
        takes_documents=True,
        shown=(
            "the claim as the assistant's message, `{premise}` as the only document, criterion "
            "`groundedness`; replies `<score> no </score>` if grounded"
        ),
        licence="Apache-2.0",
        reported=f"76.5 % balanced accuracy, {_AGGREFACT}",
    ),
)
SERVED_JUDGES: Mapping[str, ServedPreset] = {preset.name: preset for preset in _PRESETS}
"""The small judges behind a server, by name."""


_PresetT = TypeVar("_PresetT", bound="ServedPreset | SmallPreset")


class ThresholdJudge(LlmJudge, Generic[_PresetT]):
    """A model that was trained to check claims, one claim per call, in its own format.

    The scene graph is put into words as for the small judges in this process.

    Args:
        preset: The small judge.
        client: Calls the model.
        cache: Keeps replies between runs; without it, they are kept in memory only.
    """

    def __init__(
        self, preset: _PresetT, client: ChatClient, cache: VerdictStore | None = None
    ) -> None:
        super().__init__(preset.name, client, cache=cache)
        self._preset = preset
        self._above = MatcherSettings().small_above

    def with_threshold(self, above: float) -> Self:
        """Return the judge with another threshold; calls and connections are shared.

        Args:
            above: The probability above which a claim is supported.
        """
        other = copy(self)
        other._above = above
        return other

    def _small_identity(self, templates: Sequence[Template]) -> JudgeIdentity:
        """Return the identity with the wording of scene graphs and the threshold."""
        found = self.identity_with(templates)
        own = (("small_above", f"{self._above:g}"), ("small_wording", f"{WORDING}-all"))
        return replace(found, kind="small", parameters=(*found.parameters, *own))

    def _facts(self, item: JudgeRequestItem) -> list[Fact]:
        """Return the sentences of an item's references, as they may stand in a prompt."""
        query = ClaimQuery(
            claim=item.claims[0], references=item.reference_triplets, objects=item.reference_objects
        )
        facts = facts_of(query, characters=_MAX_SENTENCE)
        return [replace(fact, text=defused(fact.text)) for fact in facts]

    def _by_threshold(self, claim: ClaimParts, score: float) -> ClaimVerdict:
        return verdict_by(claim, score, self._above, self.name)


class ServedJudge(ThresholdJudge[ServedPreset]):
    """Asks a model that replies in one of two words.

    The score is the probability of the word that means "supported", among both words, if the server
    reports log-probabilities; the claim is then supported if it is above the threshold. Otherwise
    the word decides.

    Args:
        preset: The small judge.
        client: Calls the model, without a constraint: the model knows two replies only.
        cache: Keeps replies between runs; without it, they are kept in memory only.
    """

    @property
    def identity(self) -> JudgeIdentity:
        """Model, server, prompt, wording of scene graphs, threshold and sampling."""
        return self._small_identity([load_template(self._preset.template)])

    @property
    def measures_shares(self) -> bool:
        """No: without a constraint, a reply that is not a choice has no verdict."""
        return False

    def questions(self, item: JudgeRequestItem) -> list[Question]:
        """Return one call for each claim."""
        document = " ".join(fact.text for fact in self._facts(item))
        return [self._question(number, claim, document) for number, claim in enumerate(item.claims)]

    def _question(self, number: int, claim: ClaimParts, document: str) -> Question:
        preset = self._preset
        template = load_template(preset.template)
        extra: dict[str, object] = {}
        if preset.settings:
            extra["chat_template_kwargs"] = preset.settings
        if preset.takes_documents:
            extra["documents"] = [{"doc_id": "0", "text": document}]
        words = {"document": document, "claim": defused(hypothesis(claim))}
        return Question(
            template=template,
            messages=template.messages(words),
            claims=(number,),
            choices=(preset.supported, preset.unsupported),
            keyed=False,
            envelope=preset.envelope,
            extra=extra,
        )

    def request_of(self, question: Question) -> ChatRequest:
        """Return what is sent for a question: no constraint, because the words are the model's."""
        return ChatRequest(
            messages=question.messages, max_tokens=self._preset.max_tokens, extra=question.extra
        )

    def verdict_of(self, claim: ClaimParts, answer: ReadAnswer) -> ClaimVerdict:
        """Return the verdict of a reply on a claim."""
        if answer.reason == TIED:  # a threshold decides ties too
            return self._by_threshold(claim, 0.5)
        if not answer.choice:
            return unscored_claim(claim, answer.reason, answer.detail, self.name)
        supported = answer.choice == self._preset.supported
        if answer.margin is not None:
            score = logistic(answer.margin if supported else -answer.margin)
            return self._by_threshold(claim, score)
        verdict = Verdict.SUPPORTED if supported else Verdict.NOT_SUPPORTED
        return ClaimVerdict(triplet=claim, verdict=verdict, judge=self.name)


# Between premise and claim; in this process, the tokenizer knows it.
_EOS = {"minicheck-roberta": "</s>", "minicheck-deberta": "[SEP]"}
_BYTES_PER_TOKEN = 3
"""Fewer than English has, so that parts of a document are not too long."""
# MiniCheck's own default in tokens, for presets that state no chunk.
_CHUNK = 400


class PooledJudge(ThresholdJudge[SmallPreset]):
    """Asks a classifier behind vLLM's ``/classify`` or ``/score``, one claim per call.

    It reads what the same small judge reads in this process; a document longer than the authors'
    chunk is split between sentences by estimated lengths, and the best part counts.

    Args:
        preset: The small judge.
        client: Calls the model by ``classify`` or ``score``.
        cache: Keeps replies between runs; without it, they are kept in memory only.
    """

    @property
    def identity(self) -> JudgeIdentity:
        """Model, server, protocol, wording of scene graphs and threshold."""
        return self._small_identity([])

    def questions(self, item: JudgeRequestItem) -> list[Question]:
        """Return one call for each claim."""
        facts = self._facts(item)
        by_words = self._preset.unit == "words"
        units = {
            fact.text: len(fact.text.split())
            if by_words
            else -(-len(fact.text.encode()) // _BYTES_PER_TOKEN)
            for fact in facts
        }
        room = Room(tokens=sum(units.values()), chunk=self._preset.chunk or _CHUNK)
        documents = [premise.text for premise in packed(facts, units, units, room)] or [""]
        return [
            self._question(number, defused(hypothesis(claim)), documents)
            for number, claim in enumerate(item.claims)
        ]

    def _question(self, number: int, claim: str, documents: Sequence[str]) -> Question:
        template, eos = self._preset.template, _EOS.get(self.name, "")
        return Question(
            template=Template(name=self.name, version=WORDING, digest=self.name, parts=()),
            messages=[{"role": "user", "content": claim}],
            parts=tuple(
                template.format(premise=document, claim=claim, eos=eos) if template else document
                for document in documents
            ),
            claims=(number,),
            choices=SENTENCE_CHOICES,
            keyed=False,
        )

    def request_of(self, question: Question) -> ChatRequest:
        """Return what is sent for a question."""
        return ChatRequest(
            messages=question.messages,
            max_tokens=0,
            choices=question.choices,
            api=self.client.settings.api,
            parts=question.parts,
        )

    def verdict_of(self, claim: ClaimParts, answer: ReadAnswer) -> ClaimVerdict:
        """Return the verdict of a probability on a claim."""
        if not answer.choice or answer.probabilities is None:
            return unscored_claim(claim, answer.reason, answer.detail, self.name)
        return self._by_threshold(claim, answer.probabilities[0])


class MatcherJudge:
    """Hands all claims of all items to a matcher in one piece, so that it can batch them.

    Args:
        matcher: The matcher.
        name: Its name in evidence.
    """

    def __init__(self, matcher: ClaimMatcher, name: str = "matcher") -> None:
        self.name = name
        self.matcher = matcher

    @property
    def identity(self) -> JudgeIdentity:
        """The matcher's label and settings."""
        return JudgeIdentity(
            kind="matcher",
            model=self.matcher.label,
            parameters=tuple(sorted(self.matcher.settings.items())),
        )

    async def judge(
        self,
        items: Sequence[JudgeRequestItem],
        *,
        has_fallback: bool = False,  # noqa: ARG002  # a matcher does not fail for a while
    ) -> list[JudgedItem]:
        """Return verdicts on every claim of every item, in order."""
        queries = [
            ClaimQuery(
                claim=claim, references=item.reference_triplets, objects=item.reference_objects
            )
            for item in items
            for claim in item.claims
        ]
        verdicts = iter(await self.matcher.judge(queries) if queries else [])
        judged = [
            JudgedItem.by(self.name, [next(verdicts) for _ in item.claims], Usage())
            for item in items
        ]
        count_verdicts(self.name, sum(one.asked[0].answered for one in judged))
        return judged
