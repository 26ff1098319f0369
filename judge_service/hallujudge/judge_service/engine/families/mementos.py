"""Mementos: descriptions -> keywords -> matches by synonym graphs."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from hashlib import sha256

from msgspec import Struct, structs
from msgspec.structs import replace

from hallujudge.metrics import Item, ItemResult
from hallujudge.metrics.errors import choose_from
from hallujudge.metrics.framework.metric import OptionDefinition
from hallujudge.metrics.framework.results import ScoredItem, UnscoredReason
from hallujudge.metrics.mementos import (
    KeywordEvidence,
    MatchedKeyword,
    MementosEvidence,
    MementosItem,
    MementosMetric,
    NearKeyword,
)
from hallujudge.synonym_graphs import (
    KeywordMatch,
    KeywordMatcher,
    KeywordVariant,
    SynonymGraph,
    compile_keywords,
    maps_references,
)

from ...errors import InvalidInputError
from ...extractors import (
    SYNONYMS,
    DescriptionPair,
    Keyword,
    Keywords,
    PairKeywords,
)
from ...extractors.llm_extractor_base import Extraction
from ...llm.prompt_templates import preset_option
from ...threads import map_cpu, of_each
from ..extraction import (
    GIVEN,
    PairExtractor,
    extract_prompt_option,
    no_claims,
)
from ..found_claims import FoundClaim
from ..judge_quality import keywords_note
from ..pipelines import checked_items, scored_result, unscored_result
from ..registry import MetricEntry, Trial
from ..resources import Resources
from ..responses import MAX_RESPONSE_CHARS, Problem, ResponseCheck
from ..spec import GraphSource, ScoreSpec, ShippedGraph

DOMAINS = ("daily_life", "robotics", "comics")
"""The paper's domains, each with its own shipped graphs."""
GENERAL = "general"
"""The domain of items without a domain."""
EXTRACTORS = ("rules", "llm", GIVEN)
"""The names of extractors for descriptions without keywords."""

_ROLES = ("objects", "behaviors")
_MATCHER = "keywords-1"
_BOTH, _RESPONSES = "both", "responses"
_MAPPED_NOTE = (
    "published: the human keywords are mapped to roots too, as the model's are, because they need "
    "not be roots of these graphs; in the released graphs they are, and only the model's are mapped"
)
# Far above every annotation of the benchmark: more is a text that was not taken apart.
_MAX_KEYWORD_CHARS = 200
_MAX_KEYWORDS = 2_000


class _Graphs(Struct, frozen=True, kw_only=True):
    """The graphs of one role by domain."""

    role: str
    """``objects`` or ``behaviors``."""
    by_domain: Mapping[str, SynonymGraph]
    """Domain -> its graph; the empty domain is for all domains without a graph."""

    @property
    def label(self) -> str:
        """The label of the only graph, or a hash of all labels."""
        if set(self.by_domain) == {""}:
            return self.by_domain[""].label
        labels = [f"{domain}={graph.label}" for domain, graph in sorted(self.by_domain.items())]
        return f"{len(labels)}-domains@{sha256(' '.join(labels).encode()).hexdigest()[:8]}"

    def cover(self, domain: str) -> bool:
        """Return whether there is a graph for a domain."""
        return "" in self.by_domain or domain in self.by_domain

    def lacking(self, domain: str) -> str:
        """Return the message for a domain without a graph."""
        return (
            f"there are no {self.role} graphs for domain {domain!r}; "
            f"{choose_from(domain, sorted(self.by_domain))}. Give "
            "your own graphs, or omit the domain to use the general ones"
        )

    def settings(self) -> dict[str, str]:
        """Return every graph with its content hash."""
        return {
            f"graph.{self.role}{'.' + domain if domain else ''}": f"{graph.label} {graph.digest}"
            for domain, graph in self.by_domain.items()
        }

    def matchers(self, variant: KeywordVariant) -> dict[str, KeywordMatcher]:
        """Return what matches keywords in each domain."""
        # Two predictions in a row are read together for behaviours only, as the release does.
        pairs = self.role == "behaviors"
        return {
            domain: compile_keywords(graph, variant=variant, pairs=pairs)
            for domain, graph in self.by_domain.items()
        }


