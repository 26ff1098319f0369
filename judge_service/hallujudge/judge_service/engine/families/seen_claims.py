"""Seen claims: response -> claims -> verdicts of a judge that sees the picture."""

from __future__ import annotations

from functools import partial

from msgspec import structs

from hallujudge.metrics import ItemResult
from hallujudge.metrics.framework.claims import ClaimParts, Triplet
from hallujudge.metrics.framework.metric import JudgeOption
from hallujudge.metrics.framework.results import Picture, ScoredItem, ShownPicture, UnscoredReason
from hallujudge.metrics.seen_claims import (
    MOMENT,
    SeenClaim,
    SeenClaimsEvidence,
    SeenClaimsItem,
    SeenClaimsMetric,
    ShownLook,
)
from hallujudge.metrics.seen_claims.claim_words import kind_of, moment_of

from ...extractors.rules.rule_extractors import lemma_key, shared_analyser
from ...judges import JudgedItem, JudgeRequestItem, payer_of
from ...judges.several_judges import Panel, Router
from ..claims_pipeline import (
    GIVEN,
    SEEING,
    ClaimsPipeline,
    GivenJudge,
    picture_problem,
    placed_verdicts,
    seeing_judge,
    seeing_panel,
)
from ..extraction import CLAIM_OPTIONS, ClaimExtractor, ExtractedClaims, extract_claims
from ..judge_options import ESCALATION_OPTIONS, PANEL_OPTIONS, escalation_of, panel_of
from ..judge_quality import CARD_OPTION, check_probabilities
from ..pipelines import scored_result, unscored_result
from ..registry import MetricEntry, Trial
from ..resources import Resources
from ..responses import Problem, ResponseCheck
from ..spec import ScoreSpec

# Servers take few pictures in a call; the largest objects are the likeliest to be meant.
_MOST_CROPS = 4
_NO_PICTURE = (
    "no picture came with the response; name the folder of the pictures with "
    "InputOptions(own=dict(images=…))"
)
_NO_VERDICTS = (
    "the response came without claims and verdicts; set the option judge to llm, a vision model "
    "that sees the pictures"
)
_NOTE = (
    "Judges that see tend to support what is likely. Compare models with this one; quote scores "
    "only after hallujudge calibrate has corrected them by labels."
)


def claimed_moment(
    item: SeenClaimsItem, claim: ClaimParts, span: tuple[int, int] | None
) -> str | None:
    """Return the moment that a claim's text names, empty without any; None of a picture.

    Args:
        item: The response.
        claim: The claim, whose own words are read where it has no place in the response.
        span: Its place in the response.
    """
    if item.seconds is None:
        return None
    if span is None or item.response is None:
        found = moment_of(" ".join(claim), None, item.seconds)
    else:
        found = moment_of(item.response, span, item.seconds)
    return found.label if found else ""


def shown_for_claims(
    item: SeenClaimsItem, claims: ExtractedClaims
) -> tuple[tuple[Picture, ...], ...]:
    """Return what is shown for each claim; nothing if all are shown the same."""
    if not item.looks:
        return ()
    placed = [(claim, span) for claim, span, _ in claims.placed()]
    return tuple(_shown(item, claim, span) for claim, span in placed)


def _shown(
    item: SeenClaimsItem, claim: ClaimParts, span: tuple[int, int] | None
) -> tuple[Picture, ...]:
    moment = claimed_moment(item, claim, span)
    whole, crops = item.pictures, list[Picture]()
    for look in item.looks:
        if look.kind == MOMENT and look.of == moment:
            whole = look.pictures
        elif look.kind != MOMENT and _names(claim, look.of):
            crops += look.pictures
    crops.sort(key=lambda picture: -picture.width * picture.height)
    return (*whole, *crops[:_MOST_CROPS])


def _names(claim: ClaimParts, name: str) -> bool:
    """Return whether a claim has the words of a name beside each other, in any of their forms."""
    wanted = _words(name)
    return any(
        said[at : at + len(wanted)] == wanted
        for said in map(_words, claim)
        for at in range(len(said) - len(wanted) + 1)
    )


def _words(text: str) -> tuple[str, ...]:
    found = lemma_key(text)
    return (found,) if isinstance(found, str) else found


