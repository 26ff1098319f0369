"""Tri-HE: answer -> claims -> verdicts against the image's scene graph."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from msgspec import structs

from hallujudge.metrics import ItemResult
from hallujudge.metrics.framework.claims import ClaimParts, ClaimVerdict, Triplet
from hallujudge.metrics.framework.metric import SEES, JudgeOption
from hallujudge.metrics.framework.results import ScoredItem, UnscoredReason
from hallujudge.metrics.tri_he import TriHeEvidence, TriHeItem, TriHeMetric, checked_against_all
from hallujudge.metrics.tri_he.claim_analyses import Scene, is_prediction_error

from ...errors import InvalidInputError
from ...extractors.rules.rule_extractors import lemma_key, shared_analyser
from ...judges import JudgedItem, JudgeRequestItem, payer_of
from ...judges.seeing_judge import SeeingJudge
from ...judges.several_judges import PANEL, Panel, Router
from ...matchers import BACKENDS, SMALL_JUDGES, MatcherSettings
from ..claims_pipeline import ClaimsPipeline, picture_problem, placed_verdicts, seeing_judge
from ..extraction import (
    CLAIM_OPTIONS,
    EXTRACTORS,
    ClaimExtractor,
    ExtractedClaims,
    extract_claims,
)
from ..judge_options import (
    ESCALATION_OPTIONS,
    JUDGE_NAMES,
    PANEL_OPTIONS,
    SHARE_OPTION,
    escalation_of,
    judge_names,
    offered_judges,
    others_judges,
    panel_of,
    share_rule_of,
)
from ..judge_quality import (
    CARD_OPTION,
    agreement_note,
    best_measured,
    check_probabilities,
)
from ..pipelines import scored_result, unscored_result
from ..registry import MetricEntry, Trial
from ..resources import Resources
from ..responses import Problem, ResponseCheck
from ..spec import ScoreSpec

_DEFAULTS = MatcherSettings()
_NO_PICTURE = (
    "no picture of this image came with the answer; name the folder of the images with "
    "InputOptions(own=dict(images=…))"
)
_THRESHOLDS = {
    "keep_above": "Cosine above which reference triplets are kept.",
    "support_above": "Cosine above which a claim is supported.",
    "small_above": "Small judges: probability above which a claim is supported.",
}


class TriHePipeline(ClaimsPipeline[TriHeItem, TriHeMetric]):
    """Compares the claims of answers with the scene graphs of their images."""

    item_type = TriHeItem

    def given(self, item: TriHeItem) -> tuple[ClaimParts, ...] | None:
        """Return the claims that came with an answer; None if they are to be extracted."""
        return item.claims

    @property
    def sees(self) -> bool:
        """Whether claims are compared with the image, and not with its scene graph."""
        return all(isinstance(judge, SeeingJudge) for judge in self.judge.judges)

    def reference_problem(self, item: TriHeItem) -> Problem | None:
        """Return why there is no scene graph, or no image, to compare claims with, or None."""
        if self.sees and not item.pictures:
            return UnscoredReason.REFERENCE_MISSING, _NO_PICTURE
        if self.sees and (problem := picture_problem(item.pictures)):
            return problem
        if not item.reference_triplets:
            known = "no scene graph for this image"
            return (
                UnscoredReason.REFERENCE_MISSING,
                known if item.reference_triplets is None else f"{known}: empty",
            )
        return None

    def request(self, item: TriHeItem, claims: ExtractedClaims) -> JudgeRequestItem:
        """Return the claims with the scene graph of their image."""
        assert item.reference_triplets is not None, "items without are unscored by now"
        return JudgeRequestItem(
            id=item.id,
            payer=payer_of(item.id, claims.claims),
            claims=claims.claims,
            reference_triplets=item.reference_triplets,
            reference_objects=item.reference_objects,
            pictures=item.pictures if self.sees else (),
            measuring=self.judge.measuring,
        )

    def unscored(self, item: TriHeItem, reason: UnscoredReason, detail: str) -> ItemResult:
        """Return an unscored item. Its human scores are kept, so that agreement can be computed."""
        scores = item.human_scores
        known = TriHeEvidence(claims=(), human_scores=scores) if scores else None
        return unscored_result(item, reason, detail, known)

    def result(self, item: TriHeItem, claims: ExtractedClaims, judged: JudgedItem) -> ItemResult:
        """Return the result of an answer whose claims were judged."""
        verdicts = _with_places(item, claims, judged.verdicts)
        # A judge that reads the whole graph would otherwise repeat it in each claim.
        whole = not self.sees and any(map(checked_against_all, verdicts))
        evidence = TriHeEvidence(
            claims=verdicts,
            scene_graph=(item.reference_triplets or ()) if whole else (),
            extractor="" if item.claims is not None else self.extractor.label,
            judging=judged.judging(),
            human_scores=item.human_scores,
            invalid=claims.invalid,
        )
        if (reason := self.metric.unscored_reason(verdicts)) is not None:
            return unscored_result(item, *reason, evidence)
        result = self.metric.score_answer(verdicts, rejected=len(claims.invalid))
        return scored_result(item, ScoredItem(result.statistics, result.scores, evidence))


def _with_places(
    item: TriHeItem, claims: ExtractedClaims, verdicts: Sequence[ClaimVerdict]
) -> tuple[ClaimVerdict, ...]:
    """Return the verdicts with what the item adds: positions and kinds of error."""
    graph = item.reference_triplets or ()
    scene = Scene.of(graph, item.reference_objects, canonical=lemma_key)
    return tuple(
        structs.replace(verdict, prediction_error=is_prediction_error(verdict, scene))
        for verdict in placed_verdicts(item, claims, verdicts)
    )


def _matcher_settings(options: Mapping[str, str]) -> MatcherSettings:
    """Return how the matcher compares; thresholds are those of the paper (section 3.3)."""

    def number(name: str) -> float:
        try:
            return float(options.get(name, getattr(_DEFAULTS, name)))
        except ValueError as err:
            raise InvalidInputError(
                f"the option {name} is {options[name]!r}; give a number"
            ) from err

    thresholds = {name: number(name) for name in _THRESHOLDS}
    try:
        return MatcherSettings(
            model=options.get("matcher_model", _DEFAULTS.model),
            small_model=options.get("small_model", _DEFAULTS.small_model),
            backend=options.get("backend", _DEFAULTS.backend),
            device=options.get("device", _DEFAULTS.device),
            **thresholds,  # type: ignore[arg-type]  # by name
        )
    # What the matcher calls settings are options of the spec.
    except InvalidInputError as err:
        raise InvalidInputError(
            "; ".join(f"the option {found.description}" for found in err.violations),
            violations=tuple(
                replace(found, field=f"spec.options[{found.field!r}]") for found in err.violations
            ),
        ) from err


def _with_measured(
    settings: MatcherSettings, options: Mapping[str, str], extractor: str, weights: str
) -> MatcherSettings:
    """Return the settings with the thresholds that agree best with known data, if measured.

    Thresholds that the options set stay.
    """
    measured = best_measured(extractor, settings.protocol, weights)
    thresholds = {
        name: getattr(measured, name)
        for name in _THRESHOLDS
        if name not in options and hasattr(measured, name)
    }
    return structs.replace(settings, **thresholds)


@contextmanager
def _offered(judge: str, options: Mapping[str, str], resources: Resources) -> Iterator[None]:
    """Open models in this context. Callers of a server may name what it offers, nothing else.

    Raises:
        NotFoundError: A model or the device is not offered, or a model is not on this machine.
    """
    if (offers := resources.offers) is None:
        yield
        return
    for option, offered in (
        ("matcher_model", offers.models),
        ("small_model", offers.models),
        ("device", offers.devices),
    ):
        offers.check(option, options.get(option, ""), offered)
    # A judge of another package runs its own code, which callers of a server may not start.
    if judge in others_judges() or (judge in SMALL_JUDGES and not options.get("small_model")):
        offers.check("judge", judge, offered_judges(offers.models, resources.judges.small_models))
    with offers.opening("matcher_model", offers.models):
        yield


def _open(spec: ScoreSpec, resources: Resources) -> TriHePipeline:
    options = spec.options
    # Its lexicon takes a quarter of a second to load, which the event loop must not wait for.
    shared_analyser()
    # A language model reads any language; rules and sentence encoders read English.
    responses = ResponseCheck(options, reads_english=options.get("extractor") != "llm")
    factory = resources.judges
    judge_name = options.get("judge", JUDGE_NAMES[0])
    extractor_name = options.get("extractor", EXTRACTORS[0])
    settings = _matcher_settings(options)
    rule = panel_of(spec)
    if options.get("soft") == "yes" and rule is None:
        check_probabilities(factory, "llm" if judge_name == SEES else judge_name)
    judge_names = [judge_name] if rule is None else rule.members
    with ExitStack() as stack:
        for name in judge_names:
            stack.enter_context(_offered(name, options, resources))
        has_matcher = rule is None and judge_name != SEES
        weights = factory.matcher_weights(judge_name, settings) if has_matcher else ""
        if spec.variant == "corrected":
            settings = _with_measured(settings, options, extractor_name, weights)
        judge: Router | Panel
        if rule is not None:
            judge = factory.panel(rule, settings, share_rule_of(spec))
        elif judge_name == SEES:
            escalation = escalation_of(spec)
            judge = seeing_judge(factory, "llm", together=False, escalation=escalation)
        else:
            judge = factory.judge(judge_name, settings, escalation_of(spec), share_rule_of(spec))
    extractor = ClaimExtractor(options, resources)
    asked = PANEL if rule else judge_name
    notes = (agreement_note(extractor_name, asked, settings, weights),)
    return TriHePipeline.of(spec, ENTRY, judge, extractor, responses, notes)


ENTRY = MetricEntry(
    metric=TriHeMetric,
    item_type=TriHeItem,
    trial=Trial(
        item=TriHeItem(
            id="1",
            response="A dog is on the grass.",
            reference_triplets=(Triplet("dog", "on", "grass"),),
        ),
        score="hallu_q",
        value=0.0,
    ),
    engine_options=(
        *CLAIM_OPTIONS,
        JudgeOption(
            name="judge",
            default=JUDGE_NAMES[0],
            choices=(*judge_names(), SEES),
            meaning="Judge of the claims.",
            details="matcher: embeddings, the paper's NLI judge; llm: a language model; router: "
            "all of judge_order; sees: a vision model that is shown the image; the others, nli "
            "too: small judges.",
        ),
        JudgeOption(
            name="matcher_model",
            default=_DEFAULTS.model,
            meaning="Matcher's encoder: minilm, mpnet, a model id or a folder.",
        ),
        JudgeOption(
            name="small_model",
            default=_DEFAULTS.small_model,
            meaning="Small judge's model: a model id or a folder.",
            details="Empty: the authors' weights, or those of the setting small.models.",
        ),
        JudgeOption(
            name="backend",
            default=_DEFAULTS.backend,
            choices=BACKENDS,
            meaning="Library that runs the encoder.",
        ),
        JudgeOption(
            name="device",
            default=_DEFAULTS.device,
            meaning="Torch device of the encoder, such as cuda.",
        ),
        *ESCALATION_OPTIONS,
        SHARE_OPTION,
        *PANEL_OPTIONS,
        CARD_OPTION,
        *(
            JudgeOption(
                name=name,
                default=str(getattr(_DEFAULTS, name)),
                meaning=meaning,
                details=""
                if name == "small_above"
                else "The variant corrected has the best measured threshold.",
                number=True,
            )
            for name, meaning in _THRESHOLDS.items()
        ),
    ),
    extract=extract_claims,
    judges=True,
    reads_english=True,
    open=_open,
)
ENTRIES = (ENTRY,)