class MementosPipeline:
    """Extracts keywords from descriptions, and matches them by their domain's graphs.

    Args:
        metric: What is counted, and how.
        graphs: Role -> its graphs.
        source: Extracts keywords from descriptions.
        responses: Recognises missing descriptions.
    """

    def __init__(
        self,
        metric: MementosMetric,
        graphs: Mapping[str, _Graphs],
        source: PairExtractor,
        responses: ResponseCheck,
    ) -> None:
        self.metric = metric
        self._responses = responses
        self._graphs = graphs
        self._source = source
        variant = _variant(metric.variant)
        self._matchers = {role: each.matchers(variant) for role, each in graphs.items()}
        mapped = _BOTH in _mapped_sides(variant, graphs)
        departs = (_MAPPED_NOTE,) if variant == "published" and mapped else ()
        self.notes = (keywords_note(source.name), *departs)

    @property
    def settings(self) -> Mapping[str, str]:
        """The graphs with their content hashes, and the extractor."""
        objects, behaviors = (each.settings() for each in self._graphs.values())
        return {
            **objects,
            **behaviors,
            "extractor": self._source.label,
            "average": self.metric.average,
            **self._responses.settings(),
        }

    def unscored(self, item: MementosItem, reason: UnscoredReason, detail: str) -> ItemResult:
        """Return the result of a description that can't be scored."""
        return unscored_result(self._placed(item), reason, detail)

    def unanswered(self, item: MementosItem, places: Collection[int]) -> MementosItem:  # noqa: ARG002 - it has one response
        """Return an item without the keywords of a description that was cut off."""
        return structs.replace(item, predicted_objects=None, predicted_behaviors=None)

    def _placed(self, item: MementosItem) -> MementosItem:
        """Return the item with its domain as a field, by which results are grouped."""
        domain = item.domain or self.metric.domain or GENERAL
        if item.fields.get("domain") == domain:
            return item
        return structs.replace(item, fields={**item.fields, "domain": domain})

    async def evaluate(self, items: Sequence[Item]) -> list[ItemResult]:
        """Return one result for each description, in order."""
        sequences = [self._placed(item) for item in checked_items(items, MementosItem)]
        problems = [self._problem(item) for item in sequences]
        # Equal pairs are extracted once.
        needed = {
            pair: None
            for item, problem in zip(sequences, problems, strict=True)
            if problem is None and (pair := _descriptions(item)) is not None
        }
        found = dict(zip(needed, await self._source.extract(list(needed)), strict=True))

        def result(index: int) -> ItemResult:
            item, problem = sequences[index], problems[index]
            return unscored_result(item, *problem) if problem else self._score(item, found)

        return await map_cpu(
            of_each(result),
            range(len(sequences)),
            # A character of a keyword takes about ten times as long as one of a caption.
            chars=lambda index: (
                10 * sum(len(w) for words in _lists(sequences[index]) for w in words)
            ),
        )

    def _problem(self, item: MementosItem) -> Problem | None:
        """Return why an item cannot be scored, before the extractor runs."""
        domain = item.fields["domain"]
        for graphs in self._graphs.values():
            if not graphs.cover(domain):
                return UnscoredReason.DOMAIN_UNKNOWN, graphs.lacking(domain)
        if problem := _text_problem(item, self._responses, given=self._source.name == GIVEN):
            return problem
        return _keyword_problem(item)

    def _score(
        self, item: MementosItem, found: Mapping[DescriptionPair, Extraction[PairKeywords]]
    ) -> ItemResult:
        pair = _descriptions(item)
        made = Extraction(found=PairKeywords()) if pair is None else found[pair]
        if made.found is None:
            return unscored_result(
                item, UnscoredReason(made.reason), f"{self._source.label}: {made.detail}"
            )
        reference = _keywords(item, "reference", made.found.reference)
        predicted = _keywords(item, "predicted", made.found.predicted)
        domain = item.fields["domain"]
        objects, behaviors = (self._matched(role, domain, reference, predicted) for role in _ROLES)
        length = item.episode_length
        evidence = MementosEvidence(
            domain=domain,
            extractor=self._source.label if pair is not None else "",
            episode_length=len(set(reference.words("behaviors"))) if length is None else length,
            objects=_evidence("objects", reference, predicted, objects),
            behaviors=_evidence("behaviors", reference, predicted, behaviors),
            # Those of lists that the item is scored by, which are not given.
            invalid=tuple(each for each in made.invalid if getattr(item, each.place) is None),
        )
        scored = self.metric.score_description(objects.counts, behaviors.counts, evidence.invalid)
        return scored_result(item, ScoredItem(scored.statistics, scored.scores, evidence))

    def _matched(
        self, role: str, domain: str, reference: Keywords, predicted: Keywords
    ) -> KeywordMatch:
        matchers = self._matchers[role]
        matcher = matchers.get(domain) or matchers[""]
        return matcher.match(reference.words(role), predicted.words(role))


