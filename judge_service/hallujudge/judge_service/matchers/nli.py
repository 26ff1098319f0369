"""The entailment matcher: checks whether retained references, as sentences, entail a claim."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from hallujudge.metrics.framework.claims import ClaimVerdict, Verdict
from hallujudge.metrics.framework.triplets import Triplet

from .cosine import DIGITS, retained_of, unscored
from .parts import PartRule
from .rounds import in_rounds
from .texts import plain, reference_sentence
from .values import ClaimQuery, EntailmentModel, MatcherSettings
from .vectors import VectorStore

__all__ = ["NliMatcher", "Premise", "hypothesis", "premises"]

# Between rounds a run can be cancelled; a round takes seconds on a CPU.
_CLAIMS_PER_ROUND = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class Premise:
    """A text that may entail a claim."""

    text: str
    """The references as sentences."""
    made_of: tuple[int, ...]
    """The positions of these references."""


def hypothesis(claim: Sequence[str]) -> str:
    """Return a claim as a sentence: its parts joined by blanks, with a final full stop."""
    text = plain(" ".join(claim)).strip()
    return text if text.endswith((".", "!", "?")) else f"{text}."


def premises(sentences: Mapping[int, str], lengths: Mapping[int, int], room: int) -> list[Premise]:
    """Return premises of consecutive sentences, each as long as possible.

    Args:
        sentences: Sentences by the position of their reference, in order.
        lengths: The number of tokens of each sentence, by position.
        room: The maximum number of tokens of a premise. A longer sentence is a premise by itself.
    """
    packed: list[list[int]] = []
    used = 0
    for position in sentences:
        if not packed or used + lengths[position] > room:
            packed.append([])
            used = 0
        packed[-1].append(position)
        used += lengths[position]
    return [
        Premise(text=" ".join(sentences[position] for position in made_of), made_of=tuple(made_of))
        for made_of in packed
    ]


class NliMatcher:
    """Protocol ``nli``: an entailment cross-encoder over the references that a claim retains.

    1. References are retained by the cosine of sentence vectors, as in the paper: those above
       ``keep_above``, or else the ``top`` nearest.
    2. The retained references, as sentences, are the premise. The claim is the hypothesis.
    3. The claim is supported if the probability of entailment is above ``entail_above``.

    A premise that is too long for the model is split between sentences, and the claim's score is
    the highest one. The model cannot combine sentences of different pieces. A claim is unscored if
    it does not fit together with every single sentence.

    The paper calls its judge NLI but compares vectors, so that this protocol is not from the paper.
    :class:`PartRule` names the wrong parts, as with ``published``.

    Args:
        settings: The thresholds and the rule for parts.
        store: Vectors by text, for retaining references.
        retriever: The sentence encoder and its backend, for the signature.
        model: The cross-encoder.
    """

    def __init__(
        self,
        settings: MatcherSettings,
        store: VectorStore,
        retriever: str,
        model: EntailmentModel,
    ) -> None:
        self.name = f"matcher:nli/{model.label.partition('@')[0]}"
        self.label = "/".join(
            [
                f"nli/{model.label}",
                f"retain-{retriever}",
                f"keep>{settings.keep_above:g}",
                f"top{settings.top}",
                f"entail>{settings.entail_above:g}",
                f"parts-{settings.parts}",
            ]
        )
        self._settings = settings
        self._store = store
        self._retriever = retriever
        self._model = model
        self._rule = PartRule(store, settings.keep_above) if settings.parts == "objects" else None

    @property
    def settings(self) -> Mapping[str, str]:
        """The models and thresholds."""
        return {
            "matcher_protocol": "nli",
            "matcher_nli_model": self._model.label,
            "matcher_model": self._retriever,
            "matcher_keep_above": f"{self._settings.keep_above:g}",
            "matcher_top": str(self._settings.top),
            "matcher_entail_above": f"{self._settings.entail_above:g}",
            "matcher_parts": self._settings.parts,
        }

    async def judge(self, claims: Sequence[ClaimQuery]) -> list[ClaimVerdict]:
        """Return one verdict for each claim, in order.

        The work runs in a thread, in rounds between which the call can be cancelled.

        Args:
            claims: Claims of any number of images.
        """
        return await in_rounds(self.judge_now, claims, _CLAIMS_PER_ROUND)

    def judge_now(self, claims: Sequence[ClaimQuery]) -> list[ClaimVerdict]:
        """Return the same verdicts, computed in the calling thread."""
        verdicts = [
            unscored(claim, self.name)
            or ClaimVerdict(
                triplet=claim.claim, verdict=Verdict.UNSCORED, judge=self.name, span=claim.span
            )
            for claim in claims
        ]
        undecided = [index for index, verdict in enumerate(verdicts) if not verdict.reason]
        found = self._entailed([claims[index] for index in undecided])
        for index, (premise, score, problem) in zip(undecided, found, strict=True):
            verdicts[index] = self._verdict(claims[index], verdicts[index], premise, score, problem)
        return self._rule.with_parts(claims, verdicts) if self._rule is not None else verdicts

    def _entailed(self, queries: Sequence[ClaimQuery]) -> list[tuple[Premise | None, float, str]]:
        """Return, for each claim, its best premise and score, or the problem."""
        candidates, problems = self._candidates(queries)
        pairs = [
            (premise.text, hypothesis(query.claim))
            for query, found in zip(queries, candidates, strict=True)
            for premise in found
        ]
        distinct = list(dict.fromkeys(pairs))
        scores = dict(zip(distinct, self._model.entailment(distinct), strict=True))
        out: list[tuple[Premise | None, float, str]] = []
        for query, found, problem in zip(queries, candidates, problems, strict=True):
            text = hypothesis(query.claim)
            best = max(found, key=lambda premise: scores[premise.text, text], default=None)
            out.append((best, scores[best.text, text] if best else 0.0, problem))
        return out

    def _candidates(self, queries: Sequence[ClaimQuery]) -> tuple[list[list[Premise]], list[str]]:
        retained = retained_of(queries, self._store, self._settings)
        chosen = [
            {index: (query.references or ())[index] for index in sorted(kept.kept or kept.top)}
            for query, kept in zip(queries, retained, strict=True)
        ]
        tokens = self._tokens(queries, chosen)
        candidates, problems = [], []
        for query, references in zip(queries, chosen, strict=True):
            sentences = {index: reference_sentence(t) for index, t in references.items()}
            room = self._model.room - tokens[hypothesis(query.claim)]
            lengths = {index: tokens[text] for index, text in sentences.items()}
            longest = max(lengths.values(), default=0)
            problem = f"claim and reference have {self._model.room - room + longest} tokens"
            fits = longest <= room
            candidates.append(self._packed(sentences, lengths, room) if fits else [])
            problems.append("" if fits else problem)
        return candidates, problems

    def _packed(
        self, sentences: Mapping[int, str], lengths: Mapping[int, int], room: int
    ) -> list[Premise]:
        packed = premises(sentences, lengths, room)
        if len(packed) > 1 or sum(lengths.values()) + len(lengths) > room:
            # With some vocabularies, joined sentences have more tokens than they have separately.
            found = self._model.lengths([premise.text for premise in packed])
            if max(found) > room:
                return premises(sentences, lengths, 0)
        return packed

    def _tokens(
        self, queries: Sequence[ClaimQuery], chosen: Sequence[Mapping[int, Triplet]]
    ) -> dict[str, int]:
        texts = [hypothesis(query.claim) for query in queries]
        texts += [reference_sentence(t) for found in chosen for t in found.values()]
        distinct = list(dict.fromkeys(texts))
        return dict(zip(distinct, self._model.lengths(distinct), strict=True))

    def _verdict(
        self,
        query: ClaimQuery,
        blank: ClaimVerdict,
        premise: Premise | None,
        score: float,
        problem: str,
    ) -> ClaimVerdict:
        if premise is None:
            detail = f"{problem}; the model reads {self._model.room}"
            return replace(blank, reason="CLAIM_TOO_LONG", detail=detail)
        supported = score > self._settings.entail_above
        references = query.references or ()
        return replace(
            blank,
            verdict=Verdict.SUPPORTED if supported else Verdict.NOT_SUPPORTED,
            score=round(score, DIGITS),
            margin=round(score - self._settings.entail_above, DIGITS),
            references=tuple(references[index] for index in premise.made_of),
        )