class SeenClaimsPipeline(ClaimsPipeline[SeenClaimsItem, SeenClaimsMetric]):
    """Has the claims of responses judged by a vision model that is shown their pictures."""

    item_type = SeenClaimsItem

    def given(self, item: SeenClaimsItem) -> tuple[ClaimParts, ...] | None:
        """Return the claims that came with a response; None if they are to be extracted."""
        return None if item.claims is None else tuple(each.claim for each in item.claims)

    def reference_problem(self, item: SeenClaimsItem) -> Problem | None:
        """Return why a judge could see nothing, or None."""
        if self.judge.name == GIVEN:
            missing = UnscoredReason.VERDICT_NULL, _NO_VERDICTS
            return missing if item.claims is None else None
        if not item.pictures:
            return UnscoredReason.REFERENCE_MISSING, item.problem or _NO_PICTURE
        return picture_problem(item.pictures)

    def request(self, item: SeenClaimsItem, claims: ExtractedClaims) -> JudgeRequestItem:
        """Return the claims with the pictures that they are about, or their own verdicts."""
        shown = shown_for_claims(item, claims)
        # What was shown is part of the name: about other pictures the same claims are another call.
        hashes = [[picture.sha256 for picture in each] for each in (item.pictures, *shown)]
        return JudgeRequestItem(
            id=item.id,
            payer=payer_of(item.id, (claims.claims, hashes)),
            claims=claims.claims,
            pictures=item.pictures,
            shown=shown,
            given=tuple(each.verdict for each in item.claims or ()),
        )

    def result(
        self, item: SeenClaimsItem, claims: ExtractedClaims, judged: JudgedItem
    ) -> ItemResult:
        """Return the result of a response whose claims were judged."""
        verdicts = tuple(
            structs.replace(
                verdict,
                kind=kind_of(verdict.triplet),
                moment=claimed_moment(item, verdict.triplet, verdict.span),
            )
            for verdict in placed_verdicts(item, claims, judged.verdicts)
        )
        evidence = SeenClaimsEvidence(
            claims=verdicts,
            pictures=tuple(ShownPicture(name=p.name, sha256=p.sha256) for p in item.pictures),
            looks=tuple(
                ShownLook(kind=each.kind, of=each.of, sha256=each.hashes) for each in item.looks
            ),
            extractor="" if item.claims is not None else self.extractor.label,
            judging=judged.judging(),
            invalid=claims.invalid,
        )
        if (reason := self.metric.unscored_reason(verdicts)) is not None:
            return unscored_result(item, *reason, evidence)
        made = self.metric.score_response(verdicts, rejected=len(claims.invalid))
        return scored_result(item, ScoredItem(made.statistics, made.scores, evidence))


def _open(spec: ScoreSpec, resources: Resources) -> SeenClaimsPipeline:
    options = spec.options
    # Its lexicon takes a quarter of a second to load, which the event loop must not wait for.
    shared_analyser()
    responses = ResponseCheck(options, reads_english=options.get("extractor") != "llm")
    factory, rule = resources.judges, panel_of(spec)
    name = options.get("judge", GIVEN)
    together = options.get("together") == "yes"
    judge: Router | Panel
    if rule is not None:
        judge = seeing_panel(factory, rule, together=together)
    elif name == GIVEN:
        judge = Router([GivenJudge()])
    else:
        if options.get("soft") == "yes":
            check_probabilities(factory, name, others="")
        judge = seeing_judge(factory, name, together=together, escalation=escalation_of(spec))
    extractor = ClaimExtractor(options, resources, counts=True)
    notes = () if judge.name == GIVEN else (_NOTE,)
    return SeenClaimsPipeline.of(spec, ENTRY, judge, extractor, responses, notes)


ENTRY = MetricEntry(
    metric=SeenClaimsMetric,
    item_type=SeenClaimsItem,
    trial=Trial(
        item=SeenClaimsItem(
            id="1",
            response="A dog is on the grass.",
            claims=(SeenClaim(claim=Triplet("dog", "on", "grass"), verdict="supported"),),
        ),
        score="claim_hallucination",
        value=0.0,
    ),
    engine_options=(
        *CLAIM_OPTIONS,
        JudgeOption(
            name="judge",
            choices=SEEING,
            meaning="Judge of the claims.",
            details="given: verdicts of the file; llm: a vision language model that is shown the "
            "picture; router: the language models of judge_order.",
        ),
        JudgeOption(
            name="together",
            choices=("no", "yes"),
            meaning="All claims about a picture in one call.",
            details="Of responses that follow each other. The picture is then sent once; without "
            "it, once for each claim, which a server with a prefix cache encodes once.",
        ),
        *ESCALATION_OPTIONS,
        *PANEL_OPTIONS,
        CARD_OPTION,
    ),
    extract=partial(extract_claims, counts=True),
    judges=True,
    reads_english=True,
    open=_open,
)
ENTRIES = (ENTRY,)