def _variant(name: str) -> KeywordVariant:
    return "published" if name == "published" else "corrected"


def _mapped_sides(variant: KeywordVariant, graphs: Mapping[str, _Graphs]) -> str:
    """Return whose keywords are mapped to roots: ``both``, or only those of the ``responses``.

    With graphs of several kinds, it depends on the item: ``both+responses``.
    """
    every = [graph for one in graphs.values() for graph in one.by_domain.values()]
    sides = {_BOTH if maps_references(graph, variant) else _RESPONSES for graph in every}
    return "+".join(sorted(sides))


def _characters(item: MementosItem) -> int:
    return sum(len(word) for words in _lists(item) for word in words)


def _lists(item: MementosItem) -> list[tuple[str, ...]]:
    names = (f"{side}_{role}" for role in _ROLES for side in ("reference", "predicted"))
    lists = (getattr(item, name) for name in names)
    return [keywords for keywords in lists if keywords is not None]


def _needs(item: MementosItem, side: str) -> bool:
    """Return whether keywords of the reference or the prediction have to be extracted."""
    return None in (getattr(item, f"{side}_objects"), getattr(item, f"{side}_behaviors"))


def _descriptions(item: MementosItem) -> DescriptionPair | None:
    """Return the descriptions that need extraction, or None if all keywords are given."""
    reference, predicted = _needs(item, "reference"), _needs(item, "predicted")
    if not (reference or predicted):
        return None
    # Empty where the keywords are given, so that no call reads and pays for it.
    return DescriptionPair(
        reference=item.reference or "" if reference else "",
        predicted=item.response or "" if predicted else "",
    )


def _text_problem(item: MementosItem, responses: ResponseCheck, *, given: bool) -> Problem | None:
    """Return why keywords cannot be extracted from the descriptions, or None."""
    for side, what in (
        ("predicted", "the model's description"),
        ("reference", "the human description"),
    ):
        if _needs(item, side) and given:
            return (
                UnscoredReason.KEYWORDS_MISSING,
                f"keywords of {what} are not given, and the option extractor is {GIVEN!r}",
            )
    check = responses.problem if _needs(item, "predicted") else responses.failure
    if problem := check(item.response, "the model's description"):
        return problem
    return _reference_problem(item.reference, responses) if _needs(item, "reference") else None


def _reference_problem(text: str | None, responses: ResponseCheck) -> Problem | None:
    if text is None or not text.strip():
        return (
            UnscoredReason.REFERENCE_MISSING,
            "the human description and its keywords are missing",
        )
    if len(text) > MAX_RESPONSE_CHARS:
        return (
            UnscoredReason.REFERENCE_TOO_LONG,
            f"the human description has {len(text)} characters; "
            f"at most {MAX_RESPONSE_CHARS} are read",
        )
    return responses.language(text, "the human description")


def _keyword_problem(item: MementosItem) -> Problem | None:
    for keywords in _lists(item):
        if len(keywords) > _MAX_KEYWORDS:
            return (
                UnscoredReason.TOO_MANY_KEYWORDS,
                f"{len(keywords)} keywords in one list; at most {_MAX_KEYWORDS} are allowed",
            )
        longest = max(keywords, key=len, default="")
        if len(longest) > _MAX_KEYWORD_CHARS:
            return (
                UnscoredReason.KEYWORD_TOO_LONG,
                f"{longest[:40]!r}… has {len(longest)} characters; a keyword has at most "
                f"{_MAX_KEYWORD_CHARS}, so split the text into keywords",
            )
    return None


def _keywords(item: MementosItem, side: str, extracted: Keywords) -> Keywords:
    """Return the given keywords, or the extracted ones where none are given."""
    lists = {role: getattr(item, f"{side}_{role}") for role in _ROLES}
    given = {role: words for role, words in lists.items() if words is not None}
    made = {
        role: tuple(Keyword(text=word, start=0, end=0) for word in words)
        for role, words in given.items()
    }
    return replace(extracted, **made, given=frozenset(given))


def _evidence(
    role: str, reference: Keywords, predicted: Keywords, match: KeywordMatch
) -> KeywordEvidence:
    return KeywordEvidence(
        reference=reference.words(role),
        predicted=predicted.words(role),
        matched=tuple(MatchedKeyword(*pair) for pair in match.matched),
        hallucinated=match.hallucinated,
        missed=match.missed,
        unknown=match.unknown,
        near=tuple(NearKeyword(*miss) for miss in match.near),
        reference_spans=reference.spans(role),
        predicted_spans=predicted.spans(role),
    )


def _graphs(role: str, spec: ScoreSpec, resources: Resources) -> _Graphs:
    """Return the graphs of a role: one for all domains, or one for each (shipped by default)."""
    sources: dict[str, GraphSource] = {}
    if role in spec.graphs:
        sources[""] = spec.graphs[role]
    else:
        sources |= {name: ShippedGraph(name=f"{name}_{role}") for name in (*DOMAINS, GENERAL)}
    for domain in (*DOMAINS, GENERAL):
        if (source := spec.graphs.get(f"{role}.{domain}")) is not None:
            sources[domain] = source
    return _Graphs(
        role=role,
        by_domain={domain: resources.graph(source) for domain, source in sources.items()},
    )


def _open(spec: ScoreSpec, resources: Resources) -> MementosPipeline:
    # A language model reads any language; the rules and the shipped graphs read English.
    responses = ResponseCheck(spec.options, reads_english=spec.options.get("extractor") != "llm")
    domain = spec.options.get("domain", "")
    graphs = {role: _graphs(role, spec, resources) for role in _ROLES}
    for each in graphs.values():
        if domain and not each.cover(domain):
            raise InvalidInputError(each.lacking(domain))
    source = PairExtractor(spec.options, resources)
    metric = ENTRY.metric_for(
        spec,
        responses,
        matcher=f"{_MATCHER},map={_mapped_sides(_variant(spec.variant), graphs)}",
        object_graph=graphs["objects"].label,
        behavior_graph=graphs["behaviors"].label,
        extractor=source.label,
    )
    return MementosPipeline(metric, graphs, source, responses)


async def _extract(
    spec: ScoreSpec, texts: Sequence[str], resources: Resources
) -> list[list[FoundClaim]]:
    source = PairExtractor(spec.options, resources)
    found = await source.extract([DescriptionPair(predicted=text) for text in texts])
    claims: list[list[FoundClaim]] = []
    for index, pair in enumerate(found):
        if pair.found is None:
            raise no_claims(index, pair.reason, pair.detail)
        claims.append(_claims(pair.found.predicted))
    return claims


def _claims(keywords: Keywords) -> list[FoundClaim]:
    """Return all keywords with their kind, in the order of the text."""
    claims = [
        FoundClaim(start=keyword.start, end=keyword.end, claim=keyword.text, kind=role)
        for role, found in zip(_ROLES, (keywords.objects, keywords.behaviors), strict=True)
        for keyword in found
    ]
    return sorted(claims, key=lambda claim: (claim.start, claim.end))


ENTRY = MetricEntry(
    metric=MementosMetric,
    item_type=MementosItem,
    trial=Trial(
        item=MementosItem(id="1", response="A dog runs.", reference="A dog runs."),
        score="object_recall",
        value=1.0,
    ),
    graph_roles=(*_ROLES, *(f"{role}.{name}" for role in _ROLES for name in (*DOMAINS, GENERAL))),
    engine_options=(
        OptionDefinition(
            name="extractor",
            choices=EXTRACTORS,
            meaning="Keyword extractor.",
            details="llm asks a language model; given uses keywords of the file.",
        ),
        extract_prompt_option(("reference", "predicted")),
        preset_option("mementos-table6"),
        OptionDefinition(
            name="synonyms",
            choices=SYNONYMS,
            meaning="Synonyms in an llm's lists.",
            details="transfer: one word for them in all four lists, as in the paper's prompt.",
        ),
    ),
    reads_english=True,
    parses=lambda spec: spec.options.get("extractor", EXTRACTORS[0]) == EXTRACTORS[0],
    open=_open,
    extract=_extract,
)
ENTRIES = (ENTRY,)
